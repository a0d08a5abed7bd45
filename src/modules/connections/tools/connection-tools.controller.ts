import { MESSAGE_BYTES_MAX } from '../../../mcp/server/mcp-http-server.js';
import type { ServerResponse } from 'node:http';
import { Controller, Get, Header, HttpCode, Param, Post, Req, Res } from '@nestjs/common';
import { ApiBody, ApiExtraModels, ApiOkResponse, ApiParam, ApiTags, getSchemaPath } from '#api-docs';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { answerJson, JSON_TYPE } from '../../../platform/http/json-answer.js';
import { OpenRequests } from '../../../platform/http/open-requests.js';
import { readBody } from '../../../platform/http/body/request-body.js';
import {
  Access,
  CurrentCaller,
  CurrentNamespace,
  FastPath,
  type FastPathRequest,
} from '../../auth/access.decorator.js';
import type { Caller, OwnedNamespace } from '../../auth/access.types.js';
import {
  listedTools,
  connectionIdParam,
  namespaceParam,
  ownConnections,
  toolsOfConnections,
} from '../core/connections.access.js';
import { DisconnectCancellation } from '../../../mcp/server/response-sink.js';
import { CallToolResultDto, NamespaceToolsDto, ToolDto, toolExample, ToolListDto } from './connection-tools.dto.js';
import { ConnectionToolsService } from './connection-tools.service.js';

const toolPathParam = {
  name: 'toolPath',
  description: "The tool's name. `repo/search`, `repo%2Fsearch` and `repo.search` mean the same tool.",
  example: 'echo',
  type: String,
};

const failures = [
  400,
  404,
  {
    status: 409,
    text: 'The MCP server requires authorization.',
    code: 'auth_required',
    message:
      'The MCP server answered 401: it wants authorization. ' +
      'PUT the connection again with headers, for example {"headers": {"Authorization": "Bearer <token>"}}.',
  },
  {
    status: 502,
    text: 'The MCP server is down or does not speak MCP.',
    message: 'Nothing listens on 127.0.0.1:3001: is the server running, and is the port right?',
  },
  {
    status: 503,
    text: 'No local server is paired with the connection.',
    code: 'uplink_disconnected',
    message: 'No local server is paired with this connection.',
  },
  {
    status: 504,
    text: 'The MCP server did not answer in time.',
    message: '127.0.0.1:3001 did not answer completely within 50 s.',
  },
];

@ApiTags('Tools')
@ApiExtraModels(NamespaceToolsDto, ToolDto, ToolListDto)
@Controller('connect/:namespace')
@ApiParam(namespaceParam)
export class ConnectionToolsController {
  constructor(
    private readonly connectionToolsService: ConnectionToolsService,
    private readonly openRequests: OpenRequests,
  ) {}

  /** List the tools of a connection. */
  @Get(':connectionId/.tools')
  @Header('content-type', JSON_TYPE)
  @ApiParam(connectionIdParam)
  @Access('connections:read', listedTools)
  @ApiOkResponse({ type: ToolListDto, example: { tools: [toolExample] } })
  @ApiErrors(...failures.slice(1))
  list(
    @CurrentNamespace() namespace: OwnedNamespace,
    @Param('connectionId') id: string,
    @CurrentCaller() { grant }: Caller,
  ): Promise<string> {
    return this.connectionToolsService.list(namespace, id, grant?.tools);
  }

  /** Get one tool, or list the tools of a category. `repo` lists `repo.search` and `repo.issues.create`. Spec 4.5. */
  @Get(':connectionId/.tools/*toolPath')
  @Header('content-type', JSON_TYPE)
  @ApiParam(connectionIdParam)
  @ApiParam(toolPathParam)
  @Access('connections:read', listedTools)
  @ApiOkResponse({
    description: 'The tool, or `{tools: […]}` for a category.',
    schema: { oneOf: [{ $ref: getSchemaPath(ToolDto) }, { $ref: getSchemaPath(ToolListDto) }], example: toolExample },
  })
  @ApiErrors(...failures.slice(1))
  get(
    @CurrentNamespace() namespace: OwnedNamespace,
    @Param('connectionId') id: string,
    @Param('toolPath') path: string[],
    @CurrentCaller() { grant }: Caller,
  ): Promise<string> {
    return this.connectionToolsService.get(namespace, id, path.join('/'), grant?.tools);
  }

  /**
   * Call a tool. The body is the arguments object itself; the response is the unchanged result of the tool,
   * including a result with `isError`.
   */
  @Post(':connectionId/.tools/*toolPath')
  @HttpCode(200)
  @FastPath()
  @ApiParam(connectionIdParam)
  @ApiParam(toolPathParam)
  @ApiBody({ schema: { type: 'object', additionalProperties: true, example: { message: 'Hello' } } })
  @Access('connections:execute', toolsOfConnections)
  @ApiOkResponse({
    type: CallToolResultDto,
    description: "The tool's result.",
    example: { content: [{ type: 'text', text: 'Echo: Hello' }] },
  })
  @ApiErrors(...failures, {
    status: 422,
    text: 'The MCP server rejected the call.',
    message: 'Invalid arguments for tool echo',
  })
  async call(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    const { connectionId, toolPath } = request.params as { connectionId: string; toolPath: string[] };
    const body = await readBody(request, MESSAGE_BYTES_MAX, { isJson: true });
    const { caller } = request.grant;
    const namespace = request.grant.namespace as OwnedNamespace;
    const cancellation = new DisconnectCancellation(response);
    const tool = toolPath.join('/');
    const check = () => this.connectionToolsService.requireConnection(namespace, connectionId);
    this.openRequests.checkWhileOpen(request, check, () => tool);
    try {
      const call = { namespace, connectionId, path: tool, body, caller, cancellation };
      answerJson(response, await this.connectionToolsService.call(request, response, call));
    } finally {
      cancellation.stopWatching();
    }
  }

  /**
   * List the tools of all connections of a namespace.
   *
   * Lists the newest 100 connections; the response is keyed by connection id. A failing MCP server is listed with its
   * error and does not fail the others.
   */
  @Get('.tools')
  @Header('content-type', JSON_TYPE)
  @Access('connections:read', ownConnections)
  @ApiOkResponse({ schema: { type: 'object', additionalProperties: { $ref: getSchemaPath(NamespaceToolsDto) } } })
  @ApiErrors(404)
  listNamespace(@CurrentNamespace() namespace: OwnedNamespace): Promise<string> {
    return this.connectionToolsService.listNamespace(namespace);
  }
}
