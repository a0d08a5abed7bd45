/**
 * HTTP between the processes of one service: `POST` to the other's `ADVERTISE_URL`, signed by `x-slipway-internal`
 * (`internal-signatures.ts`), in frames (`frames.ts`).
 *
 * The signature covers address, path and head, and the head has the digest of a body that is known at the start. A body
 * that streams has none: anyone who can change bytes between two processes can also read them, and `https` in
 * `ADVERTISE_URL` prevents both. Addresses come from the operator, so the egress policy does not apply.
 *
 * Failures: ProcessUnreachedError (nothing was sent, another process can be tried), RequestRefusedError (signature or
 * clock), OutcomeUnknownError (cut off), or the error that the other process serialized.
 */
import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Agent, type Dispatcher } from 'undici';
import { connectorOf } from '../egress/early-close.js';
import { deserializeError, OutcomeUnknownError } from './error-codec.js';
import { FrameReader, textFrame } from './frames.js';
import { AGE_MS_MAX, INTERNAL_HEADER, InternalSignatures, type SignedHead } from './internal-signatures.js';

/** Timeout of a connection, after which a process is unreachable. */
const CONNECT_MS = 2_000;

const NOT_SENT = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/;

/** The process cannot be reached; nothing was sent. */
export class ProcessUnreachedError extends Error {}

/** The process rejected the request: the signature did not match, so the body was not read. */
export class RequestRefusedError extends Error {
  /** @param clockSeconds difference of the two clocks, if it is the reason */
  constructor(
    message: string,
    readonly clockSeconds: number | null = null,
  ) {
    super(message);
  }
}

export interface InternalCall {
  url: string;
  path: string;
  head: object;
  body?: string | Buffer | Readable;
  /** Longest wait for the start of the response; without it the caller has its own timer. */
  answerTimeoutMs?: number;
}

/** Handler of a response. Exactly one of `onEnd` and `onFailure` is called, last. */
export interface InternalAnswerHandler {
  /** Called when the request is being sent; the controller pauses the response and aborts the request. */
  onStart?(controller: Dispatcher.DispatchController): void;
  onHead?(head: unknown): void;
  onData?(chunk: Buffer): void;
  onMessage?(message: unknown): void;
  onEnd(): void;
  /**
   * @param error the failure the other process reported; else ProcessUnreachedError, RequestRefusedError,
   * OutcomeUnknownError, or the reason of the abort
   */
  onFailure(error: Error): void;
}

export interface MessageStream {
  /** Rejects with the errors of {@link InternalAnswerHandler.onFailure}. */
  ended: Promise<void>;
  abort(reason: Error): void;
}

@Injectable()
export class InternalClient implements OnApplicationShutdown {
  private readonly logger = new Logger('internal');
  private readonly agent = new Agent({ connect: connectorOf({ timeout: CONNECT_MS }), bodyTimeout: 0 });

  constructor(private readonly internalSignatures: InternalSignatures) {}

  async onApplicationShutdown(): Promise<void> {
    await this.agent.destroy();
  }

  send({ url, path, head, body, answerTimeoutMs = 0 }: InternalCall, handler: InternalAnswerHandler): void {
    const buffered = body === undefined || body instanceof Readable ? null : Buffer.from(body);
    const sha256 = buffered && hash('sha256', buffered, 'base64url');
    const signed: SignedHead = { head, body: body === undefined ? null : { sha256 } };
    const text = JSON.stringify(signed);
    const frame = textFrame('head', text);
    const { origin, pathname } = new URL(url);
    this.agent.dispatch(
      {
        origin,
        path: `${pathname === '/' ? '' : pathname}${path}`,
        method: 'POST',
        headers: {
          'content-type': 'application/octet-stream',
          [INTERNAL_HEADER]: this.internalSignatures.sign(url, path, text),
        },
        body:
          body instanceof Readable
            ? Readable.from(following(frame, body), { objectMode: false })
            : buffered
              ? Buffer.concat([frame, buffered])
              : frame,
        headersTimeout: answerTimeoutMs,
      },
      new AnswerReader(handler, this.logger),
    );
  }

  /** Sends a request whose response consists of messages. `onMessage` must not throw. */
  follow<Message>(call: InternalCall, onMessage: (message: Message) => void): MessageStream {
    let controller: Dispatcher.DispatchController | null = null;
    let aborted: Error | null = null;
    const ended = new Promise<void>((resolve, reject) => {
      this.send(call, {
        onStart: (started) => {
          controller = started;
          if (aborted) started.abort(aborted);
        },
        onMessage: (message) => onMessage(message as Message),
        onEnd: resolve,
        onFailure: reject,
      });
    });
    const abort = (reason: Error) => {
      aborted ??= reason;
      controller?.abort(aborted);
    };
    return { ended, abort };
  }
}

class AnswerReader implements Dispatcher.DispatchHandler {
  private readonly reader = new FrameReader((frame) => {
    switch (frame.kind) {
      case 'head':
        return this.handler.onHead?.(frame.value);
      case 'data':
        return this.handler.onData?.(frame.data);
      case 'message':
        return this.handler.onMessage?.(frame.value);
      case 'failure':
        this.failure = deserializeError(frame.value);
        return;
      case 'end':
        this.isEnded = true;
    }
  });
  private isStarted = false;
  private status = 0;
  /** Clock of the other process in seconds; NaN if it does not send its time. */
  private clockSeconds = NaN;
  private isEnded = false;
  private failure: Error | null = null;

  constructor(
    private readonly handler: InternalAnswerHandler,
    private readonly logger: Logger,
  ) {}

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.isStarted = true;
    this.handler.onStart?.(controller);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status >= 200) this.status = status;
    this.clockSeconds = Math.round(Math.abs(Date.now() - Date.parse(String(headers.date))) / 1_000);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.status === 200) this.reader.push(chunk);
  }

  onResponseEnd(): void {
    if (this.isEnded) return this.handler.onEnd();
    if (this.failure) return this.handler.onFailure(this.failure);
    if (this.status === 200) return this.handler.onFailure(new OutcomeUnknownError());
    this.logger.warn({
      msg: 'another process refused a request of this one: ENCRYPTION_KEYS must be the same and clocks agree to 30 s',
      status: this.status,
      clockDifferenceSeconds: this.clockSeconds,
    });
    const seconds = this.clockSeconds * 1_000 > AGE_MS_MAX - 1_000 ? this.clockSeconds : null;
    this.handler.onFailure(new RequestRefusedError(`Another process answered ${this.status}`, seconds));
  }

  onResponseError(controller: Dispatcher.DispatchController | null, error: Error): void {
    if (controller?.aborted && this.isStarted) return this.handler.onFailure(controller.reason ?? error);
    const { code = '' } = error as NodeJS.ErrnoException;
    this.logger.debug({ msg: 'a request to another process broke off', err: error });
    if (this.failure) this.handler.onFailure(this.failure);
    else this.handler.onFailure(NOT_SENT.test(code) ? new ProcessUnreachedError(code) : new OutcomeUnknownError());
  }
}

/** Returns true if the process is unreachable, rejected the request, or exited before its response. */
export function isProcessGone(error: unknown): boolean {
  return [ProcessUnreachedError, RequestRefusedError, OutcomeUnknownError].some((type) => error instanceof type);
}

/** Yields the frame, then the body, which is not read until the head is sent: it can go to another process if this one is unreachable. */
async function* following(frame: Buffer, body: Readable): AsyncGenerator<unknown> {
  yield frame;
  yield* body;
}
