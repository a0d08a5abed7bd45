import { Get, Param } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '#api-docs';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Access, CurrentCaller, CurrentNamespace } from '../../auth/access.decorator.js';
import type { Caller, OwnedNamespace } from '../../auth/access.types.js';
import { ConnectionController, ownConnections } from '../core/connections.access.js';
import { DiagnosisDto, diagnosisExample } from './diagnosis.dto.js';
import { DiagnosisService } from './diagnosis.service.js';

@ApiTags('Connections')
@ConnectionController('diagnosis')
export class DiagnosisController {
  constructor(private readonly diagnosisService: DiagnosisService) {}

  /**
   * Find out why a connection does not work. Checks each step from DNS to the list of tools, with one line of evidence for each step,
   * and returns the next step. Takes at most 20 seconds, and updates the status.
   */
  @Get()
  @Access('connections:read', ownConnections)
  @ApiOkResponse({ type: DiagnosisDto, example: diagnosisExample })
  @ApiErrors(404, {
    status: 503,
    text: 'Too many concurrent diagnoses: retry after the seconds in Retry-After.',
    code: 'unavailable',
    message: 'Too many requests of this kind are at work: try again in a few seconds',
  })
  diagnose(
    @CurrentNamespace() namespace: OwnedNamespace,
    @CurrentCaller() caller: Caller,
    @Param('connectionId') id: string,
  ): Promise<DiagnosisDto> {
    return this.diagnosisService.diagnose(namespace, id, caller);
  }
}
