import { Controller, HttpCode, Post, Req, Res, UseFilters } from '@nestjs/common';
import { ApiBody, ApiConsumes, ApiOkResponse, ApiTags } from '#api-docs';
import type { Request, Response } from 'express';
import {
  Access,
  ApiErrors,
  ApiServerName,
  ownServerOrNone,
  readBytes,
  type ServerRef,
  TargetServer,
  UnsupportedMediaError,
} from '../../extension.js';
import { decodeExport, encodeAnswer } from './otlp-records.js';
import { OtlpErrorFilter, PROTOBUF } from './otlp-error.filter.js';
import { OtlpService } from './otlp.service.js';

/** Maximum size of an unpacked export: decoding 1 MB of the worst case blocks the event loop for about 80 ms. */
const EXPORT_BYTES_MAX = 1024 * 1024;

/** One log record in OTLP's JSON form, as exporters send it. */
const otlpExample = {
  resourceLogs: [
    {
      scopeLogs: [
        {
          logRecords: [
            {
              severityNumber: 9,
              body: { stringValue: 'Looking up the weather in Ulm' },
              traceId: '5b8efff798038103d269b633813fc60c',
              attributes: [{ key: 'gen_ai.tool.name', value: { stringValue: 'forecast' } }],
            },
          ],
        },
      ],
    },
  ],
};

@ApiTags('Runtime logs')
@ApiServerName()
@UseFilters(OtlpErrorFilter)
@Controller('servers/:qualifiedName/otlp/v1/logs')
export class OtlpController {
  constructor(private readonly otlpService: OtlpService) {}

  /**
   * Send log records with an OpenTelemetry exporter. OTLP/HTTP, protobuf or JSON, also gzip, 1 MB unpacked. The records of
   * a trace become one invocation, records without a trace one per export. Records of later exports are added to their trace
   * for 15 minutes if they reach the same process, as over one connection; otherwise they become an invocation of their own.
   * `exception.*` become exceptions; `mcp.method.name`, `gen_ai.tool.name`, `http.request.method`,
   * `http.response.status_code`, `url.full` and `url.path` describe the request. Other attributes are not stored.
   */
  @Post()
  @HttpCode(200)
  @ApiConsumes('application/json', ...PROTOBUF)
  @ApiBody({
    schema: { type: 'object', description: 'An ExportLogsServiceRequest.' },
    examples: { one: { value: otlpExample } },
  })
  @Access('servers:publish', ownServerOrNone)
  @ApiOkResponse({
    description: 'An ExportLogsServiceResponse in the form of the request; empty if all records were accepted.',
    content: {
      'application/json': { schema: { type: 'object' }, example: {} },
      [PROTOBUF[0] ?? '']: { schema: { type: 'string', format: 'binary' } },
    },
  })
  @ApiErrors(
    400,
    { status: 404, message: 'Server not found' },
    { status: 503, message: 'Too many log records are waiting to be written: send the same again in a few seconds' },
  )
  async send(@TargetServer() server: ServerRef, @Req() request: Request, @Res() response: Response): Promise<void> {
    const isProtobuf = Boolean(request.is(PROTOBUF));
    if (!isProtobuf && !request.is('application/json')) {
      throw new UnsupportedMediaError('Send OTLP as application/x-protobuf or application/json');
    }
    const body: unknown = isProtobuf
      ? decodeExport(await readBytes(request, { bytesMax: EXPORT_BYTES_MAX, isUnpacked: true }))
      : request.body;
    const answer = await this.otlpService.takeExport(server, body);
    if (isProtobuf) response.type(String(request.headers['content-type'])).send(encodeAnswer(answer));
    else response.json(answer);
  }
}
