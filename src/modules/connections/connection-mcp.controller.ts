import type { ServerResponse } from 'node:http';
import { Controller, Delete, Get, HttpCode, Post, Req, Res } from '@nestjs/common';
import { ApiExcludeEndpoint, ApiParam, ApiTags } from '@nestjs/swagger';
import { ApiMcp, pageRefused } from '../../mcp/server/api-mcp.decorator.js';
import { McpHttpServer } from '../../mcp/server/mcp-http-server.js';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { Access } from '../auth/access.decorator.js';
import type { OwnedNamespace } from '../auth/access.types.js';
import { FastPath } from '../auth/fast-path.decorator.js';
import type { FastPathRequest } from '../auth/fast-path.decorator.js';
import { ConnectionHandles } from './core/connection-handles.js';
import type { CallRecord } from './log/call-record.js';
import { LogRecorder } from './log/log-recorder.js';
import { connectionIdParam, namespaceParam, ownConnections } from './core/connections.access.js';

@ApiTags('MCP')
@Controller('connect/:namespace/:connectionId/mcp')
@ApiParam(namespaceParam)
@ApiParam(connectionIdParam)
export class ConnectionMcpController {
  constructor(
    private readonly links: ConnectionHandles,
    private readonly front: McpHttpServer,
    private readonly recorder: LogRecorder,
  ) {}

  /**
   * Use the connection as an MCP server. Any MCP client of any revision works with this URL over streamable HTTP, with the
   * API key as bearer; no handshake and no session are needed. A client that initializes gets a session, in which the
   * server may ask it things.
   */
  @Post()
  @FastPath()
  @Access('connections:execute', ownConnections)
  @HttpCode(200)
  @ApiMcp()
  @ApiErrors(400, 404, pageRefused)
  async serve(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    await this.recorder.watching(request, response, (watch) => this.lead(request, response, watch));
  }

  /** The stream of a client's session: changes of lists and resources. Without a session there is none. */
  @Get()
  @FastPath()
  @ApiExcludeEndpoint()
  @Access('connections:execute', ownConnections)
  stream(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.lead(request, response);
  }

  /** Ends a client's session. Without one there is nothing to end. */
  @Delete()
  @FastPath()
  @ApiExcludeEndpoint()
  @Access('connections:execute', ownConnections)
  end(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.lead(request, response);
  }

  private lead(request: FastPathRequest, response: ServerResponse, watch?: CallRecord): Promise<void> {
    const { grant, params } = request;
    const find = async () => {
      const channel = await this.links.find(grant.namespace as OwnedNamespace, params.connectionId as string);
      if (watch) watch.connectionId = channel.id;
      return { channel, account: grant.caller.accountId, principal: grant.caller.keyId, target: channel.id };
    };
    return this.front.serve(request, response, find, watch);
  }
}
