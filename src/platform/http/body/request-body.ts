import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { InvalidInputError, TooLargeError, TooSlowError, UnsupportedMediaError } from '../../errors/domain-error.js';
import { withoutBom } from '../../text/json.js';
import { JsonScanner } from '../../text/json-bounds.js';
import { bodyLeaseOf } from './body-budget.js';
import { hasBody } from './unread-body.js';

/** Maximum size of a JSON body of ordinary routes; tool calls and MCP messages have their own limit. */
const JSON_BYTES_MAX = 1024 * 1024;

const unpackers = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
} as const;

export interface BodyFormat {
  /** Maximum size after unpacking. */
  bytesMax: number;
  /** True to apply the JSON limits while the body arrives. */
  isJson?: boolean;
  isUnpacked?: boolean;
}

/**
 * Reads a whole request body. Its bytes count against the budget of the caller until the response. A body that was
 * already read is an immediate error: its end would never come.
 *
 * @throws TooLargeError, UnavailableError or InvalidInputError (above a JSON limit), before more is read; TooSlowError
 * for a body without a key that takes too long; UnsupportedMediaError for an unsupported coding; InvalidInputError for
 * a body that is cut off
 */
export function readBytes(request: IncomingMessage, format: BodyFormat): Promise<Buffer> {
  return new Promise((resolve, reject) => receive(request, format, resolve, reject));
}

/** Reads uncompressed text, without its byte order mark. @throws as {@link readBytes} */
export function readBody(
  request: IncomingMessage,
  bytesMax: number,
  { isJson = false }: Pick<BodyFormat, 'isJson'> = {},
): Promise<string> {
  return new Promise((resolve, reject) =>
    receive(request, { bytesMax, isJson }, (bytes) => resolve(withoutBom(bytes.toString('utf8'))), reject),
  );
}

/** Receives a body. Errors can be thrown before the first byte. */
function receive(
  request: IncomingMessage,
  format: BodyFormat,
  resolve: (bytes: Buffer) => void,
  reject: (error: Error) => void,
): void {
  const lease = bodyLeaseOf(request);
  const bytesMax = Math.min(format.bytesMax, lease.form?.bytesMax ?? Infinity);
  if (request.readableEnded) throw new Error('The body was read before');
  const codings = (request.headers['content-encoding'] ?? '').toLowerCase().split(',');
  const coding = codings
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity')
    .join(', ');
  const isPacked = coding !== '';
  if (isPacked && !(format.isUnpacked && Object.hasOwn(unpackers, coding))) {
    const message = `Send the body as it is: the encoding "${coding}" is not taken here`;
    throw new UnsupportedMediaError(message, format.isUnpacked ? 'gzip, deflate, br' : 'identity');
  }
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) throw tooLarge(bytesMax);
  lease.begin();
  const source: Readable = isPacked ? request.pipe(unpackers[coding as keyof typeof unpackers]()) : request;
  const scanner = format.isJson ? new JsonScanner() : null;
  const chunks: Buffer[] = [];
  let bytes = 0;
  const { form } = lease;
  const late = form && setTimeout(() => refuse(new TooSlowError(form.msMax)), form.msMax);
  const stop = () => clearTimeout(late ?? undefined);
  const refuse = (error: Error) => {
    stop();
    source.off('data', onData).off('end', onEnd);
    if (isPacked) request.unpipe();
    request.pause();
    reject(error);
  };
  const onData = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > bytesMax) return refuse(tooLarge(bytesMax));
    const exceeded = scanner?.push(chunk);
    if (exceeded) return refuse(new InvalidInputError(`The body has ${exceeded}`));
    try {
      lease.add(chunk.length);
    } catch (error) {
      return refuse(error as Error);
    }
    chunks.push(chunk);
  };
  const onEnd = () => {
    stop();
    lease.complete();
    const [only] = chunks;
    resolve(chunks.length === 1 && only ? only : Buffer.concat(chunks));
  };
  source.on('data', onData).on('end', onEnd);
  request.on('error', () => refuse(new InvalidInputError('The body broke off before its end')));
  if (isPacked) {
    source.on('error', ({ message }) => refuse(new InvalidInputError(`The body cannot be unpacked: ${message}`)));
  }
}

function tooLarge(bytesMax: number): TooLargeError {
  return new TooLargeError(`The request body is larger than ${bytesMax} bytes.`);
}

/** Marks a route that reads a body other than JSON itself. */
export const UNREAD_BODY = Symbol('unread body');

/**
 * Reads an object or array in JSON, up to 1 MB, optionally compressed.
 *
 * @returns undefined without a body; {@link UNREAD_BODY} for another type
 * @throws as {@link readBytes}; InvalidInputError for other content
 */
export async function readJsonBody(request: IncomingMessage): Promise<unknown> {
  if (!hasBody(request)) return undefined;
  const type = request.headers['content-type'] ?? '';
  if (!/^application\/json\s*(?:;|$)/i.test(type)) return UNREAD_BODY;
  const [, charset = 'utf-8'] = /;\s*charset="?([^\s;"]+)/i.exec(type) ?? [];
  if (!/^(?:utf-?8|us-ascii)$/i.test(charset)) throw new InvalidInputError(`Send JSON in UTF-8, not in "${charset}"`);
  const bytes = await readBytes(request, { bytesMax: JSON_BYTES_MAX, isJson: true, isUnpacked: true });
  const text = withoutBom(bytes.toString('utf8'));
  if (text === '') return {};
  const value = parseBody(text);
  if (typeof value === 'object' && value !== null) return value;
  throw new InvalidInputError('The body is not valid JSON: it must be an object or an array');
}

/** @throws InvalidInputError for text that is not JSON */
export function parseBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InvalidInputError(`The body is not valid JSON: ${(error as Error).message}`);
  }
}
