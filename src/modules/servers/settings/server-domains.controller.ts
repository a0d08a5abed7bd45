import { Body, Controller, Get, Param, Patch } from '@nestjs/common';
import { ApiParam, ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Access, CurrentCaller } from '../../auth/access.decorator.js';
import type { Caller } from '../../auth/access.types.js';
import { ApiServerName, ownServerOrNone, serverNotFound, TargetServer } from '../server.decorator.js';
import type { ServerRef } from '../server.types.js';
import { ServerDomainDto, ServerDomainListDto, UpdateDomainDto } from './server-settings.dto.js';
import { ServerSettingsService } from './server-settings.service.js';

@ApiTags('Server settings')
@Controller('servers/:qualifiedName/domains')
@ApiServerName()
export class ServerDomainsController {
  constructor(private readonly settings: ServerSettingsService) {}

  /** List the domains of a server. There is one, the managed one; its `url` is the run endpoint. */
  @Get()
  @Access('servers:read', ownServerOrNone)
  @ApiErrors(serverNotFound)
  list(@TargetServer() server: ServerRef): Promise<ServerDomainListDto> {
    return this.settings.domains(server);
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
    @TargetServer() server: ServerRef,
    @Param('domainId') domainId: string,
    @CurrentCaller() caller: Caller,
    @Body() { subdomain }: UpdateDomainDto,
  ): Promise<ServerDomainDto> {
    return this.settings.rename(server, caller, domainId, subdomain);
  }
}
