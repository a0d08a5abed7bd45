import type { ServerResponse } from 'node:http';
import {
  applyDecorators,
  Controller,
  Delete,
  Get,
  Head,
  HttpCode,
  Options,
  Patch,
  Post,
  Put,
  Req,
  Res,
} from '@nestjs/common';
import { ApiExcludeEndpoint, ApiParam, ApiTags } from '#api-docs';
import { rpcCode } from '../../mcp/protocol/protocol.js';
import { ApiMcp, pageRefused } from '../../mcp/server/api-mcp.decorator.js';
import { ErrorForm } from '../../platform/errors/error-form.decorator.js';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { Access, FastPath, type FastPathRequest } from '../auth/access.decorator.js';
import { RunService } from './run.service.js';

/** A route of the run endpoint that the API description leaves out. */
const HiddenRoute = (method: (path: string | string[]) => MethodDecorator, path: string | string[]) =>
  applyDecorators(method(path), FastPath(), ApiExcludeEndpoint(), Access('servers:execute'));

@ApiTags('MCP')
@ErrorForm('run', (path) => (path.length > '/run/'.length ? 'json-rpc' : 'registry'))
@Controller('run/:slug')
@ApiParam({
  name: 'slug',
  description:
    "The server's: `namespace--server`, or `namespace` of a namespace-only server, until its owner renames it.",
  example: 'acme--weather',
})
export class RunController {
  constructor(private readonly runService: RunService) {}

  /**
   * Use a registered server over MCP. Leads to its current release; any MCP client works with this URL over streamable
   * HTTP, with an API key that may call it as bearer. No handshake and no session are needed. Configuration values of each caller go into
   * the headers and the query that the server's configSchema names.
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
      text: 'Required configuration values are missing (-32002, `data` names them), or no release runs here.',
      rpcCode: rpcCode.notRunnable,
      message: 'The server acme/weather has no successful release yet: its owner publishes one.',
    },
  )
  serve(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    const { slug, path = [] } = request.params as { slug: string; path?: string[] };
    return this.runService.forward({ slug, caller: request.grant.caller, path }, request, response);
  }

  /** Serves MCP at `/mcp` under the run address; other paths belong to the server. */
  @HiddenRoute(Post, '*path')
  @HttpCode(200)
  serveBelow(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }

  /** Streams changes of lists and resources to a client's session. Without a session, there is no stream. */
  @HiddenRoute(Get, ['', '*path'])
  stream(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }

  /** Closes a client's session. Without a session it does nothing. */
  @HiddenRoute(Delete, ['', '*path'])
  end(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }

  /** Forwards a PUT request to the server: paths other than MCP's belong to hosted code, with any method. */
  @HiddenRoute(Put, '*path')
  putBelow(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }

  /** Forwards a PATCH request to the server. */
  @HiddenRoute(Patch, '*path')
  patchBelow(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }

  /** Forwards a HEAD request to the server. */
  @HiddenRoute(Head, '*path')
  headBelow(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }

  /** Forwards an OPTIONS request to the server. */
  @HiddenRoute(Options, '*path')
  optionsBelow(@Req() request: FastPathRequest, @Res() response: ServerResponse): Promise<void> {
    return this.serve(request, response);
  }
}
