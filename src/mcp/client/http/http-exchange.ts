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
import { SseParser } from './sse-parser.js';
import type { Egress } from '../../../platform/egress/egress.js';

/** The largest answer that is taken from an upstream. */
export const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/** The largest single event of a stream. */
export const EVENT_CHARS_MAX = 8 * 1024 * 1024;

/** A call that keeps sending events may run this long in all. */
export const STREAM_MS_MAX = 15 * 60_000;

/** After the answer an upstream may take this long to end its stream; then the socket is closed, not reused. */
const DRAIN_MS = 1_000;

/** Where HTTP requests to an upstream go out: the guarded way for what lies outside, another for what runs here. */
export type HttpDispatcher = Pick<Egress, 'dispatch' | 'lastConnect'>;

/** One HTTP request to an upstream. */
export interface ExchangeRequest {
  url: URL;
  method: 'POST' | 'GET' | 'DELETE';
  headers: Record<string, string>;
  body?: string;
  /** How long the whole answer may take, headers and body. */
  timeoutMs: number;
  /** Start the time anew with every event of a stream. */
  extendWithEvents?: boolean;
  /** Asked at the deadline: true while it is the caller that the upstream waits for. Then the time starts anew. */
  isHeld?: () => boolean;
  /** A stream that breaks behind an event with an id is an answer without its message, not a failure. */
  isResumable?: boolean;
  cancellation?: Cancellation;
  timing?: CallTiming;
  /** Must not wait for a socket that calls hold: those may be waiting for this very message. */
  isAside?: boolean;
  /** Looks at each message of an event stream; true when it is the one that was waited for. */
  onEvent?: (data: string) => boolean;
}

/** The answer: for an event stream `text` is the message that was waited for, or null when the stream ended without it. */
export interface ExchangeAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  contentType: string;
  text: string | null;
  /** Where an event stream that ended without its message can be taken up. */
  resume?: ResumePoint;
}

/** Behind which event a stream broke, and after how long the server wants to be asked for the rest; null: it did not say. */
export interface ResumePoint {
  lastEventId: string;
  retryMs: number | null;
  /** What is left of the request's time. */
  leftMs: number;
}

/**
 * One request and its whole answer, under one deadline that lives until the body ends.
 *
 * @throws UpstreamFailure for everything that goes wrong on the way; a status is not a failure here
 */
export function exchange(door: HttpDispatcher, request: ExchangeRequest): Promise<ExchangeAnswer> {
  return new Promise((resolve, reject) => {
    new Exchange(door, request, resolve, reject).start();
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
  private chunks: Buffer[] = [];
  private sse: SseParser | null = null;
  /** When it was handed over, and when it went out; only for those who keep {@link CallTiming}. */
  private handedAt = 0;
  private sentAt = 0;

  constructor(
    private readonly door: HttpDispatcher,
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
      this.door.dispatch(url, { method, headers, body, dispatcherKind: isAside ? 'stream' : 'call' }, this);
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
    if (this.bytes > ANSWER_BYTES_MAX) this.tooLarge(controller);
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
    this.timer = setTimeout(() => this.controller?.abort(new Error('the stream went on after its answer')), DRAIN_MS);
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

  /** Ends the socket; the caller hears of it at once, whatever undici still waits for. */
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

  /** A socket that was opened while the request waited was opened for it, or for one just like it. */
  private timeSending(timing: CallTiming): void {
    this.sentAt = performance.now();
    const waitedMs = this.sentAt - this.handedAt;
    const opened = this.door.lastConnect(this.request.url.origin);
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
