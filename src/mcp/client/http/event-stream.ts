import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { HttpDispatcher } from './http-exchange.js';
import { fromSocketError, unreadable, UpstreamError, UpstreamTimeoutError } from '../../protocol/mcp-errors.js';
import { ANSWER_BYTES_MAX, EVENT_CHARS_MAX } from './http-exchange.js';
import { SseParser } from './sse-parser.js';

/** An event stream that stays open until one side ends it. */
export interface StreamRequest {
  url: URL;
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  body?: string;
  /** How long the answer's headers may take; the stream itself has no end. */
  timeoutMs: number;
  /** Hears each message. What it throws ends the stream. */
  onMessage: (data: string) => void;
  /** Hears events of other names. */
  onOther?: (event: string, data: string) => void;
  /** The stream is over: null when the upstream ended it, or it was closed here. Not called unless it was open. */
  onEnd(error: Error | null): void;
}

/** What came of it: an open stream, or another answer with its whole text. */
export interface StreamAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  contentType: string;
  /** Null for an open stream. */
  text: string | null;
  /** Closes the socket at once. Safe to call twice. */
  close(): void;
}

/**
 * Opens an event stream, on a socket that no call waits for. Resolves when it is open, or when the upstream has answered
 * something else.
 *
 * @throws UpstreamFailure for everything that goes wrong until then; a status is not a failure here
 */
export function openStream(door: HttpDispatcher, request: StreamRequest): Promise<StreamAnswer> {
  return new Promise((resolve, reject) => {
    new Stream(door, request, resolve, reject).start();
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
  private isSettled = false;
  private isOver = false;

  constructor(
    private readonly door: HttpDispatcher,
    private readonly request: StreamRequest,
    private readonly resolve: (answer: StreamAnswer) => void,
    private readonly reject: (error: Error) => void,
  ) {}

  start(): void {
    const { url, method, headers, body, timeoutMs } = this.request;
    this.timer = setTimeout(this.onDeadline, timeoutMs);
    try {
      this.door.dispatch(url, { method, headers, body, dispatcherKind: 'stream' }, this);
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
    const { onMessage, onOther } = this.request;
    this.sse = new SseParser(onMessage, onOther);
    clearTimeout(this.timer);
    this.settle(null);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.isOver) return;
    const { host } = this.request.url;
    if (!this.sse) {
      this.bytes += chunk.length;
      if (this.bytes > ANSWER_BYTES_MAX) this.abort(unreadable(`${host} sent an answer larger than 16 MB.`));
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
