import type { ServerResponse } from 'node:http';
import { Controller, Delete, Get, HttpCode, Post, Req, Res } from '@nestjs/common';
import { ApiParam, ApiQuery, ApiTags } from '#api-docs';
import { ApiMcp, pageRefused } from '../../../mcp/server/api-mcp.decorator.js';
import { McpHttpServer } from '../../../mcp/server/mcp-http-server.js';
import type { AggregateForm } from '../../../mcp/aggregate/aggregate-channel.js';
import { GrantedToolsChannel } from '../../../mcp/client/tools/tool-choice.js';
import { separators } from '../../../mcp/aggregate/member-names.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Access, FastPath, type FastPathRequest } from '../../auth/access.decorator.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { McpSessionRoute, namespaceParam, toolsOfConnections } from '../core/connections.access.js';
import { NamespaceServers } from './namespace-servers.js';

const listed = {
  tools: [
    {
      name: 'my-first__echo',
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
    private readonly namespaceServers: NamespaceServers,
    private readonly mcpHttpServer: McpHttpServer,
  ) {}

  /**
   * Use all connections of a namespace as one MCP server. Tools and prompts are named `connectionId__name`, which matches
   * `^[a-zA-Z0-9_-]{1,64}$`: other characters become `_`, and longer or colliding names end in a hash of 6 characters. A call
   * also accepts `connectionId.name`, and the tool's own name where one connection alone has it. URIs of resources begin with
   * `connection://connectionId/`, including URIs in results. The instructions of the servers are joined: 4 KB of each, 16 KB in all.
   * An ambiguous name belongs to the connection with the longer id; with `separator=.` lists leave out the other one and name
   * it in `_meta["slipway/shadowed"]`. The newest 1,000 connections take part, up to 100 on each page of a list. A connection
   * that fails or waits for its user does not fail the list, which names it in `_meta["slipway/failed"]`. Items that
   * clients would refuse are repaired, or left out and named in `_meta["slipway/left-out"]`. The newest connection
   * that supports a method without a connection name serves it; skills and tasks are served by the connection that has them.
   */
  @Post()
  @FastPath()
  @Access('connections:execute', toolsOfConnections)
  @ApiQuery({
    name: 'separator',
    required: false,
    schema: { type: 'string', enum: [...separators], default: separators[0] },
    description:
      'The separator of connection and name in lists. With `.` both are spelled as they are. Calls accept both forms.',
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
    const { url = '' } = request;
    const namespace = request.grant.namespace as OwnedNamespace;
    const { accountId: account, keyId: principal, endpoint, grant, scopes, loginsEpoch } = request.grant.caller;
    const mark = url.indexOf('?');
    const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1));
    const requestedSeparator = query.get('separator') ?? separators[0];
    const separator = separators.find((choice) => choice === requestedSeparator);
    if (separator === undefined) throw new InvalidInputError(`separator must be one of: ${separators.join(' ')}`);
    const mode = query.get('mode') ?? 'all';
    if (mode !== 'all' && mode !== 'search') throw new InvalidInputError('mode must be all or search');
    const tools = grant?.tools ?? undefined;
    const form: AggregateForm = { separator, isSearched: mode === 'search', tools };
    const find = () => {
      const channel = this.namespaceServers.find(namespace, form);
      return tools ? new GrantedToolsChannel(channel, () => true) : channel;
    };
    await this.mcpHttpServer.serve(request, response, async () => ({
      channel: find(),
      account,
      principal,
      endpoint,
      grant,
      scopes,
      loginsEpoch,
      target: `${namespace.id} ${form.separator} ${form.isSearched}`,
    }));
  }

  /** The SSE stream of a client's session, with changes of lists and resources. */
  @McpSessionRoute(Get, toolsOfConnections)
  stream(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }

  /** Closes the MCP session of a client. */
  @McpSessionRoute(Delete, toolsOfConnections)
  end(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }
}
