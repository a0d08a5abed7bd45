import type { ServerResponse } from 'node:http';
import { Controller, Delete, Get, Header, HttpCode, Post, Req, Res } from '@nestjs/common';
import { ApiBody, ApiExcludeEndpoint, ApiOkResponse, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger';
import { Env } from '../../config/env.js';
import { McpMethodNotAllowedError } from '../../mcp/front/front.errors.js';
import { HttpFront } from '../../mcp/front/http-front.js';
import { ApiErrors } from '../../platform/http/api-errors.decorator.js';
import { Access } from '../auth/access.decorator.js';
import type { OwnedNamespace } from '../auth/access.types.js';
import { Direct } from '../auth/direct.decorator.js';
import type { DirectRequest } from '../auth/direct.decorator.js';
import { ConnectionLinks } from './connection-links.js';
import { CallRecorder } from './log/call-recorder.js';
import { connectionIdParam, namespaceParam, ownConnections } from './connections.access.js';

@ApiTags('MCP')
@Controller('connect/:namespace/:connectionId/mcp')
@ApiParam(namespaceParam)
@ApiParam(connectionIdParam)
export class ConnectionMcpController {
  private readonly front: HttpFront;

  constructor(
    private readonly links: ConnectionLinks,
    private readonly recorder: CallRecorder,
    env: Env,
  ) {
    this.front = new HttpFront({ callTimeoutMs: env.upstreamCallTimeoutMs }, env);
  }

  /**
   * Use the connection as an MCP server. Any MCP client works with this URL over streamable HTTP, with the API key as
   * bearer; no handshake and no session are needed.
   */
  @Post()
  @HttpCode(200)
  @Direct()
  @Access('connections:execute', ownConnections)
  @ApiBody({
    schema: { type: 'object', example: { jsonrpc: '2.0', id: 1, method: 'tools/list' } },
    description: 'One JSON-RPC message.',
  })
  @ApiOkResponse({
    description: 'The JSON-RPC response; as an event stream when notifications precede it.',
    content: {
      'application/json': { schema: { type: 'object', example: { jsonrpc: '2.0', id: 1, result: { tools: [] } } } },
      'text/event-stream': { schema: { type: 'string' } },
    },
  })
  @ApiResponse({ status: 202, description: 'A notification was taken.' })
  @ApiErrors(400, 404, {
    status: 403,
    text: 'A web page of another site asked.',
    message: 'The Origin header names a web site that is not this service',
  })
  async serve(@Req() request: DirectRequest, @Res() response: ServerResponse): Promise<void> {
    const { grant, params } = request;
    await this.recorder.watching(request, response, (watch) =>
      this.front.serve(
        request,
        response,
        async () => {
          const channel = await this.links.find(grant.namespace as OwnedNamespace, params.connectionId as string);
          watch.connectionId = channel.id;
          return { channel, caller: `${grant.caller.keyId} ${channel.id}` };
        },
        watch,
      ),
    );
  }

  /** There is no stream to open: everything is answered on the POST that asked. */
  @Get()
  @Header('allow', 'POST')
  @ApiExcludeEndpoint()
  @Access('connections:execute', ownConnections)
  stream(): never {
    throw new McpMethodNotAllowedError();
  }

  /** There is no session to end. */
  @Delete()
  @Header('allow', 'POST')
  @ApiExcludeEndpoint()
  @Access('connections:execute', ownConnections)
  end(): never {
    throw new McpMethodNotAllowedError();
  }
}
