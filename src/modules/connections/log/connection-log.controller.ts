import { Get, Param, Query } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '#api-docs';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Access, CurrentCaller, CurrentNamespace } from '../../auth/access.decorator.js';
import type { Caller, OwnedNamespace } from '../../auth/access.types.js';
import { ConnectionController, listedTools } from '../core/connections.access.js';
import { ConnectionLogDto, connectionLogExample, ConnectionLogQueryDto } from './connection-log.dto.js';
import { ConnectionLogService } from './connection-log.service.js';

@ApiTags('Connections')
@ConnectionController('logs')
export class ConnectionLogController {
  constructor(private readonly connectionLogService: ConnectionLogService) {}

  /**
   * List recent calls of a connection. Each with its outcome, its durations and the reason of a failure, also calls that did
   * not reach the MCP server. Newest first, at most the newest 1,000, without arguments and results. Each process
   * records the first 1,000 successful calls of a connection in a minute, and then ten a second; failed calls only count for the
   * bound of 1 Mi characters of all its records of the minute. Records are kept as long as runtime logs.
   *
   * Accounts that were granted only calls, and members of the organization, list their own calls, at most their newest 1,000:
   * without `logs` and `exceptions`, with `leftOut` 0, and `search` looks into the tool name only.
   */
  @Get()
  @Access('connections:read', listedTools)
  @ApiOkResponse({ type: ConnectionLogDto, example: connectionLogExample })
  @ApiErrors(400, 404, { status: 504, message: 'The search took longer than 10 s: give a shorter range' })
  list(
    @CurrentNamespace() namespace: OwnedNamespace,
    @CurrentCaller() caller: Caller,
    @Param('connectionId') id: string,
    @Query() query: ConnectionLogQueryDto,
  ): Promise<ConnectionLogDto> {
    return this.connectionLogService.list(namespace, id, query, caller);
  }
}
