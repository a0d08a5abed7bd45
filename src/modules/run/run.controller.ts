import type { ServerResponse } from 'node:http';
import { Controller, Delete, Get, Head, HttpCode, Options, Patch, Post, Put, Req, Res } from '@nestjs/common';
import { ApiExcludeEndpoint, ApiParam, ApiTags } from '@nestjs/swagger';
import { rpcCode } from '../../mcp/protocol/protocol.js';
import { ApiMcp, pageRefused } from '../../mcp/server/api-mcp.decorator.js';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { Access, FastPath, type FastPathRequest } from '../auth/access.decorator.js';
import { RunService } from './run.service.js';

@ApiTags('MCP')
@Controller('run/:slug')
@ApiParam({
  name: 'slug',
  description:
    "The server's: `namespace--server`, or `namespace` of a namespace-only server, until its owner renames it.",
  example: 'acme--weather',
})
export class RunController {
  constructor(private readonly runs: RunService) {}

  /**
   * Use a registered server over MCP. Leads to its current release; any MCP client works with this URL over streamable
   * HTTP, with any API key as bearer. No handshake and no session are needed. What the server wants from each caller goes
   * into the headers and the query that its configSchema names.
   */
  @Post()
  @FastPath()
  @Access('servers:execute')
  @HttpCode(200)
  @ApiMcp()
  @ApiErrors(
    400,
    pageRefused,
    { status: 404, text: 'No server has this slug.', message: 'Server not found' },
    {
      status: 409,
      text: 'The server wants values that were not sent (-32002, `data` names them), or has no release that runs here.',
      rpcCode: rpcCode.notRunnable,
      message: 'The server acme/weather has no successful release yet: its owner publishes one.',
    },
  )
  async serve(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    const { grant, params } = request;
    const find = () => this.runs.find(params.slug as string);
    const path = (params.path as string[] | undefined) ?? [];
    await this.runs.forward(
      find,
      { keyId: grant.caller.keyId, accountId: grant.caller.accountId, path },
      request,
      response,
    );
  }

  /** The same at `/mcp` below it; other paths belong to the server. */
  @Post('*path')
  @HttpCode(200)
  @FastPath()
  @ApiExcludeEndpoint()
  @Access('servers:execute')
  serveBelow(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }

  /** The stream of a client's session: changes of lists and resources. Without a session there is none. */
  @Get(['', '*path'])
  @FastPath()
  @ApiExcludeEndpoint()
  @Access('servers:execute')
  stream(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }

  /** Ends a client's session. Without one there is nothing to end. */
  @Delete(['', '*path'])
  @FastPath()
  @ApiExcludeEndpoint()
  @Access('servers:execute')
  end(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }

  /** Other paths than MCP's belong to hosted code, with any method. */
  @Put('*path')
  @FastPath()
  @ApiExcludeEndpoint()
  @Access('servers:execute')
  putBelow(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }

  /** As PUT. */
  @Patch('*path')
  @FastPath()
  @ApiExcludeEndpoint()
  @Access('servers:execute')
  patchBelow(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }

  /** As PUT. */
  @Head('*path')
  @FastPath()
  @ApiExcludeEndpoint()
  @Access('servers:execute')
  headBelow(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }

  /** As PUT. */
  @Options('*path')
  @FastPath()
  @ApiExcludeEndpoint()
  @Access('servers:execute')
  optionsBelow(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }
}
