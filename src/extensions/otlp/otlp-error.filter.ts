import { type ArgumentsHost, Catch } from '@nestjs/common';
import type { Request, Response } from 'express';
import { ErrorFilter } from '../../extension.js';
import { encodeStatus } from './otlp-records.js';

/** The media types of protobuf; exporters send the first one. */
export const PROTOBUF = ['application/x-protobuf', 'application/protobuf'];

/** Codes of gRPC by HTTP status; other statuses are 13, INTERNAL. */
const codes: Readonly<Record<number, number>> = {
  400: 3,
  401: 16,
  403: 7,
  404: 5,
  408: 4,
  413: 8,
  415: 3,
  429: 8,
  503: 14,
  507: 8,
};

/** Adds the Status of OTLP/HTTP to errors of exports, and sends it alone, in protobuf, to an exporter that sends protobuf. */
@Catch()
export class OtlpErrorFilter extends ErrorFilter {
  override catch(thrown: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<Request>();
    const response = host.switchToHttp().getResponse<Response>();
    const sendJson = response.json.bind(response);
    response.json = (body: { error: string }) => {
      const status = { code: codes[response.statusCode] ?? 13, message: body.error };
      if (request.is(PROTOBUF)) return response.type(PROTOBUF[0] ?? '').send(encodeStatus(status));
      return sendJson({ ...body, ...status });
    };
    super.catch(thrown, host);
  }
}
