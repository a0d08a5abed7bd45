/**
 * Requests ask for uncoded bodies (RFC 9110, 8.4.1); some servers and proxies code their responses nevertheless.
 * `gzip`, `x-gzip`, `deflate` (with or without the header of zlib) and `br` are decoded while they arrive, at most two
 * on top of each other. Decoding is tolerant of a missing end, as browsers are.
 *
 * The caller limits the decoded bytes and destroys the stream above the limit: a small body can expand to a huge one.
 */
import { pipeline, type Duplex, type Readable, Transform } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';

export const uncoded = { 'accept-encoding': 'identity' };

const CODINGS_MAX = 2;

const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = constants;
/** Options by which every chunk is decoded immediately, and a missing end is not an error. */
const zlib = { flush: Z_SYNC_FLUSH, finishFlush: Z_SYNC_FLUSH };
const brotli = { flush: BROTLI_OPERATION_FLUSH, finishFlush: BROTLI_OPERATION_FLUSH };

/** First bytes of a zlib stream, and the lower half of the first one, which distinguishes it from raw `deflate`. */
const ZLIB_HEADER = Buffer.from([0x78, 0x9c]);
const ZLIB_METHOD = 8;

const gunzip = () => [createGunzip(zlib)];

const decoders: Readonly<Record<string, () => Duplex[]>> = {
  gzip: gunzip,
  'x-gzip': gunzip,
  deflate: () => [withZlibHeader(), createInflate(zlib)],
  br: () => [createBrotliDecompress(brotli)],
};

export class UnknownCodingError extends Error {
  /** @param value is shortened */
  constructor(value: string) {
    super(
      `in the content coding "${value.slice(0, 60)}", although none was asked for: gzip, deflate and br are read, ` +
        'at most two of them. Switch its compression off, at the server or at a proxy before it',
    );
  }
}

/**
 * Returns the body itself without a coding. Destroying the result destroys the body.
 *
 * @param encoding the `Content-Encoding` header
 *
 * @throws UnknownCodingError, whose message completes "sent a response"
 */
export function decodeBody(body: Readable, encoding: string | string[] | undefined): Readable {
  const value = String(encoding ?? '');
  const names = value
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity');
  if (names.length > CODINGS_MAX || !names.every((name) => Object.hasOwn(decoders, name))) {
    body.on('error', () => undefined).destroy();
    throw new UnknownCodingError(value);
  }
  const stages = names.reverse().flatMap((name) => decoders[name]?.() ?? []);
  if (stages.length === 0) return body;
  return pipeline([body, ...stages], () => undefined) as unknown as Duplex;
}

/** Adds the header of a zlib stream; decoding does not need its checksum. */
function withZlibHeader(): Transform {
  let isBegun = false;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (!isBegun && ((chunk[0] ?? 0) & 0xf) !== ZLIB_METHOD) this.push(ZLIB_HEADER);
      isBegun = true;
      done(null, chunk);
    },
  });
}
