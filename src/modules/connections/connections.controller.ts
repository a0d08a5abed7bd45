import { Body, Controller, Delete, Get, Param, Post, Put, Query, Res } from '@nestjs/common';
import { ApiOkResponse, ApiCreatedResponse, ApiParam, ApiQuery, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { ApiErrors } from '../../platform/http/api-errors.decorator.js';
import { SuccessDto } from '../../platform/http/success.dto.js';
import { Access, CurrentNamespace } from '../auth/access.decorator.js';
import type { OwnedNamespace } from '../auth/access.types.js';
import { ConnectionDto, ConnectionListDto, ConnectionQueryDto, SetConnectionDto } from './connection.dto.js';
import { connectionIdParam, namespaceParam, ownConnections } from './connections.access.js';
import { ConnectionsService } from './connections.service.js';
import { MetadataFilters } from './metadata-filter.js';
import type { MetadataFilter } from './metadata-filter.js';

@ApiTags('Connections')
@Controller('connect/:namespace')
@ApiParam(namespaceParam)
export class ConnectionsController {
  constructor(private readonly connections: ConnectionsService) {}

  /** Create a connection, or change it: what is omitted stays. Its target cannot change. */
  @Put(':connectionId')
  @ApiParam(connectionIdParam)
  @Access('connections:write', ownConnections)
  @ApiOkResponse({ type: ConnectionDto, description: 'Changed.' })
  @ApiCreatedResponse({ type: ConnectionDto, description: 'Created.' })
  @ApiErrors(400, 404, 409)
  async set(
    @CurrentNamespace() namespace: OwnedNamespace,
    @Param('connectionId') id: string,
    @Body() body: SetConnectionDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<ConnectionDto> {
    const { created, connection } = await this.connections.set(namespace, id, body);
    response.status(created ? 201 : 200);
    return connection;
  }

  /** Create a connection under a generated id. Spec 4.3. */
  @Post()
  @Access('connections:write', ownConnections)
  @ApiErrors(400, 404)
  create(@CurrentNamespace() namespace: OwnedNamespace, @Body() body: SetConnectionDto): Promise<ConnectionDto> {
    return this.connections.create(namespace, body);
  }

  /** List connections, newest first. Every filter given must match. Spec 4.2. */
  @Get()
  @Access('connections:read', ownConnections)
  @ApiQuery({
    name: 'metadata',
    required: false,
    description:
      'Filters on metadata: one query parameter `metadata.{key}={value}` each. ' +
      'Here as one object, whose members become those parameters.',
    style: 'form',
    explode: true,
    schema: {
      type: 'object',
      additionalProperties: { type: 'string' },
      example: { 'metadata.userId': 'u-1' },
    },
  })
  @ApiErrors(400, 404)
  list(
    @CurrentNamespace() namespace: OwnedNamespace,
    @Query() query: ConnectionQueryDto,
    @MetadataFilters() metadata: MetadataFilter[],
  ): Promise<ConnectionListDto> {
    return this.connections.list(namespace, query, metadata);
  }

  /** Get a connection with its last known status. */
  @Get(':connectionId')
  @ApiParam(connectionIdParam)
  @Access('connections:read', ownConnections)
  @ApiErrors(404)
  get(@CurrentNamespace() namespace: OwnedNamespace, @Param('connectionId') id: string): Promise<ConnectionDto> {
    return this.connections.get(namespace, id);
  }

  /** Delete a connection and end its MCP session. Spec 4.4. */
  @Delete(':connectionId')
  @ApiParam(connectionIdParam)
  @Access('connections:write', ownConnections)
  @ApiErrors(404)
  remove(@CurrentNamespace() namespace: OwnedNamespace, @Param('connectionId') id: string): Promise<SuccessDto> {
    return this.connections.remove(namespace, id);
  }
}
