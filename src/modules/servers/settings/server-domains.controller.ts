import { Body, Controller, Get, Param, Patch } from '@nestjs/common';
import { ApiParam, ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Access, CurrentCaller, CurrentNamespace } from '../../auth/access.decorator.js';
import type { Caller, OwnedNamespace } from '../../auth/access.types.js';
import { QualifiedNamePipe } from '../qualified-name.js';
import type { QualifiedName } from '../qualified-name.js';
import { ServerDomainDto, ServerDomainListDto, UpdateDomainDto } from './server-settings.dto.js';
import { ServerSettingsService } from './server-settings.service.js';
import { ownServerOrNone, qualifiedNameParam, serverNotFound } from '../server.decorator.js';

@ApiTags('Server settings')
@Controller('servers/:qualifiedName/domains')
@ApiParam(qualifiedNameParam)
export class ServerDomainsController {
  constructor(private readonly settings: ServerSettingsService) {}

  /** List the domains of a server. There is one, the managed one; its `url` is the run endpoint. */
  @Get()
  @Access('servers:read', ownServerOrNone)
  @ApiErrors(serverNotFound)
  list(
    @Param('qualifiedName', QualifiedNamePipe) { name }: QualifiedName,
    @CurrentNamespace() namespace: OwnedNamespace,
  ): Promise<ServerDomainListDto> {
    return this.settings.domains(namespace, name);
  }

  /** Rename the run endpoint of a server. The old address answers no more. */
  @Patch(':domainId')
  @ApiParam({ name: 'domainId', description: 'Always `managed`.', example: 'managed' })
  @Access('servers:write', ownServerOrNone)
  @ApiErrors(400, serverNotFound, {
    status: 409,
    message: 'The subdomain "acme-weather" is taken: choose another one',
  })
  rename(
    @Param('qualifiedName', QualifiedNamePipe) { name }: QualifiedName,
    @Param('domainId') domainId: string,
    @CurrentNamespace() namespace: OwnedNamespace,
    @CurrentCaller() caller: Caller,
    @Body() { subdomain }: UpdateDomainDto,
  ): Promise<ServerDomainDto> {
    return this.settings.rename(namespace, name, caller, { domainId, subdomain });
  }
}
