import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Transform, type Readable, type TransformCallback } from 'node:stream';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import { HEAD_BYTES_MAX } from './hop-frames.js';

/** Four bytes say how long the head is. */
const LENGTH_BYTES = 4;

/**
 * Reads the head of a request from another process and leaves the rest unread.
 *
 * @throws InvalidInputError for one that is too long or breaks off
 */
export function readHead(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    let wanted = LENGTH_BYTES;
    const settle = (work: () => void) => {
      request.off('data', onData).off('end', onEnd).off('close', onEnd).off('error', onEnd).pause();
      work();
    };
    const onEnd = () =>
      settle(() => reject(new InvalidInputError('The request broke off before its head was complete')));
    const onData = (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes < wanted) return;
      const all = chunks.length === 1 ? chunk : Buffer.concat(chunks);
      wanted = LENGTH_BYTES + all.readUInt32BE(0);
      if (wanted > LENGTH_BYTES + HEAD_BYTES_MAX) {
        return settle(() => reject(new InvalidInputError(`The head is longer than ${HEAD_BYTES_MAX} bytes`)));
      }
      if (bytes < wanted) return;
      settle(() => {
        if (bytes > wanted) request.unshift(all.subarray(wanted));
        resolve(all.toString('utf8', LENGTH_BYTES, wanted));
      });
    };
    request.on('data', onData).on('end', onEnd).on('close', onEnd).on('error', onEnd);
  });
}

/**
 * The body of such a request. Ending it early ends neither the request nor the answer: what more comes is passed over.
 *
 * @param sha256 null for a body that nobody knew when it was signed
 */
export function bodyOf(request: IncomingMessage, sha256: string | null): Readable {
  const body = new CheckedBody(sha256);
  body.on('error', () => undefined);
  body.once('close', () => request.unpipe(body).resume());
  request.once('close', () => {
    if (!request.complete) body.destroy(new Error('the request broke off'));
  });
  return request.pipe(body);
}

/** Passes a body on and keeps its last piece back until the whole is known to be the one that was signed. */
class CheckedBody extends Transform {
  private readonly hash = createHash('sha256');
  private last: Buffer | null = null;

  constructor(private readonly sha256: string | null) {
    super();
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    if (this.sha256 === null) return done(null, chunk);
    this.hash.update(chunk);
    const before = this.last;
    this.last = chunk;
    done(null, before);
  }

  override _flush(done: TransformCallback): void {
    if (this.sha256 === null) return done();
    if (this.hash.digest('base64url') !== this.sha256) return done(new Error('the body was changed on its way'));
    done(null, this.last);
  }
}
