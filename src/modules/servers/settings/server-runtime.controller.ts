import { Body, Controller, Get, Patch } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Access } from '../../auth/access.decorator.js';
import { ApiServerName, ownServerOrNone, serverNotFound, TargetServer } from '../server.decorator.js';
import type { ServerRef } from '../server.types.js';
import { ServerRuntimeDto, UpdateServerRuntimeDto } from './server-settings.dto.js';
import { ServerSettingsService } from './server-settings.service.js';

@ApiTags('Server settings')
@Controller('servers/:qualifiedName/runtime')
@ApiServerName()
export class ServerRuntimeController {
  constructor(private readonly settings: ServerSettingsService) {}

  /** Get the runtime settings of a server: reachable hosts and payload logging. */
  @Get()
  @Access('servers:read', ownServerOrNone)
  @ApiErrors(serverNotFound)
  get(@TargetServer() server: ServerRef): Promise<ServerRuntimeDto> {
    return this.settings.runtime(server);
  }

  /** Change the runtime settings of a server. Running code restarts with them; requests in progress finish with the old ones. */
  @Patch()
  @Access('servers:write', ownServerOrNone)
  @ApiErrors(400, serverNotFound)
  update(@TargetServer() server: ServerRef, @Body() body: UpdateServerRuntimeDto): Promise<ServerRuntimeDto> {
    return this.settings.updateRuntime(server, body);
  }
}
