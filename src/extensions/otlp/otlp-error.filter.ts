import { type ArgumentsHost, Catch } from '@nestjs/common';
import type { Request, Response } from 'express';
import { ErrorFilter } from '../../extension.js';
import { encodeStatus } from './otlp-records.js';

export const PROTOBUF = ['application/x-protobuf', 'application/protobuf'];

/** gRPC codes by HTTP status; other statuses are 13, INTERNAL. */
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

/**
 * Responds to an exporter that sends protobuf with the OTLP/HTTP Status in protobuf. JSON has the error body of REST.
 */
@Catch()
export class OtlpErrorFilter extends ErrorFilter {
  override catch(thrown: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<Request>();
    const response = host.switchToHttp().getResponse<Response>();
    if (request.is(PROTOBUF)) {
      response.json = (body: { error: string }) => {
        const status = { code: codes[response.statusCode] ?? 13, message: body.error };
        return response.type(PROTOBUF[0] ?? '').send(encodeStatus(status));
      };
    }
    super.catch(thrown, host);
  }
}
