import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Cancellation } from '../../protocol/cancellation.js';
import type { CallTiming } from '../../protocol/channel.js';
import {
  CallerLeftError,
  fromSocketError,
  tooSlow,
  unreadable,
  UpstreamTimeoutError,
} from '../../protocol/mcp-errors.js';
import { JsonScanner } from '../../../platform/text/json-bounds.js';
import { SseParser } from './sse-parser.js';
import type { Egress } from '../../../platform/egress/egress.js';

/** Size limit of an upstream's answer. */
export const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/** Size limit of one event of a stream. */
export const EVENT_CHARS_MAX = 8 * 1024 * 1024;

/** Total time limit of a call whose deadline is extended by events. */
export const STREAM_MS_MAX = 15 * 60_000;

/** Time for an upstream to end its stream after the answer; afterwards the socket is closed instead of reused. */
const DRAIN_MS = 1_000;

/**
 * Sends HTTP requests to an upstream: through the egress policy for external targets, another dispatcher for hosted
 * programs.
 */
export type HttpDispatcher = Pick<Egress, 'dispatch' | 'lastConnect'>;

/** One HTTP request to an upstream. */
export interface ExchangeRequest {
  url: URL;
  method: 'POST' | 'GET' | 'DELETE';
  headers: Record<string, string>;
  body?: string;
  /** Timeout for the whole answer, headers and body. */
  timeoutMs: number;
  /** Restarts the timeout with every event of a stream. */
  extendWithEvents?: boolean;
  /** Called at the deadline. True restarts the timeout, because the upstream waits for an answer of the caller. */
  isHeld?: () => boolean;
  /** Returns a stream that breaks after an event with an id as an answer without its message, instead of failing. */
  isResumable?: boolean;
  cancellation?: Cancellation;
  timing?: CallTiming;
  /** Uses a socket of its own: the sockets of calls may be waiting for this very message. */
  isAside?: boolean;
  /** Receives each message of an event stream; returns true for the awaited one. */
  onEvent?: (data: string) => boolean;
}

/** An HTTP answer. For an event stream, `text` is the awaited message, or null when the stream ended without it. */
export interface ExchangeAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  contentType: string;
  text: string | null;
  /** Position at which an event stream that ended without its message can be resumed. */
  resume?: ResumePoint;
}

/** Last event id of a broken stream and the server's `retry` delay; null without one. */
export interface ResumePoint {
  lastEventId: string;
  retryMs: number | null;
  /** Rest of the request's timeout, in milliseconds. */
  leftMs: number;
}

/**
 * Sends one request and reads its whole answer under one deadline, which includes the body.
 *
 * @throws UpstreamFailure for every transport failure; an HTTP status is not a failure
 */
export function exchange(dispatcher: HttpDispatcher, request: ExchangeRequest): Promise<ExchangeAnswer> {
  return new Promise((resolve, reject) => {
    new Exchange(dispatcher, request, resolve, reject).start();
  });
}

class Exchange implements Dispatcher.DispatchHandler {
  private controller: Dispatcher.DispatchController | null = null;
  private written = false;
  private settled = false;
  private failure: Error | null = null;
  private timer: NodeJS.Timeout | undefined;
  private readonly startedAt = Date.now();
  private status = 0;
  private headers: IncomingHttpHeaders = {};
  private contentType = '';
  private bytes = 0;
  private readonly scanner = new JsonScanner();
  private chunks: Buffer[] = [];
  private sse: SseParser | null = null;
  /** Times of the handover to the dispatcher and of sending; set only for calls with {@link CallTiming}. */
  private handedAt = 0;
  private sentAt = 0;

  constructor(
    private readonly dispatcher: HttpDispatcher,
    private readonly request: ExchangeRequest,
    private readonly resolve: (answer: ExchangeAnswer) => void,
    private readonly reject: (error: Error) => void,
  ) {}

  start(): void {
    const { url, method, headers, body, cancellation, timeoutMs, isAside, timing } = this.request;
    if (cancellation?.isCancelled) return this.reject(new CallerLeftError());
    this.timer = setTimeout(this.onDeadline, timeoutMs);
    cancellation?.notify(this.onCancel);
    if (timing) this.handedAt = performance.now();
    try {
      this.dispatcher.dispatch(url, { method, headers, body, dispatcherKind: isAside ? 'stream' : 'call' }, this);
    } catch (error) {
      this.fail(error as Error);
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    this.written = true;
    if (this.request.timing) this.timeSending(this.request.timing);
    if (this.failure) controller.abort(this.failure);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    if (this.request.timing) this.request.timing.firstByteMs = performance.now() - this.sentAt;
    this.status = status;
    this.headers = headers;
    this.contentType = headers['content-type'] ?? '';
    if (this.contentType.startsWith('text/event-stream') && this.request.onEvent) {
      this.sse = new SseParser((data) => this.onMessage(data));
    }
    if (Number(headers['content-length'] ?? 0) > ANSWER_BYTES_MAX) this.tooLarge(controller);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.settled) return;
    if (this.sse) {
      this.sse.push(chunk);
      if (this.sse.pending > EVENT_CHARS_MAX) this.tooLarge(controller);
      return;
    }
    this.bytes += chunk.length;
    if (this.bytes > ANSWER_BYTES_MAX) return this.tooLarge(controller);
    const exceeded = this.scanner.push(chunk);
    if (exceeded !== null) this.abort(unreadable(`${this.request.url.host} sent an answer with ${exceeded}.`));
    else this.chunks.push(chunk);
  }

  onResponseEnd(): void {
    clearTimeout(this.timer);
    if (this.sse) return this.finish(null);
    const [only] = this.chunks;
    this.finish((this.chunks.length === 1 && only ? only : Buffer.concat(this.chunks)).toString('utf8'));
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.fail(this.failure ?? error);
  }

  private onMessage(data: string): void {
    if (this.settled) return;
    if (this.request.extendWithEvents && Date.now() - this.startedAt < STREAM_MS_MAX) this.timer?.refresh();
    let isAnswer: boolean | undefined;
    try {
      isAnswer = this.request.onEvent?.(data);
    } catch (error) {
      this.abort(error as Error);
      return;
    }
    if (!isAnswer) return;
    this.finish(data);
    this.timer = setTimeout(
      () => this.controller?.abort(new Error('the stream stayed open after its answer')),
      DRAIN_MS,
    );
    this.timer.unref();
  }

  private readonly onDeadline = (): void => {
    const { timeoutMs, url, isHeld } = this.request;
    if (isHeld?.() && Date.now() - this.startedAt < STREAM_MS_MAX) {
      this.timer = setTimeout(this.onDeadline, timeoutMs);
      return;
    }
    this.abort(new UpstreamTimeoutError(tooSlow(url, timeoutMs), this.written));
  };

  private readonly onCancel = (): void => this.abort(new CallerLeftError());

  private tooLarge(controller: Dispatcher.DispatchController): void {
    const megabytes = (this.sse ? EVENT_CHARS_MAX : ANSWER_BYTES_MAX) / (1024 * 1024);
    this.controller = controller;
    this.abort(unreadable(`${this.request.url.host} sent an answer larger than ${megabytes} MB.`));
  }

  /** Closes the socket and rejects at once, without waiting for undici. */
  private abort(reason: Error): void {
    this.failure = reason;
    this.controller?.abort(reason);
    this.fail(reason);
  }

  private finish(text: string | null): void {
    if (!this.settle()) return;
    const { status, headers, contentType, sse } = this;
    const answer: ExchangeAnswer = { status, headers, contentType, text };
    if (text === null && sse && sse.lastEventId !== '') {
      const { timeoutMs, extendWithEvents } = this.request;
      const leftMs = extendWithEvents ? timeoutMs : Math.max(1, timeoutMs - (Date.now() - this.startedAt));
      answer.resume = { lastEventId: sse.lastEventId, retryMs: sse.retryMs, leftMs };
    }
    this.resolve(answer);
  }

  private fail(error: Error): void {
    if (this.request.isResumable && !this.failure && this.sse && this.sse.lastEventId !== '') return this.finish(null);
    if (!this.settle()) return;
    this.reject(fromSocketError(error, this.request.url, this.written));
  }

  /**
   * Counts a socket opened while the request waited as opened for it; it may belong to a concurrent request to the same
   * origin.
   */
  private timeSending(timing: CallTiming): void {
    this.sentAt = performance.now();
    const waitedMs = this.sentAt - this.handedAt;
    const opened = this.dispatcher.lastConnect(this.request.url.origin);
    const isNew = opened !== undefined && opened.at >= this.handedAt;
    timing.guardMs = isNew ? Math.min(opened.guardMs, waitedMs) : 0;
    timing.connectMs = isNew ? Math.min(opened.connectMs, waitedMs - timing.guardMs) : 0;
    timing.queueMs = (timing.queueMs ?? 0) + waitedMs - timing.guardMs - timing.connectMs;
  }

  private settle(): boolean {
    if (this.settled) return false;
    this.settled = true;
    clearTimeout(this.timer);
    this.request.cancellation?.forget(this.onCancel);
    return true;
  }
}
