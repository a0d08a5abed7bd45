import { Controller, HttpCode, Put, Req } from '@nestjs/common';
import { ApiBody, ApiConsumes, ApiExtraModels, ApiTags, getSchemaPath } from '#api-docs';
import type { Request } from 'express';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Access, CurrentCaller } from '../../auth/access.decorator.js';
import type { Caller } from '../../auth/access.types.js';
import { ApiServerName, publishedServer, TargetServer } from '../../servers/server.decorator.js';
import type { ServerRef } from '../../servers/server.types.js';
import { readPublishForm } from './publish-form.js';
import { ExternalPayloadDto, HostedPayloadDto, PublishedDto, StdioPayloadDto } from './publish.dto.js';
import { PublishService } from './publish.service.js';

const payloads = [ExternalPayloadDto, HostedPayloadDto, StdioPayloadDto];

const examples = {
  external: {
    summary: 'An MCP server that runs elsewhere',
    value: { payload: { type: 'external', upstreamUrl: 'http://127.0.0.1:3001/mcp' } },
  },
  hosted: { summary: 'A JavaScript module, with the file `module`', value: { payload: { type: 'hosted' } } },
  stdio: { summary: 'An MCPB bundle, with the file `bundle`', value: { payload: { type: 'stdio', runtime: 'node' } } },
};

@ApiTags('Releases')
@ApiServerName()
@Controller('servers/:qualifiedName/releases')
export class PublishController {
  constructor(private readonly publishService: PublishService) {}

  /**
   * Publish a release. Send a form with the text part `payload`, and with the files its type needs. Follow it with
   * `GET …/releases/{id}` or its stream. It cancels an unfinished release of the same server.
   */
  @Put()
  @HttpCode(202)
  @Access('servers:publish', publishedServer)
  @ApiConsumes('multipart/form-data')
  @ApiExtraModels(...payloads)
  @ApiBody({
    examples,
    schema: {
      type: 'object',
      required: ['payload'],
      properties: {
        payload: {
          // Swagger UI offers no choice of examples for a form.
          description: Object.values(examples)
            .map(({ summary, value }) => `${summary}: \`${JSON.stringify(value.payload)}\``)
            .join('\n\n'),
          oneOf: payloads.map((payload) => ({ $ref: getSchemaPath(payload) })),
          example: examples.external.value.payload,
        },
        module: { type: 'string', format: 'binary', description: 'For `hosted`: a JavaScript module, at most 10 MB.' },
        sourcemap: { type: 'string', format: 'binary', description: 'For `hosted`: its source map, at most 20 MB.' },
        bundle: { type: 'string', format: 'binary', description: 'For `stdio`: an MCPB bundle, at most 25 MB.' },
      },
    },
    encoding: { payload: { contentType: 'application/json' } },
  })
  @ApiErrors(
    { status: 400, message: 'Missing required part: bundle' },
    { status: 404, text: 'The server or its namespace does not exist.', message: 'Server not found' },
    413,
    {
      status: 503,
      text: 'A file of the form was unused, and removed just then. `Retry-After` says when to try again.',
      message: 'An uploaded file was removed at the same moment: publish again.',
    },
    {
      status: 507,
      text: 'The disk of the service is full.',
      message: 'This service has no space left to store this: its operator must free some. Nothing was stored.',
    },
  )
  publish(
    @TargetServer() server: ServerRef,
    @CurrentCaller() caller: Caller,
    @Req() request: Request,
  ): Promise<PublishedDto> {
    return this.publishService.publish(server, caller, (keep) => readPublishForm(request, keep, server.namespaceId));
  }
}
