import type { ServerResponse } from 'node:http';
import { Delete, Get, HttpCode, Post, Req, Res } from '@nestjs/common';
import { originOf } from '../../mcp/server/mcp-request.js';
import { ApiTags } from '#api-docs';
import { ApiMcp, pageRefused } from '../../mcp/server/api-mcp.decorator.js';
import { McpHttpServer } from '../../mcp/server/mcp-http-server.js';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { Access, FastPath, type FastPathRequest } from '../auth/access.decorator.js';
import { ConnectionHandles } from './core/connection-handles.js';
import { OpenRequests } from '../../platform/http/open-requests.js';
import { LogRecorder, type CallRecord } from './log/log-recorder.js';
import { ConnectionController, McpSessionRoute, toolsOfConnections } from './core/connections.access.js';
import { targetOf } from './mcp-trial.service.js';

@ApiTags('MCP')
@ConnectionController('mcp')
export class ConnectionMcpController {
  constructor(
    private readonly connectionHandles: ConnectionHandles,
    private readonly mcpHttpServer: McpHttpServer,
    private readonly logRecorder: LogRecorder,
    private readonly openRequests: OpenRequests,
  ) {}

  /**
   * Use the connection as an MCP server. Any MCP client of any revision works with this URL over streamable HTTP, with the
   * API key as bearer. No handshake and no session are needed; a client that sends `initialize` gets a session, in which
   * the server may send it requests. Without authorization at the MCP server the status is 200, with the JSON-RPC error
   * -33001 and `data.setupUrl`, or for `tools/call` an `isError` result. A client that declares URL elicitation
   * gets one instead, with a link that only people signed in as the calling account can use: error -32042, or in MCP
   * 2026-07-28 an `input_required` result.
   */
  @Post()
  @FastPath()
  @Access('connections:execute', toolsOfConnections)
  @HttpCode(200)
  @ApiMcp()
  @ApiErrors(400, 404, pageRefused)
  serve(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    const origin = originOf(request.grant.caller);
    return this.logRecorder.record(request, origin, response, (record) => this.handle(request, response, record));
  }

  /** The SSE stream of a client's session, with changes of lists and resources. */
  @McpSessionRoute(Get, toolsOfConnections)
  stream(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.handle(request, response);
  }

  /** Closes the MCP session of a client. */
  @McpSessionRoute(Delete, toolsOfConnections)
  end(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.handle(request, response);
  }

  private handle(request: FastPathRequest, response: ServerResponse, record?: CallRecord): Promise<void> {
    const { connectionId } = request.params as { connectionId: string };
    const find = () => targetOf(this.connectionHandles, request.grant, connectionId, record);
    this.openRequests.checkWhileOpen(request, find);
    return this.mcpHttpServer.serve(request, response, find, record);
  }
}
