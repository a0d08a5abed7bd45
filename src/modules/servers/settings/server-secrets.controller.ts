import { Body, Controller, Delete, Get, Param, Put } from '@nestjs/common';
import { ApiOkResponse, ApiParam, ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { SuccessDto } from '../../../platform/http/success.dto.js';
import { Access, CurrentNamespace } from '../../auth/access.decorator.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { QualifiedNamePipe } from '../qualified-name.js';
import type { QualifiedName } from '../qualified-name.js';
import { SecretDto, SetSecretDto } from './server-settings.dto.js';
import { ServerSecretsService } from './server-secrets.service.js';
import { ownServerOrNone, qualifiedNameParam, serverNotFound } from '../server.decorator.js';

@ApiTags('Server settings')
@Controller('servers/:qualifiedName/secrets')
@ApiParam(qualifiedNameParam)
export class ServerSecretsController {
  constructor(private readonly secrets: ServerSecretsService) {}

  /** List the secrets of a server. By name; values are never returned. */
  @Get()
  @Access('servers:read', ownServerOrNone)
  @ApiOkResponse({ type: [SecretDto], example: [{ name: 'WEATHER_API_KEY', type: 'secret_text' }] })
  @ApiErrors(serverNotFound)
  list(
    @Param('qualifiedName', QualifiedNamePipe) { name }: QualifiedName,
    @CurrentNamespace() namespace: OwnedNamespace,
  ): Promise<SecretDto[]> {
    return this.secrets.list(namespace, name);
  }

  /** Create or replace a secret. Hosted code finds it under its name: in the `env` its factory is given. */
  @Put()
  @Access('servers:write', ownServerOrNone)
  @ApiErrors(400, serverNotFound)
  set(
    @Param('qualifiedName', QualifiedNamePipe) { name }: QualifiedName,
    @CurrentNamespace() namespace: OwnedNamespace,
    @Body() body: SetSecretDto,
  ): Promise<SuccessDto> {
    return this.secrets.set(namespace, name, body);
  }

  /** Delete a secret. */
  @Delete(':secretName')
  @ApiParam({ name: 'secretName', description: 'The name of the secret.', example: 'WEATHER_API_KEY' })
  @Access('servers:write', ownServerOrNone)
  @ApiErrors({ status: 404, message: 'Secret not found' })
  remove(
    @Param('qualifiedName', QualifiedNamePipe) { name }: QualifiedName,
    @Param('secretName') secretName: string,
    @CurrentNamespace() namespace: OwnedNamespace,
  ): Promise<SuccessDto> {
    return this.secrets.remove(namespace, name, secretName);
  }
}
