import { Body, Controller, Delete, Get, Param, Post, Put, Query, Res } from '@nestjs/common';
import { ApiBody, ApiOkResponse, ApiCreatedResponse, ApiParam, ApiQuery, ApiTags } from '#api-docs';
import type { Response } from 'express';
import { Env } from '../../config/env.js';
import { HINT_HEADER } from '../../platform/errors/error-body.js';
import { ErrorForm } from '../../platform/errors/error-form.decorator.js';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { SuccessDto } from '../../platform/http/success.dto.js';
import { Access, CurrentCaller, CurrentNamespace } from '../auth/access.decorator.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import {
  ConnectionDto,
  connectionExample,
  ConnectionListDto,
  ConnectionQueryDto,
  newConnectionExample,
  SetConnectionDto,
} from './core/connection.dto.js';
import {
  listedTools,
  connectionIdParam,
  namespaceParam,
  ownConnections,
  ownConnectionsOnly,
} from './core/connections.access.js';
import { ConnectionHandles } from './core/connection-handles.js';
import { SuspensionDto } from '../auth/suspension.types.js';
import { ConnectionReader } from './core/connection-reader.js';
import { ConnectionsService } from './connections.service.js';
import { MetadataFilters, type MetadataFilter } from './core/metadata-filter.js';

const body = {
  type: SetConnectionDto,
  examples: {
    first: { summary: 'An MCP server by its URL', value: newConnectionExample },
    registry: { summary: 'A server of the registry', value: { server: 'acme/weather' } },
    mock: { summary: 'A simulated server of the registry', value: { server: 'acme/weather', mock: { enabled: true } } },
    uplink: { summary: 'A local server, paired over the command line', value: { transport: 'uplink' } },
    headers: {
      summary: 'An MCP server that requires a key',
      value: { mcpUrl: 'https://mcp.example.com/mcp', headers: { Authorization: 'Bearer the-key' } },
    },
  },
};

const IS_MCP_ENDPOINT = /^\/connect\/[^/]+\/(?:[^/]+\/mcp|\.mcp)\/?$/;

@ApiTags('Connections')
@ErrorForm('connect', (path) => (IS_MCP_ENDPOINT.test(path) ? 'json-rpc' : 'connections'))
@Controller('connect/:namespace')
@ApiParam(namespaceParam)
export class ConnectionsController {
  constructor(
    private readonly connectionsService: ConnectionsService,
    private readonly connectionReader: ConnectionReader,
    private readonly connectionHandles: ConnectionHandles,
    private readonly env: Env,
  ) {}

  /** Suspend or reinstate a connection (operator). Within 5 seconds, calls of a suspended connection return 403 with the reason. */
  @Put(':connectionId/suspension')
  @ApiParam(connectionIdParam)
  @Access('connections:write', { operator: true })
  @ApiErrors(400, 403, 404)
  async suspend(
    @Param('namespace') namespace: string,
    @Param('connectionId') id: string,
    @CurrentCaller() caller: Caller,
    @Body() { reason }: SuspensionDto,
  ): Promise<SuccessDto> {
    await this.connectionHandles.suspend(namespace, id, caller, reason);
    return { success: true };
  }

  /** Create a connection, or change it. Omitted fields stay unchanged. Its target cannot change, except that the owner can change
   * the `mcpUrl` of a connection that has never worked. */
  @Put(':connectionId')
  @ApiParam(connectionIdParam)
  @Access('connections:write', ownConnections)
  @ApiBody(body)
  @ApiOkResponse({ type: ConnectionDto, description: 'Changed.', example: connectionExample })
  @ApiCreatedResponse({ type: ConnectionDto, description: 'Created.', example: connectionExample })
  @ApiErrors(400, 404, {
    status: 409,
    text: 'The connection exists with another target.',
    message: 'The connection exists with another mcpUrl: delete it and create it again, or use another id.',
  })
  async set(
    @CurrentNamespace() namespace: OwnedNamespace,
    @CurrentCaller() caller: Caller,
    @Param('connectionId') id: string,
    @Body() body: SetConnectionDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<ConnectionDto> {
    const { created, connection } = await this.connectionsService.set(namespace, id, body, caller);
    response.status(created ? 201 : 200);
    this.hint(response, connection);
    return connection;
  }

  /** Create a connection under a generated id. Spec 4.3. */
  @Post()
  @Access('connections:write', ownConnections)
  @ApiBody(body)
  @ApiCreatedResponse({
    type: ConnectionDto,
    example: { ...connectionExample, connectionId: 'heron-x7k2p9' },
    headers: { Location: { description: 'Its address, relative to this one.', schema: { type: 'string' } } },
  })
  @ApiErrors(400, 404)
  async create(
    @CurrentNamespace() namespace: OwnedNamespace,
    @CurrentCaller() caller: Caller,
    @Body() body: SetConnectionDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<ConnectionDto> {
    const connection = await this.connectionsService.create(namespace, body, caller);
    // Relative, so that it is right for the short form and behind every proxy.
    response.location(`${namespace.name}/${connection.connectionId}`);
    this.hint(response, connection);
    return connection;
  }

  /** List connections. Newest first; every filter must match. Spec 4.2. */
  @Get()
  @Access('connections:read', ownConnections)
  @ApiQuery({
    name: 'metadata',
    required: false,
    description:
      'At most 16 filters on metadata: one query parameter `metadata.{key}={value}` each. ' +
      'Here as one object, whose members become those parameters.',
    style: 'form',
    explode: true,
    schema: { type: 'object', additionalProperties: { type: 'string' }, example: { 'metadata.userId': 'u-1' } },
  })
  @ApiOkResponse({ type: ConnectionListDto, example: { connections: [connectionExample], nextCursor: null } })
  @ApiErrors(400, 404)
  list(
    @CurrentNamespace() namespace: OwnedNamespace,
    @CurrentCaller() caller: Caller,
    @Query() query: ConnectionQueryDto,
    @MetadataFilters() metadata: MetadataFilter[],
  ): Promise<ConnectionListDto> {
    return this.connectionReader.list(namespace, caller, query, metadata);
  }

  /**
   * Get a connection with its last known status. Callers that cannot manage it receive no setup link. With the level `call`,
   * you read its name, its state and whose login is missing, but no address, metadata, values, choice of tools or messages of
   * its MCP server.
   */
  @Get(':connectionId')
  @ApiParam(connectionIdParam)
  @Access('connections:read', listedTools)
  @ApiOkResponse({ type: ConnectionDto, example: connectionExample })
  @ApiErrors(404)
  get(
    @CurrentNamespace() namespace: OwnedNamespace,
    @CurrentCaller() caller: Caller,
    @Param('connectionId') id: string,
  ): Promise<ConnectionDto> {
    return this.connectionsService.get(namespace, id, caller);
  }

  /** Delete a connection and close its MCP session. Spec 4.4. */
  @Delete(':connectionId')
  @ApiParam(connectionIdParam)
  @Access('connections:write', ownConnectionsOnly)
  @ApiErrors(404)
  remove(
    @CurrentNamespace() namespace: OwnedNamespace,
    @CurrentCaller() caller: Caller,
    @Param('connectionId') id: string,
  ): Promise<SuccessDto> {
    return this.connectionsService.remove(caller, namespace, id);
  }

  private hint(response: Response, { tools, mcpUrl }: ConnectionDto): void {
    if (!tools || !mcpUrl?.startsWith(`${this.env.baseUrl}/run/`)) return;
    response.set(
      HINT_HEADER,
      'The choice of tools binds this connection only: while its server is public, or granted, its run endpoint offers all tools.',
    );
  }
}
