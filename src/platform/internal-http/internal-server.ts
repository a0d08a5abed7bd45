import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Transform, type Readable, type TransformCallback } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Injectable, Logger } from '@nestjs/common';
import { InvalidInputError, routeNotFound } from '../errors/domain-error.js';
import { isSerializable, serializeError } from './error-codec.js';
import {
  END_FRAME,
  framePrefix,
  HEAD_BYTES_MAX,
  MESSAGE_BYTES_MAX,
  parsePrefix,
  PREFIX_BYTES,
  textFrame,
} from './frames.js';
import { INTERNAL_HEADER, InternalSignatures, type SignedHead } from './internal-signatures.js';

export interface InternalRequest<Head> {
  head: Head;
  /** The body; null without one. Fails before its last piece when its digest is not the signed one. */
  body: Readable | null;
  /** Returns the body; empty without one. @throws NotFoundError when the digest is not the signed one */
  text(): Promise<string>;
}

@Injectable()
export class InternalServer {
  constructor(private readonly internalSignatures: InternalSignatures) {}

  /**
   * Accepts a request and reads its head.
   *
   * @throws NotFoundError for a request that is not signed, before its body is read; InvalidInputError for a head that
   * is cut off or too long
   */
  async accept<Head>(request: IncomingMessage): Promise<InternalRequest<Head>> {
    const path = request.url ?? '';
    const isSigned = this.internalSignatures.verify(path, request.headers[INTERNAL_HEADER]);
    if (!isSigned) throw routeNotFound('POST', path);
    const headText = await readHead(request);
    if (!isSigned(headText)) throw routeNotFound('POST', path);
    const { head, body: signed } = JSON.parse(headText) as SignedHead;
    if (!signed) request.resume();
    // Destroying it early stops neither the request nor the response: the rest of the body is discarded.
    const body = signed && new VerifiedBody(signed.sha256);
    if (body) {
      body.on('error', () => undefined);
      body.once('close', () => request.unpipe(body).resume());
      request.once('close', () => {
        if (!request.complete) body.destroy(new Error('the request broke off'));
      });
      request.pipe(body);
    }
    const readText = async () => {
      if (!body) return '';
      return text(body).catch(() => {
        throw routeNotFound('POST', path);
      });
    };
    return { head: head as Head, body, text: readText };
  }
}

/** Response of an internal request. Frames after the end, or after the other process disconnected, are dropped. */
export class InternalAnswer {
  private readonly logger = new Logger('internal');
  private isOver = false;

  /** @param onLeft called once, if the other process disconnects before the end */
  constructor(
    private readonly response: ServerResponse,
    onLeft: () => void = () => undefined,
  ) {
    const handleClose = () => {
      if (this.isOver) return;
      this.isOver = true;
      onLeft();
    };
    response.on('error', handleClose).on('close', handleClose);
  }

  get isBegun(): boolean {
    return this.response.headersSent;
  }

  head(value: object): void {
    if (!this.isOver) this.begin().write(textFrame('head', JSON.stringify(value)));
  }

  /** @returns false when the caller must wait for the response's `drain` */
  data(chunk: Buffer): boolean {
    if (this.isOver || chunk.length === 0) return true;
    this.response.write(framePrefix('data', chunk.length));
    return this.response.write(chunk);
  }

  message(value: object): void {
    if (this.isOver) return;
    this.begin().write(textFrame('message', JSON.stringify(value)));
    // The other process has left a whole message of the largest size unread.
    if (this.response.writableLength > MESSAGE_BYTES_MAX) this.response.destroy();
  }

  complete(): void {
    this.finish(END_FRAME);
  }

  fail(error: Error): void {
    this.finish(textFrame('failure', JSON.stringify(serializeError(error))));
  }

  /** Logs an error that other processes cannot read. The promise never rejects. */
  async endAfter(work: Promise<void>): Promise<void> {
    try {
      await work;
      this.complete();
    } catch (error) {
      if (!isSerializable(error)) this.logger.error({ msg: 'a request of another process failed', err: error });
      this.fail(error as Error);
    }
  }

  private begin(): ServerResponse {
    const { response } = this;
    if (response.headersSent) return response;
    response.writeHead(200, { 'content-type': 'application/octet-stream' });
    return response;
  }

  private finish(frame: Buffer): void {
    if (this.isOver) return;
    this.begin();
    this.isOver = true;
    this.response.end(frame);
  }
}

/** Reads the head, and leaves the rest of the request unread. @throws InvalidInputError */
function readHead(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    let neededBytes = PREFIX_BYTES;
    const settle = (work: () => void) => {
      request.off('data', onData).off('end', onEnd).off('close', onEnd).off('error', onEnd).pause();
      work();
    };
    const refuse = (message: string) => settle(() => reject(new InvalidInputError(message)));
    const onEnd = () => refuse('The request broke off before its head was complete');
    const onData = (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes < neededBytes) return;
      const all = chunks.length === 1 ? chunk : Buffer.concat(chunks);
      let headBytes: number;
      try {
        const prefix = parsePrefix(all);
        if (prefix.kind !== 'head') throw new Error('not a head');
        headBytes = prefix.bytes;
      } catch {
        return refuse(`The head is not a frame of up to ${HEAD_BYTES_MAX} bytes`);
      }
      neededBytes = PREFIX_BYTES + headBytes;
      if (bytes < neededBytes) return;
      settle(() => {
        if (bytes > neededBytes) request.unshift(all.subarray(neededBytes));
        resolve(all.toString('utf8', PREFIX_BYTES, neededBytes));
      });
    };
    request.on('data', onData).on('end', onEnd).on('close', onEnd).on('error', onEnd);
  });
}

/** A body whose last piece is withheld until its digest is verified. */
class VerifiedBody extends Transform {
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
