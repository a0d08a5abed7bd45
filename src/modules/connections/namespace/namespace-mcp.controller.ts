import type { ServerResponse } from 'node:http';
import { Controller, Delete, Get, HttpCode, Post, Req, Res } from '@nestjs/common';
import { ApiExcludeEndpoint, ApiParam, ApiQuery, ApiTags } from '@nestjs/swagger';
import { ApiMcp, pageRefused } from '../../../mcp/server/api-mcp.decorator.js';
import { McpHttpServer } from '../../../mcp/server/mcp-http-server.js';
import { separators } from '../../../mcp/aggregate/member-names.js';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Access } from '../../auth/access.decorator.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { FastPath } from '../../auth/fast-path.decorator.js';
import type { FastPathRequest } from '../../auth/fast-path.decorator.js';
import { namespaceParam, ownConnections } from '../core/connections.access.js';
import { NamespaceServers } from './namespace-servers.js';
import { formOf } from './aggregate-form.js';

const listed = {
  tools: [
    {
      name: 'my-first.echo',
      description: 'Echoes back the input string',
      inputSchema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
    },
  ],
  _meta: {
    'slipway/failed': [
      {
        connectionId: 'local',
        state: 'error',
        message: 'Nothing listens on 127.0.0.1:3001: is the server running, and is the port right?',
      },
    ],
  },
};

@ApiTags('MCP')
@Controller('connect/:namespace/.mcp')
@ApiParam(namespaceParam)
export class NamespaceMcpController {
  constructor(
    private readonly unions: NamespaceServers,
    private readonly front: McpHttpServer,
  ) {}

  /**
   * Use all connections of a namespace as one MCP server. Tools and prompts are named `connectionId.name`; resources have
   * `connection://connectionId/` in front of their URI. A name that can be read in two ways means the connection with the
   * longer id; what is shadowed by that is left out of lists, which say so in `_meta["slipway/shadowed"]`. The newest 1,000
   * connections take part, up to 100 on each page of a list. One that fails or waits for its user fails nothing: it stands
   * in `_meta["slipway/failed"]`.
   */
  @Post()
  @FastPath()
  @Access('connections:execute', ownConnections)
  @ApiQuery({
    name: 'separator',
    required: false,
    schema: { type: 'string', enum: [...separators], default: '.' },
    description:
      'What stands between connection and name. `__` is for model APIs that refuse dots, and replaces them all.',
  })
  @ApiQuery({
    name: 'mode',
    required: false,
    schema: { type: 'string', enum: ['all', 'search'], default: 'all' },
    description:
      '`search` offers three tools, `search_tools`, `describe_tool` and `call_tool`, so that a thousand tools do not ' +
      "fill a model's context.",
  })
  @HttpCode(200)
  @ApiMcp(listed)
  @ApiErrors(400, 404, pageRefused)
  async serve(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    const { grant, url } = request;
    const namespace = grant.namespace as OwnedNamespace;
    const form = formOf(url ?? '');
    await this.front.serve(request, response, async () => ({
      channel: this.unions.find(namespace, form),
      account: grant.caller.accountId,
      principal: grant.caller.keyId,
      target: `${namespace.id} ${form.separator} ${form.isSearched}`,
    }));
  }

  /** The stream of a client's session: changes of lists and resources. Without a session there is none. */
  @Get()
  @FastPath()
  @ApiExcludeEndpoint()
  @Access('connections:execute', ownConnections)
  stream(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }

  /** Ends a client's session. Without one there is nothing to end. */
  @Delete()
  @FastPath()
  @ApiExcludeEndpoint()
  @Access('connections:execute', ownConnections)
  end(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }
}
