import type { ServerResponse } from 'node:http';
import { Body, Controller, Delete, Get, HttpCode, Param, Patch, Post, Put, Req, Res } from '@nestjs/common';
import type { Response } from 'express';
import { ApiCreatedResponse, ApiOkResponse, ApiOperation, ApiParam, ApiTags } from '#api-docs';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { answerJson } from '../../platform/http/json-answer.js';
import { Access, CurrentCaller, CurrentNamespace, FastPath, type FastPathRequest } from '../auth/access.decorator.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import { SuccessDto } from '../../platform/http/success.dto.js';
import { SuspensionDto } from '../auth/suspension.types.js';
import { CreateServerDto, DeletedServerDto, serverDetailExample, ServerDetailDto, ServerDto } from './server.dto.js';
import {
  TransferredServerDto,
  TransferServerDto,
  UpdatedServerDto,
  UpdateServerDto,
  VerifyServerDto,
} from './settings/server-settings.dto.js';
import { ServerSettingsService } from './settings/server-settings.service.js';
import {
  ApiServerName,
  inOwnNamespace,
  notServerOwner,
  ownServer,
  ownServerOnly,
  ownServerOrNone,
  toQualifiedName,
  serverNotFound,
  TargetServer,
} from './server.decorator.js';
import { ServersService } from './servers.service.js';
import { parseQualifiedName, type ServerRef } from './server.types.js';

/** Date of deprecation, 20 November 2026, in the form of RFC 9745. */
const DEPRECATED_SINCE = '@1795132800';

/** Error for a server with secrets that becomes public without a confirmation. */
const secretsNotConfirmed = {
  status: 409,
  message:
    'The server has secrets: once it is public, every account calls it with them. PATCH it with visibility "public" and confirmSecrets true if that is right, or delete its secrets first.',
};

const createErrors = [400, notServerOwner, { status: 404, message: 'Namespace not found' }, secretsNotConfirmed];

@ApiTags('Servers')
@Controller()
export class ServersController {
  constructor(
    private readonly serversService: ServersService,
    private readonly serverSettingsService: ServerSettingsService,
  ) {}

  /** Create or change a server. Members of the body are applied, absent ones stay. Idempotent. */
  @Put('servers/:qualifiedName')
  @HttpCode(201)
  @ApiServerName()
  @Access('servers:write', { owner: 'qualifiedName', ...inOwnNamespace })
  @ApiErrors(...createErrors)
  create(
    @Param('qualifiedName') name: string,
    @CurrentNamespace() namespace: OwnedNamespace,
    @CurrentCaller() caller: Caller,
    @Body() body: CreateServerDto,
  ): Promise<ServerDto> {
    return this.serversService.put(namespace, parseQualifiedName(name).name, body, caller);
  }

  /** Get a server with its connections, tools and security status. Spec 4.10. */
  @Get('servers/:qualifiedName')
  @FastPath()
  @ApiServerName()
  @Access('servers:read', { anonymous: true })
  @ApiOkResponse({ type: ServerDetailDto, example: serverDetailExample })
  @ApiErrors(serverNotFound)
  async get(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    const name = toQualifiedName(String(request.params.qualifiedName));
    answerJson(response, JSON.stringify(await this.serversService.detail(name, request.grant.caller)));
  }

  /** Change a server. Omitted fields stay unchanged; null clears a field. */
  @Patch('servers/:qualifiedName')
  @ApiServerName()
  @Access('servers:write', ownServer)
  @ApiErrors(400, notServerOwner, serverNotFound, secretsNotConfirmed)
  update(
    @TargetServer() server: ServerRef,
    @CurrentCaller() caller: Caller,
    @Body() body: UpdateServerDto,
  ): Promise<UpdatedServerDto> {
    return this.serverSettingsService.update(server, body, caller);
  }

  /** Move a server to another of your namespaces. Its run endpoint and the connections to it stay as they are. */
  @Post('servers/:qualifiedName/transfer')
  @HttpCode(200)
  @ApiServerName()
  @Access('servers:write', ownServerOnly)
  @ApiErrors(400, notServerOwner, serverNotFound, {
    status: 409,
    message: 'The server "acme-labs/weather" exists: choose another targetSlug or delete that one first',
  })
  transfer(
    @TargetServer() server: ServerRef,
    @CurrentCaller() caller: Caller,
    @Body() body: TransferServerDto,
  ): Promise<TransferredServerDto> {
    return this.serverSettingsService.transfer(server, caller, body);
  }

  /** Verify a server, or undo the verification. Operator only; not part of the published interface. */
  @Put('servers/:qualifiedName/verified')
  @ApiServerName()
  @Access('servers:write', { operator: true })
  @ApiErrors(400, 403, serverNotFound)
  verify(
    @TargetServer() server: ServerRef,
    @CurrentCaller() caller: Caller,
    @Body() { verified }: VerifyServerDto,
  ): Promise<UpdatedServerDto> {
    return this.serverSettingsService.verify(caller, server, verified);
  }

  /** Suspend or reinstate a server (operator). Within 5 seconds, calls of a suspended server return 403 with the reason. */
  @Put('servers/:qualifiedName/suspension')
  @ApiServerName()
  @Access('servers:write', { operator: true })
  @ApiErrors(400, 403, serverNotFound)
  suspend(
    @Param('qualifiedName') name: string,
    @CurrentCaller() caller: Caller,
    @Body() { reason }: SuspensionDto,
  ): Promise<SuccessDto> {
    return this.serversService.suspend(toQualifiedName(name), caller, reason);
  }

  /**
   * Delete a server permanently. Slipway also deletes its releases, secrets and icon, and stops its programs. Spec 4.11.
   */
  @Delete('servers/:qualifiedName')
  @ApiServerName()
  @Access('servers:write', { ...ownServerOrNone, may: 'administer' })
  @ApiErrors(serverNotFound)
  remove(@TargetServer() server: ServerRef, @CurrentCaller() caller: Caller): Promise<DeletedServerDto> {
    return this.serversService.remove(caller, server);
  }

  /** Create or change a server under a namespace. Use `PUT /servers/{qualifiedName}` instead. Spec 4.1. */
  @Put('namespaces/:namespace/servers/:server')
  @HttpCode(201)
  @ApiOperation({ deprecated: true })
  @ApiParam({ name: 'namespace', description: 'The namespace.', example: 'acme' })
  @ApiParam({ name: 'server', description: 'The name of the server in its namespace.', example: 'weather' })
  @ApiCreatedResponse({
    type: ServerDto,
    headers: {
      Location: { description: 'The address of the server, relative to this one.', schema: { type: 'string' } },
      Deprecation: { description: 'The time since when this operation is deprecated.', schema: { type: 'string' } },
      Link: { description: 'Its `successor-version`.', schema: { type: 'string' } },
    },
  })
  @Access('servers:write', { owner: 'namespace', ...inOwnNamespace })
  @ApiErrors(...createErrors)
  async createUnderNamespace(
    @Param('server') server: string,
    @CurrentNamespace() namespace: OwnedNamespace,
    @CurrentCaller() caller: Caller,
    @Body() body: CreateServerDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<ServerDto> {
    const created = await this.serversService.put(namespace, server, body, caller);
    const successor = `../../../servers/${namespace.name}%2F${created.server}`;
    response.set({
      location: successor,
      link: `<${successor}>; rel="successor-version"`,
      deprecation: DEPRECATED_SINCE,
    });
    return created;
  }
}
