import express, { type Request, type Response } from 'express';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { decodeExport } from './otlp-messages.js';

/** The form of protobuf exporters, which is what they use unless told otherwise. */
export const PROTOBUF = 'application/x-protobuf';

/** Of one export, unpacked: decoding 1 MB of the worst there can be takes some 80 ms, in which nobody else is served. */
const EXPORT_BYTES_MAX = 1024 * 1024;

const parse = express.raw({ type: PROTOBUF, limit: EXPORT_BYTES_MAX });

/**
 * The export in a request, in either form; packed ones are unpacked, to 1 MB at most.
 *
 * @throws InvalidInputError; what Express' parser throws, which the error filter knows
 */
export async function readExport(request: Request, response: Response): Promise<unknown> {
  if (request.is('application/json')) return request.body;
  if (!request.is(PROTOBUF)) {
    throw new InvalidInputError('Send OTLP as application/x-protobuf or application/json');
  }
  await new Promise<void>((resolve, reject) => {
    parse(request, response, (error?: Error | string) => (error instanceof Error ? reject(error) : resolve()));
  });
  const body: unknown = request.body;
  return decodeExport(Buffer.isBuffer(body) ? body : Buffer.alloc(0));
}
