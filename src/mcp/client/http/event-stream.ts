import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { HttpDispatcher } from './http-exchange.js';
import { fromSocketError, unreadable, UpstreamError, UpstreamTimeoutError } from '../../protocol/mcp-errors.js';
import { ANSWER_BYTES_MAX, EVENT_CHARS_MAX } from './http-exchange.js';
import { JsonScanner, boundExceeded } from '../../../platform/text/json-bounds.js';
import { MessageBudget } from '../message-budget.js';
import { SseParser } from './sse-parser.js';

/** Request for an event stream that stays open until one side closes it. */
export interface StreamRequest {
  url: URL;
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  body?: string;
  /** Timeout for the response headers; the stream itself has no limit. */
  timeoutMs: number;
  /** Receives each message; returns true for the answer to a call. An exception ends the stream. */
  onMessage: (data: string) => boolean | void;
  /** Receives events with other names than `message`. */
  onOther?: (event: string, data: string) => void;
  /**
   * Called once when an opened stream ends: null when the upstream ended it or {@link StreamAnswer.close} was called.
   */
  onEnd(error: Error | null): void;
}

/** Response to the request: an open stream, or another answer with its complete body. */
export interface StreamAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  contentType: string;
  /** Body text; null for an open stream. */
  text: string | null;
  /** Closes the socket at once. Idempotent. */
  close(): void;
}

/**
 * Opens an event stream on a socket that calls do not share. Resolves when the stream is open, or when the upstream has
 * answered otherwise.
 *
 * @throws UpstreamFailure for every failure until then; an HTTP status is not a failure
 */
export function openStream(dispatcher: HttpDispatcher, request: StreamRequest): Promise<StreamAnswer> {
  return new Promise((resolve, reject) => {
    new Stream(dispatcher, request, resolve, reject).start();
  });
}

class Stream implements Dispatcher.DispatchHandler {
  private controller: Dispatcher.DispatchController | null = null;
  private timer: NodeJS.Timeout | undefined;
  private sse: SseParser | null = null;
  private status = 0;
  private headers: IncomingHttpHeaders = {};
  private chunks: Buffer[] = [];
  private bytes = 0;
  private readonly scanner = new JsonScanner();
  private readonly budget = new MessageBudget(true);
  private isSettled = false;
  private isOver = false;

  constructor(
    private readonly dispatcher: HttpDispatcher,
    private readonly request: StreamRequest,
    private readonly resolve: (answer: StreamAnswer) => void,
    private readonly reject: (error: Error) => void,
  ) {}

  start(): void {
    const { url, method, headers, body, timeoutMs } = this.request;
    this.timer = setTimeout(this.onDeadline, timeoutMs);
    try {
      this.dispatcher.dispatch(url, { method, headers, body, dispatcherKind: 'stream' }, this);
    } catch (error) {
      this.end(error as Error);
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.isOver) controller.abort(new Error('closed'));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    this.status = status;
    this.headers = headers;
    const isStream = status < 300 && (headers['content-type'] ?? '').startsWith('text/event-stream');
    if (!isStream || this.isOver) return;
    this.sse = new SseParser((data) => this.onMessage(data), this.request.onOther);
    clearTimeout(this.timer);
    this.settle(null);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.isOver) return;
    const { host } = this.request.url;
    if (!this.sse) {
      this.bytes += chunk.length;
      const exceeded = this.scanner.push(chunk);
      if (this.bytes > ANSWER_BYTES_MAX) this.abort(unreadable(`${host} sent an answer larger than 16 MB.`));
      else if (exceeded !== null) this.abort(unreadable(`${host} sent an answer with ${exceeded}.`));
      else this.chunks.push(chunk);
      return;
    }
    try {
      this.sse.push(chunk);
      if (this.sse.pending > EVENT_CHARS_MAX) throw unreadable(`${host} sent an event larger than 8 MB.`);
    } catch (error) {
      this.abort(error as Error);
    }
  }

  onResponseEnd(): void {
    if (this.sse) this.end(null);
    else {
      this.settle(Buffer.concat(this.chunks).toString('utf8'));
      this.isOver = true;
    }
    clearTimeout(this.timer);
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.end(error);
  }

  private onMessage(data: string): void {
    const exceeded = boundExceeded(data) ?? this.budget.spend(data.length);
    if (exceeded !== null) throw unreadable(`${this.request.url.host} sent ${exceeded}.`);
    if (this.request.onMessage(data)) this.budget.renew();
  }

  private readonly onDeadline = (): void => {
    const { url, timeoutMs } = this.request;
    const seconds = Number((timeoutMs / 1000).toPrecision(2));
    this.abort(new UpstreamTimeoutError(`${url.host} did not open an event stream within ${seconds} s.`, false));
  };

  private readonly close = (): void => {
    if (this.isOver) return;
    this.end(null);
    this.controller?.abort(new Error('closed'));
  };

  private abort(error: Error): void {
    this.end(error);
    this.controller?.abort(error);
  }

  private settle(text: string | null): void {
    if (this.isSettled) return;
    this.isSettled = true;
    const { status, headers, close } = this;
    this.resolve({ status, headers, contentType: headers['content-type'] ?? '', text, close });
  }

  private end(error: Error | null): void {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.timer);
    const failure = error && fromSocketError(error, this.request.url, false);
    if (this.isSettled) return this.request.onEnd(failure);
    this.isSettled = true;
    this.reject(failure ?? new UpstreamError(`${this.request.url.host} ended the connection without an answer.`));
  }
}
