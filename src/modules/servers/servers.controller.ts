import { Body, Controller, Delete, Get, HttpCode, Param, Put } from '@nestjs/common';
import { ApiOperation, ApiParam, ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../../platform/http/api-errors.decorator.js';
import { Access, CurrentNamespace } from '../auth/access.decorator.js';
import type { OwnedNamespace } from '../auth/access.types.js';
import { NamespaceNotFoundError } from '../namespaces/namespaces.errors.js';
import { parseQualifiedName, QualifiedNamePipe } from './qualified-name.js';
import type { QualifiedName } from './qualified-name.js';
import { CreateServerDto, DeletedServerDto, ServerDetailDto, ServerDto } from './server.dto.js';
import { NotServerOwnerError, ServerNotFoundError } from './servers.errors.js';
import { ServersService } from './servers.service.js';

const qualifiedName = {
  name: 'qualifiedName',
  description: '`namespace/server`, or `namespace` alone. The slash may be encoded as `%2F` or not.',
  example: 'acme/weather',
};

const ownNamespace = {
  missing: () => new NamespaceNotFoundError(),
  foreign: () => new NotServerOwnerError(),
};

const createErrors = [
  400,
  { status: 403, message: "Forbidden: You don't own this server" },
  { status: 404, message: 'Namespace not found' },
];

@ApiTags('Servers')
@Controller()
export class ServersController {
  constructor(private readonly servers: ServersService) {}

  /** Create a server. Repeating it changes nothing. */
  @Put('servers/:qualifiedName')
  @HttpCode(201)
  @ApiParam(qualifiedName)
  @Access('servers:write', { owner: 'qualifiedName', ...ownNamespace })
  @ApiErrors(...createErrors)
  create(
    @Param('qualifiedName') name: string,
    @CurrentNamespace() namespace: OwnedNamespace,
    @Body() body: CreateServerDto,
  ): Promise<ServerDto> {
    return this.servers.create(namespace, parseQualifiedName(name).name, body);
  }

  /** Get a server with its connections, tools and security status. Spec 4.10. */
  @Get('servers/:qualifiedName')
  @ApiParam(qualifiedName)
  @Access('servers:read')
  @ApiErrors({ status: 404, message: 'Server not found' })
  get(@Param('qualifiedName', QualifiedNamePipe) name: QualifiedName): Promise<ServerDetailDto> {
    return this.servers.get(name);
  }

  /** Delete a server for good, with everything attached to it. Spec 4.11. */
  @Delete('servers/:qualifiedName')
  @ApiParam(qualifiedName)
  @Access('servers:write', { owner: 'qualifiedName', missing: () => new ServerNotFoundError() })
  @ApiErrors({ status: 404, message: 'Server not found' })
  remove(
    @Param('qualifiedName', QualifiedNamePipe) { name }: QualifiedName,
    @CurrentNamespace() namespace: OwnedNamespace,
  ): Promise<DeletedServerDto> {
    return this.servers.remove(namespace, name);
  }

  /** Create a server under a namespace. Use `PUT /servers/{qualifiedName}` instead. Spec 4.1. */
  @Put('namespaces/:namespace/servers/:server')
  @HttpCode(201)
  @ApiOperation({ deprecated: true })
  @ApiParam({ name: 'namespace', description: 'The namespace.', example: 'acme' })
  @ApiParam({ name: 'server', description: 'The name of the server in its namespace.', example: 'weather' })
  @Access('servers:write', { owner: 'namespace', ...ownNamespace })
  @ApiErrors(...createErrors)
  createUnderNamespace(
    @Param('namespace') _namespace: string,
    @Param('server') server: string,
    @CurrentNamespace() namespace: OwnedNamespace,
    @Body() body: CreateServerDto,
  ): Promise<ServerDto> {
    return this.servers.create(namespace, server, body);
  }
}
