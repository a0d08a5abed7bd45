import { Controller, Get, Param, Query } from '@nestjs/common';
import { ApiOkResponse, ApiParam, ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Access, CurrentNamespace } from '../../auth/access.decorator.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { connectionIdParam, namespaceParam, ownConnections } from '../core/connections.access.js';
import { ConnectionLogDto, connectionLogExample, ConnectionLogQueryDto } from './connection-log.dto.js';
import { ConnectionLogService } from './connection-log.service.js';

@ApiTags('Connections')
@Controller('connect/:namespace/:connectionId/logs')
@ApiParam(namespaceParam)
@ApiParam(connectionIdParam)
export class ConnectionLogController {
  constructor(private readonly logs: ConnectionLogService) {}

  /**
   * List recent calls of a connection. Each with how it ended, where its time went and why it failed, also those that never
   * reached the MCP server. Newest first; the newest 1,000 of the last 7 days are kept. No arguments, no results.
   */
  @Get()
  @Access('connections:read', ownConnections)
  @ApiOkResponse({ type: ConnectionLogDto, example: connectionLogExample })
  @ApiErrors(400, 404)
  list(
    @CurrentNamespace() namespace: OwnedNamespace,
    @Param('connectionId') id: string,
    @Query() query: ConnectionLogQueryDto,
  ): Promise<ConnectionLogDto> {
    return this.logs.list(namespace, id, query);
  }
}
