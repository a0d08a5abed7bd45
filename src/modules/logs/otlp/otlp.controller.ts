import { Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import { ApiBody, ApiConsumes, ApiOkResponse, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Access } from '../../auth/access.decorator.js';
import { ApiServerName, ownServerOrNone, TargetServer } from '../../servers/server.decorator.js';
import type { ServerRef } from '../../servers/server.types.js';
import { otlpExample } from '../search/runtime-log.examples.js';
import { serverNotFound } from '../search/runtime-logs.controller.js';
import { RuntimeLogsService } from '../search/runtime-logs.service.js';
import { PROTOBUF, readExport } from './otlp-body.js';
import { encodeAnswer } from './otlp-messages.js';

@ApiTags('Runtime logs')
@ApiServerName()
@Controller('servers/:qualifiedName/otlp/v1/logs')
export class OtlpController {
  constructor(private readonly logs: RuntimeLogsService) {}

  /**
   * Send log records with an OpenTelemetry exporter. OTLP/HTTP, protobuf or JSON, also gzip, 1 MB unpacked. Records of a
   * trace are shown as one invocation, what belongs to no trace as one for each export. What a later export has of a trace
   * is added to it for 15 minutes where it comes to the same process, as it does over one connection; else it is an
   * invocation of its own. `exception.*` become exceptions; `mcp.method.name`, `gen_ai.tool.name`, `http.request.method`,
   * `http.response.status_code`, `url.full` and `url.path` describe the request. Other attributes are not kept.
   */
  @Post()
  @HttpCode(200)
  @ApiConsumes('application/json', PROTOBUF)
  @ApiBody({
    schema: { type: 'object', description: 'An ExportLogsServiceRequest.' },
    examples: { one: { value: otlpExample } },
  })
  @Access('servers:write', ownServerOrNone)
  @ApiOkResponse({
    description: 'An ExportLogsServiceResponse in the form of the request; empty when every record was taken.',
    schema: { type: 'object' },
    example: {},
  })
  @ApiErrors(400, serverNotFound, {
    status: 503,
    message: 'Too many log records are waiting to be written: send the same again in a few seconds',
  })
  async send(@TargetServer() server: ServerRef, @Req() request: Request, @Res() response: Response): Promise<void> {
    const answer = this.logs.takeExport(server, await readExport(request, response));
    if (request.is(PROTOBUF)) response.type(PROTOBUF).send(encodeAnswer(answer));
    else response.json(answer);
  }
}
