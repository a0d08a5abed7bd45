import { Body, Controller, Delete, Get, Param, Put } from '@nestjs/common';
import { ApiOkResponse, ApiParam, ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { SuccessDto } from '../../../platform/http/success.dto.js';
import { Access } from '../../auth/access.decorator.js';
import { ApiServerName, ownServerOrNone, serverNotFound, TargetServer } from '../server.decorator.js';
import type { ServerRef } from '../server.types.js';
import { SecretDto, SetSecretDto } from './server-settings.dto.js';
import { ServerSecretsService } from './server-secrets.service.js';

@ApiTags('Server settings')
@Controller('servers/:qualifiedName/secrets')
@ApiServerName()
export class ServerSecretsController {
  constructor(private readonly secrets: ServerSecretsService) {}

  /** List the secrets of a server. By name; values are never returned. */
  @Get()
  @Access('servers:read', ownServerOrNone)
  @ApiOkResponse({ type: [SecretDto], example: [{ name: 'WEATHER_API_KEY', type: 'secret_text' }] })
  @ApiErrors(serverNotFound)
  list(@TargetServer() server: ServerRef): Promise<SecretDto[]> {
    return this.secrets.list(server);
  }

  /** Create or replace a secret. Hosted code reads it by its name from the `env` of its factory. */
  @Put()
  @Access('servers:write', ownServerOrNone)
  @ApiErrors(400, serverNotFound)
  set(@TargetServer() server: ServerRef, @Body() body: SetSecretDto): Promise<SuccessDto> {
    return this.secrets.set(server, body);
  }

  /** Delete a secret. */
  @Delete(':secretName')
  @ApiParam({ name: 'secretName', description: 'The name of the secret.', example: 'WEATHER_API_KEY' })
  @Access('servers:write', ownServerOrNone)
  @ApiErrors({ status: 404, message: 'Secret not found' })
  remove(@TargetServer() server: ServerRef, @Param('secretName') secretName: string): Promise<SuccessDto> {
    return this.secrets.remove(server, secretName);
  }
}
