import { Body, Controller, Delete, Get, Param, Put } from '@nestjs/common';
import { ApiOkResponse, ApiParam, ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { SuccessDto } from '../../../platform/http/success.dto.js';
import { Access, CurrentNamespace } from '../../auth/access.decorator.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { connectionIdParam, namespaceParam, ownConnections } from '../core/connections.access.js';
import { RecordingDto, SetRecordingDto } from './recording.dto.js';
import { RecordingsService } from './recordings.service.js';

@ApiTags('Connections')
@Controller('connect/:namespace/:connectionId/recording')
@ApiParam(namespaceParam)
@ApiParam(connectionIdParam)
export class RecordingController {
  constructor(private readonly recordings: RecordingsService) {}

  /**
   * Record the connection's tool calls, or stop. A mock created with the scenario `replay:{connectionId}` in the same
   * namespace answers as they were answered.
   */
  @Put()
  @Access('connections:write', ownConnections)
  @ApiOkResponse({ type: RecordingDto })
  @ApiErrors(400, 404)
  set(
    @CurrentNamespace() namespace: OwnedNamespace,
    @Param('connectionId') id: string,
    @Body() { enabled }: SetRecordingDto,
  ): Promise<RecordingDto> {
    return this.recordings.set(namespace, id, enabled);
  }

  /** What is recorded, without its contents. Calls show within a second. */
  @Get()
  @Access('connections:read', ownConnections)
  @ApiOkResponse({ type: RecordingDto })
  @ApiErrors(404)
  get(@CurrentNamespace() namespace: OwnedNamespace, @Param('connectionId') id: string): Promise<RecordingDto> {
    return this.recordings.get(namespace, id);
  }

  /** Stop recording and delete what was recorded. Mocks made from it stay. */
  @Delete()
  @Access('connections:write', ownConnections)
  @ApiErrors(404)
  remove(@CurrentNamespace() namespace: OwnedNamespace, @Param('connectionId') id: string): Promise<SuccessDto> {
    return this.recordings.remove(namespace, id);
  }
}
