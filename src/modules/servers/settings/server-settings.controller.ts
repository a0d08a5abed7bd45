import { Body, Controller, Delete, Get, Param, Patch, Put, Res } from '@nestjs/common';
import { ApiOkResponse, ApiParam, ApiTags } from '#api-docs';
import type { Response } from 'express';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { SuccessDto } from '../../../platform/http/success.dto.js';
import { Access, CurrentCaller } from '../../auth/access.decorator.js';
import type { Caller } from '../../auth/access.types.js';
import { ApiServerName, ownServerOrNone, serverNotFound, TargetServer } from '../server.decorator.js';
import type { ServerRef } from '../server.types.js';
import { HINT_HEADER } from '../../../platform/errors/error-body.js';
import { ServerSecretsService } from './server-secrets.service.js';
import {
  SecretDto,
  ServerDomainDto,
  ServerDomainListDto,
  ServerRuntimeDto,
  SetSecretDto,
  UpdateDomainDto,
  UpdateServerRuntimeDto,
} from './server-settings.dto.js';
import { ServerSettingsService } from './server-settings.service.js';

@ApiTags('Server settings')
@Controller('servers/:qualifiedName/secrets')
@ApiServerName()
export class ServerSecretsController {
  constructor(private readonly serverSecretsService: ServerSecretsService) {}

  /** List the secrets of a server. By name; values are never returned. */
  @Get()
  @Access('servers:read', ownServerOrNone)
  @ApiOkResponse({ type: [SecretDto], example: [{ name: 'WEATHER_API_KEY', type: 'secret_text' }] })
  @ApiErrors(serverNotFound)
  list(@TargetServer() server: ServerRef): Promise<SecretDto[]> {
    return this.serverSecretsService.list(server);
  }

  /**
   * Create or replace a secret. Hosted code reads it by its name from the `env` of its factory. While the server is public, every
   * account that calls it works with its secrets; the header `Slipway-Hint` warns about this.
   */
  @Put()
  @Access('servers:write', ownServerOrNone)
  @ApiErrors(400, serverNotFound)
  async set(
    @TargetServer() server: ServerRef,
    @CurrentCaller() caller: Caller,
    @Body() body: SetSecretDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<SuccessDto> {
    const answer = await this.serverSecretsService.set(caller, server, body);
    const note = await this.serverSecretsService.publicNote(server);
    if (note !== null) response.set(HINT_HEADER, note);
    return answer;
  }

  /** Delete a secret. */
  @Delete(':secretName')
  @ApiParam({ name: 'secretName', description: 'The name of the secret.', example: 'WEATHER_API_KEY' })
  @Access('servers:write', ownServerOrNone)
  @ApiErrors({ status: 404, message: 'Secret not found' })
  remove(
    @TargetServer() server: ServerRef,
    @CurrentCaller() caller: Caller,
    @Param('secretName') secretName: string,
  ): Promise<SuccessDto> {
    return this.serverSecretsService.remove(caller, server, secretName);
  }
}

@ApiTags('Server settings')
@Controller('servers/:qualifiedName/domains')
@ApiServerName()
export class ServerDomainsController {
  constructor(private readonly serverSettingsService: ServerSettingsService) {}

  /** List the domains of a server. There is one, the managed one; its `url` is the run endpoint. */
  @Get()
  @Access('servers:read', ownServerOrNone)
  @ApiErrors(serverNotFound)
  list(@TargetServer() server: ServerRef): Promise<ServerDomainListDto> {
    return this.serverSettingsService.domains(server);
  }

  /** Rename the run endpoint of a server. The old address stops working. */
  @Patch(':domainId')
  @ApiParam({ name: 'domainId', description: 'Always `managed`.', example: 'managed' })
  @Access('servers:write', ownServerOrNone)
  @ApiErrors(400, serverNotFound, { status: 409, message: 'The subdomain "acme-weather" is taken: choose another one' })
  rename(
    @TargetServer() server: ServerRef,
    @Param('domainId') domainId: string,
    @CurrentCaller() caller: Caller,
    @Body() { subdomain }: UpdateDomainDto,
  ): Promise<ServerDomainDto> {
    return this.serverSettingsService.rename(server, caller, domainId, subdomain);
  }
}

@ApiTags('Server settings')
@Controller('servers/:qualifiedName/runtime')
@ApiServerName()
export class ServerRuntimeController {
  constructor(private readonly serverSettingsService: ServerSettingsService) {}

  /** Get runtime settings of a server. Its reachable hosts and payload logging. */
  @Get()
  @Access('servers:read', ownServerOrNone)
  @ApiErrors(serverNotFound)
  get(@TargetServer() server: ServerRef): Promise<ServerRuntimeDto> {
    return this.serverSettingsService.runtime(server);
  }

  /** Change the runtime settings of a server. Slipway restarts running code; requests in progress finish with the old settings. */
  @Patch()
  @Access('servers:write', ownServerOrNone)
  @ApiErrors(400, serverNotFound)
  update(
    @TargetServer() server: ServerRef,
    @CurrentCaller() caller: Caller,
    @Body() body: UpdateServerRuntimeDto,
  ): Promise<ServerRuntimeDto> {
    return this.serverSettingsService.updateRuntime(caller, server, body);
  }
}
