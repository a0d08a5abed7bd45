/**
 * One HTTP request to an upstream and its whole response: JSON, or the events of a stream up to the awaited message.
 *
 * One deadline covers headers and body. If the caller listens, events restart it, up to an hour in all, and it waits
 * while the upstream waits for the caller. A stream still open 1 s after its response is closed with its socket.
 *
 * A stream that breaks after an event with an id is resumed by GET with `Last-Event-ID`, after the server's `retry` (at
 * least 0.1 s), until the call times out; this does not repeat the call.
 *
 * Failures are UpstreamFailures, which state whether the request might have run; an HTTP status is not a failure here.
 * A response that is too large (16 MB, decoded), too deep, in an unsupported coding or of too many messages is an
 * UpstreamError that closes the socket. A redirect with 307 or 308 within the origin is followed, at most three times.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Cancellation } from '../../protocol/cancellation.js';
import type { CallTiming } from '../../protocol/channel.js';
import {
  CallerLeftError,
  fromSocketError,
  tooLate,
  unreadable,
  UpstreamTimeoutError,
  UpstreamError,
} from '../../protocol/mcp-errors.js';
import { messagesIn } from '../../protocol/messages.js';
import { LIST_DEPTH_MAX, withoutDeepItems, type ListKind } from '../../protocol/list-pages.js';
import { SseParser } from './sse-parser.js';
import { boundExceeded, BOUNDS, JsonScanner } from '../../../platform/text/json-bounds.js';
import { answerLimit, MessageBudget } from '../message-budget.js';
import { parseUrl } from '../../../config/parse-url.js';
import { decodeBody, UnknownCodingError } from '../../../platform/egress/content-coding.js';
import type { Egress } from '../../../platform/egress/egress.js';
import { withoutBom } from '../../../platform/text/json.js';
import { mediaTypeOf } from '../../../platform/text/media-type.js';
import { CALL_MS_MAX, SilenceTimer } from '../silence-timer.js';
import { deadlineIn } from '../../protocol/deadline.js';
import { PacedWork } from '../../../platform/schedule/paced-work.js';

/** Time to read the rest of a response; afterwards, the socket is closed instead of reused. */
const DRAIN_MS = 1_000;

/** Size above which messages are parsed one at a time for each account, so that they do not stall the process. */
const LARGE_BYTES = 256 * 1024;

const largeMessages = new PacedWork();

/** Limit of failed attempts to resume a stream, with a status that is not {@link PASSING}. */
const REFUSALS_MAX = 3;

/** Statuses of a server or proxy that may resume the stream later. */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Delay when the server sent no `retry`, the least one, and the limit of its growth while the server fails. */
const RETRY_MS = 1_000;
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 10_000;

const KEPT: ReadonlySet<number> = new Set([307, 308]);
const REDIRECTS_MAX = 3;

export type HttpDispatcher = Pick<Egress, 'dispatch' | 'lastConnect'>;

export interface ExchangeRequest {
  url: URL;
  method: 'POST' | 'GET' | 'DELETE';
  headers: Record<string, string>;
  body?: string;
  /** Account that large messages are counted for; default the host of the URL. */
  account?: string;
  timeoutMs: number;
  /** True for a request that opens a session or discovers the versions of the server. */
  isOpening?: boolean;
  /** True if events restart the timeout, up to an hour in all. */
  extendWithEvents?: boolean;
  /** Start of the call in epoch milliseconds, for a request that resumes its stream; default now. */
  startedAt?: number;
  /** Called at the deadline. True restarts the timeout, because the upstream waits for a response of the caller. */
  isHeld?: () => boolean;
  /** Returns a stream that breaks after an event with an id as a response without its message, instead of failing. */
  isResumable?: boolean;
  cancellation?: Cancellation;
  timing?: CallTiming;
  /** Resolves a success at its headers, without its body: no response is awaited. */
  isOneWay?: boolean;
  redirects?: number;
  onRedirect?: (to: URL) => void;
  /** Uses a separate socket: the sockets of calls might be waiting for this very message. */
  isAside?: boolean;
  /** Limits the messages of an event stream, even when it is resumed. */
  budget?: MessageBudget;
  /** The list that the request reads: items nested too deeply are left out instead of failing it. */
  list?: ListKind;
  /** Receives each message of an event stream; returns true for the awaited one. */
  onEvent?: (data: string) => boolean;
  /** Resolves at the headers of an event stream, which then stays open. */
  stream?: Pick<StreamRequest, 'onOther' | 'onEnd'>;
}

export interface StreamRequest extends Pick<ExchangeRequest, 'url' | 'headers' | 'body' | 'onRedirect'> {
  method: 'GET' | 'POST';
  /** Timeout of the response headers; the stream itself has no limit. */
  timeoutMs: number;
  /** Receives each message; returns true for the response to a call. An exception closes the stream. */
  onMessage: (data: string) => boolean | void;
  /** Receives events with other names than `message`. */
  onOther?: (event: string, data: string) => void;
  /**
   * Called once when an opened stream closes: null when the upstream or {@link StreamAnswer.close} closed it. `retryMs`
   * is the last `retry` of the stream, null without one.
   */
  onEnd: (error: Error | null, retryMs: number | null) => void;
}

/** For an event stream, `text` is the awaited message, or null when the stream ended without it. */
export interface ExchangeAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  contentType: string;
  text: string | null;
  /** True for an event stream that was cut off within an event. */
  isCut?: boolean;
  /** Bearer token sent with the request: servers repeat it in errors. */
  token?: string | null;
  /** Position at which an event stream that ended without its message can be resumed. */
  resume?: ResumePoint;
}

/** An open stream, whose `text` is null, or another response with its complete body. */
export interface StreamAnswer extends ExchangeAnswer {
  /** Closes the socket immediately. Idempotent. */
  close(): void;
}

/** The position after which a broken stream is resumed; `retry` is null if the server sent none. */
export interface ResumePoint {
  lastEventId: string;
  retryMs: number | null;
  /** Remaining timeout in ms. */
  leftMs: number;
  /** Start of the call in epoch milliseconds. */
  startedAt: number;
}

/** Beginnings of an event stream and of JSON, by which a body is read whatever its type says. */
const STREAM_BEGINNING = /^[\uFEFF\uFFFD\s]*(?:data|event|id|retry)?:/;
const JSON_BEGINNING = /^[\uFEFF\uFFFD\s]*[{[]/;

const BEGINNING_CHARS = 64;

/** Beginning of a batch, which servers of 2025-03-26 may send. */
const BATCH = /^\s*\[/;

/** @throws UpstreamFailure for every transport failure */
export function exchange(dispatcher: HttpDispatcher, request: ExchangeRequest): Promise<ExchangeAnswer> {
  return new Promise((resolve, reject) => {
    new Exchange(dispatcher, request, resolve, reject).start();
  });
}

/**
 * Opens a stream on a socket that calls do not share. Resolves when the stream is open, or with any other response.
 *
 * @throws UpstreamFailure for every failure until then; an HTTP status is not a failure
 */
export function openStream(dispatcher: HttpDispatcher, request: StreamRequest): Promise<StreamAnswer> {
  const { onMessage, onOther, onEnd, ...rest } = request;
  const budget = new MessageBudget(true);
  const onEvent = (data: string) => {
    if (onMessage(data)) budget.renew();
    return false;
  };
  const stream = { onOther, onEnd };
  return exchange(dispatcher, { ...rest, isAside: true, budget, onEvent, stream }) as Promise<StreamAnswer>;
}

function scannerFor(list: ListKind | undefined): JsonScanner {
  return new JsonScanner(list && { ...BOUNDS, depth: LIST_DEPTH_MAX });
}

class Exchange implements Dispatcher.DispatchHandler {
  private controller: Dispatcher.DispatchController | null = null;
  private written = false;
  private settled = false;
  private isOpen = false;
  private failure: Error | null = null;
  private timer: SilenceTimer | undefined;
  private drain: NodeJS.Timeout | undefined;
  private readonly startedAt: number;
  private readonly begunAt = Date.now();
  private status = 0;
  private headers: IncomingHttpHeaders = {};
  private contentType = '';
  private bytes = 0;
  private chunks: Buffer[] = [];
  private beginning = '';
  /** True until the beginning of a successful body has shown its type. */
  private isUnrecognized = false;
  private sse: SseParser | null = null;
  /** The encoded body, the source of the decoded one; null for a body without encoding. */
  private coded: Readable | null = null;
  private source: { pause(): unknown; resume(): unknown } | null = null;
  /** Number of waiting messages, for which the end of the stream waits. */
  private waiting = 0;
  private end: (() => void) | null = null;
  private afterDecoding: () => void = () => undefined;
  private readonly scanner: JsonScanner;
  /** Start of the transmission; set only for calls with {@link CallTiming}. */
  private handedAt = 0;
  private sentAt = 0;

  constructor(
    private readonly dispatcher: HttpDispatcher,
    private readonly request: ExchangeRequest,
    private readonly resolve: (answer: ExchangeAnswer) => void,
    private readonly reject: (error: Error) => void,
  ) {
    this.startedAt = request.startedAt ?? Date.now();
    this.scanner = scannerFor(request.list);
  }

  start(): void {
    const { url, method, headers, body, cancellation, timeoutMs, isAside, timing } = this.request;
    if (cancellation?.isCancelled) return this.reject(new CallerLeftError());
    this.timer = new SilenceTimer(timeoutMs, this.onDeadline, this.startedAt);
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
    this.source = controller;
    this.written = true;
    const { timing, url } = this.request;
    if (timing) {
      this.sentAt = performance.now();
      const waitedMs = this.sentAt - this.handedAt;
      // A socket opened while the request waited is attributed to it, even if it belongs to a concurrent request.
      const opened = this.dispatcher.lastConnect(url.origin);
      const isNew = opened !== undefined && opened.at >= this.handedAt;
      timing.guardMs = isNew ? Math.min(opened.guardMs, waitedMs) : 0;
      timing.connectMs = isNew ? Math.min(opened.connectMs, waitedMs - timing.guardMs) : 0;
      timing.queueMs = (timing.queueMs ?? 0) + waitedMs - timing.guardMs - timing.connectMs;
    }
    if (this.failure) controller.abort(this.failure);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    if (this.request.timing) this.request.timing.firstByteMs = performance.now() - this.sentAt;
    this.status = status;
    this.headers = headers;
    this.contentType = mediaTypeOf(headers['content-type']);
    if (KEPT.has(status) && this.redirect(headers.location)) return;
    const { onEvent, stream, isOneWay } = this.request;
    if (isOneWay) {
      this.closeSoon();
      if (status < 300) return this.finish(null);
    }
    if (headers['content-encoding'] !== undefined && !this.decode(controller, headers['content-encoding'])) return;
    if (this.contentType === 'text/event-stream' && onEvent && (!stream || status < 300)) this.readStream();
    this.isUnrecognized = onEvent !== undefined && status < 300;
    if (this.isOpen) return;
    if (Number(headers['content-length'] ?? 0) > answerLimit()) this.tooLarge(controller);
  }

  private readStream(): SseParser {
    const { stream } = this.request;
    const parser = new SseParser((data) => this.receive(data), stream?.onOther);
    this.sse = parser;
    this.isOpen = stream !== undefined;
    if (stream) this.finish(null);
    return parser;
  }

  private recognize(chunk: Buffer): void {
    this.beginning += chunk.toString('utf8', 0, BEGINNING_CHARS);
    const isJson = JSON_BEGINNING.test(this.beginning);
    this.isUnrecognized = !isJson && this.beginning.length < BEGINNING_CHARS;
    if (isJson && this.sse && !this.isOpen) {
      this.sse = null;
      this.contentType = 'application/json';
    } else if (!this.sse && STREAM_BEGINNING.test(this.beginning)) {
      this.isUnrecognized = false;
      this.contentType = 'text/event-stream';
      this.readStream().push(Buffer.concat(this.chunks.splice(0)));
    }
  }

  /** @returns false if the redirect is not followed */
  private redirect(location: string | string[] | undefined): boolean {
    const { request } = this;
    const { url, redirects = 0, timeoutMs, extendWithEvents } = request;
    const to = typeof location === 'string' ? parseUrl(location, url) : null;
    if (to?.origin !== url.origin || to.username !== '' || to.password !== '' || redirects === REDIRECTS_MAX)
      return false;
    to.hash = '';
    request.onRedirect?.(to);
    this.settle();
    this.closeSoon();
    const leftMs = extendWithEvents ? timeoutMs : Math.max(1, timeoutMs - (Date.now() - this.begunAt));
    const again = { ...request, url: to, redirects: redirects + 1, timeoutMs: leftMs, startedAt: this.startedAt };
    new Exchange(this.dispatcher, again, this.resolve, this.reject).start();
    return true;
  }

  /** @returns false for an unsupported coding */
  private decode(controller: Dispatcher.DispatchController, encoding: string | string[]): boolean {
    const coded = new Readable({ read: () => controller.resume() });
    const { host } = this.request.url;
    try {
      const body = decodeBody(coded, encoding);
      if (body === coded) return true;
      this.coded = coded;
      this.source = body;
      body
        .on('data', (chunk: Buffer) => this.read(controller, chunk))
        .on('end', () => this.afterDecoding())
        .on('error', () =>
          this.abort(unreadable(`${host} sent a response that cannot be decoded as ${String(encoding)}.`)),
        );
      return true;
    } catch (error) {
      if (!(error instanceof UnknownCodingError)) throw error;
      this.abort(unreadable(`${host} sent a response ${error.message}.`));
      return false;
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.settled && !this.isOpen) return;
    if (!this.coded) this.read(controller, chunk);
    else if (!this.coded.push(chunk)) controller.pause();
  }

  private read(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.settled && !this.isOpen) return;
    if (this.isUnrecognized) this.recognize(chunk);
    if (this.sse) {
      if (!this.sse.push(chunk)) this.tooLarge(controller);
      return;
    }
    this.bytes += chunk.length;
    if (this.bytes > answerLimit()) return this.tooLarge(controller);
    const exceeded = this.scanner.push(chunk);
    if (exceeded === null) this.chunks.push(chunk);
    else this.abort(unreadable(`${this.request.url.host} sent a response with ${exceeded}.`));
  }

  onResponseEnd(): void {
    if (!this.coded) return this.atEnd();
    this.afterDecoding = () => this.atEnd();
    this.coded.push(null);
  }

  private atEnd(): void {
    if (!this.settled || this.isOpen) this.sse?.finish();
    if (this.waiting > 0) return void (this.end = () => this.atEnd());
    this.timer?.stop();
    clearTimeout(this.drain);
    if (this.isOpen) return this.endStream(null);
    if (this.sse) return this.finish(null);
    if (this.bytes <= LARGE_BYTES) this.finishWhole();
    else this.inTurn(() => this.settled || this.finishWhole());
  }

  /** Reads a complete body; the elements of a batch are read like the events of a stream. */
  private finishWhole(): void {
    const body = this.body();
    const isBatch = BATCH.test(body) && this.status < 300 && !this.request.stream;
    this.finish((isBatch ? this.answerIn(body) : null) ?? this.shallow(body));
  }

  private shallow(text: string): string {
    const { list } = this.request;
    return list && boundExceeded(text) !== null ? withoutDeepItems(text, list) : text;
  }

  private body(): string {
    const [only] = this.chunks;
    return withoutBom((this.chunks.length === 1 && only ? only : Buffer.concat(this.chunks)).toString('utf8'));
  }

  private inTurn(work: () => void): void {
    const { account, url } = this.request;
    largeMessages.run(account ?? url.host, work);
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (!this.coded || this.failure) return this.atError(error);
    this.afterDecoding = () => this.atError(error);
    this.coded.push(null);
  }

  private atError(error: Error): void {
    if (this.waiting > 0 && !this.failure) return void (this.end = () => this.atError(error));
    clearTimeout(this.drain);
    this.fail(this.failure ?? error);
  }

  /** Handles a message. A large message waits for its turn, and later ones wait behind it; reading pauses meanwhile. */
  private receive(data: string): void {
    if (data.length <= LARGE_BYTES && this.waiting === 0) return this.onMessage(data);
    this.waiting += 1;
    this.source?.pause();
    this.inTurn(() => {
      this.waiting -= 1;
      this.onMessage(data);
      if (this.waiting > 0) return;
      this.source?.resume();
      this.end?.();
    });
  }

  private onMessage(data: string): void {
    const answer = this.answerIn(data);
    if (answer === null) return;
    this.finish(answer);
    this.closeSoon();
  }

  /** Returns the awaited message in an event, whose data can be a batch; null if it is not there. */
  private answerIn(data: string): string | null {
    if (this.settled && !this.isOpen) return null;
    const { request } = this;
    const { host } = request.url;
    let exceeded = request.list ? scannerFor(request.list).push(Buffer.from(data)) : boundExceeded(data);
    let answer: string | null = null;
    if (request.extendWithEvents) this.timer?.restart();
    try {
      for (const part of exceeded === null ? messagesIn(data) : [data]) {
        const text = exceeded === null ? this.shallow(part) : part;
        exceeded ??= request.budget?.spend(text.length) ?? null;
        if (exceeded !== null) throw unreadable(`${host} sent ${exceeded}.`);
        if (request.onEvent?.(text)) answer ??= text;
      }
      return answer;
    } catch (error) {
      this.abort(error as Error);
      return null;
    }
  }

  private closeSoon(): void {
    this.drain = setTimeout(() => {
      this.finish(this.sse ? null : this.body());
      this.controller?.abort(new Error('the body stayed open after its reply'));
    }, DRAIN_MS).unref();
  }

  private readonly onDeadline = (): void => {
    const { timeoutMs, url, isHeld, extendWithEvents, isOpening } = this.request;
    if (isHeld?.() && !this.timer?.isOver) return this.timer?.restart();
    const late = this.request.stream
      ? `${url.host} did not open an event stream within ${Number((timeoutMs / 1000).toPrecision(2))} s.`
      : tooLate(url, { timeoutMs, isExtended: extendWithEvents, isOver: this.timer?.isOver, isOpening });
    this.abort(new UpstreamTimeoutError(late, this.isOutcomeUnknown));
  };

  private readonly onCancel = (): void => this.abort(new CallerLeftError());

  private tooLarge(controller: Dispatcher.DispatchController): void {
    const megabytes = answerLimit() / (1024 * 1024);
    this.controller = controller;
    this.abort(unreadable(`${this.request.url.host} sent a response larger than ${megabytes} MB.`));
  }

  /** Aborts the exchange without waiting for undici. */
  private abort(reason: Error): void {
    this.failure = reason;
    this.controller?.abort(reason);
    this.coded?.destroy();
    this.fail(reason);
  }

  private finish(text: string | null): void {
    if (!this.settle()) return;
    const { status, headers, contentType, sse } = this;
    const answer: ExchangeAnswer = { status, headers, contentType, text };
    if (sse?.isCut) answer.isCut = true;
    if (this.request.stream) Object.assign(answer, { close: () => this.close() });
    else if (text === null && sse && sse.lastEventId !== '') {
      const { timeoutMs, extendWithEvents } = this.request;
      const leftMs = extendWithEvents ? timeoutMs : Math.max(1, timeoutMs - (Date.now() - this.startedAt));
      answer.resume = { lastEventId: sse.lastEventId, retryMs: sse.retryMs, leftMs, startedAt: this.startedAt };
    }
    this.resolve(answer);
  }

  private fail(error: Error): void {
    if (this.isOpen) return this.endStream(error);
    if (this.request.isResumable && !this.failure && this.sse && this.sse.lastEventId !== '') return this.finish(null);
    if (!this.settle()) return;
    this.reject(fromSocketError(error, this.request.url, this.isOutcomeUnknown));
  }

  private get isOutcomeUnknown(): boolean {
    return this.written && !this.request.stream;
  }

  private endStream(error: Error | null): void {
    this.isOpen = false;
    const { stream, url } = this.request;
    stream?.onEnd(error && fromSocketError(error, url, false), this.sse?.retryMs ?? null);
  }

  private close(): void {
    if (!this.isOpen) return;
    this.endStream(null);
    this.controller?.abort(new Error('closed'));
  }

  private settle(): boolean {
    if (this.settled) return false;
    this.settled = true;
    this.timer?.stop();
    this.request.cancellation?.forget(this.onCancel);
    return true;
  }
}

/**
 * Resumes by GET with `Last-Event-ID`. The call still runs, so this does not repeat it. Returns the broken response if
 * no stream contained the awaited message.
 *
 * @throws UpstreamFailure when the deadline passes or the caller disconnects
 */
export async function resumeAnswer(
  send: (request: ExchangeRequest) => Promise<ExchangeAnswer>,
  request: ExchangeRequest,
  broken: ExchangeAnswer,
): Promise<ExchangeAnswer> {
  const { 'content-type': _, ...headers } = request.headers;
  const startedAt = broken.resume?.startedAt ?? Date.now();
  const until = startedAt + CALL_MS_MAX;
  let timeLeft = deadlineIn(broken.resume?.leftMs ?? request.timeoutMs);
  let last = broken;
  /** Consecutive failed attempts, and those that were rejected without a sign that a later one might succeed. */
  let failures = 0;
  let refusals = 0;
  while (last.resume && timeLeft() > 1 && Date.now() < until && refusals < REFUSALS_MAX) {
    const { lastEventId, retryMs } = last.resume;
    const askedMs = Math.max(retryMs ?? RETRY_MS, RETRY_MS_MIN, waitOf(last));
    const waitMs = Math.max(askedMs, Math.min(askedMs * 1.5 ** Math.max(0, failures - 1), RETRY_MS_MAX));
    await pause(Math.min(waitMs, timeLeft()), request.cancellation);
    const again: ExchangeRequest = {
      ...request,
      method: 'GET',
      body: undefined,
      timing: undefined,
      // The header is in UTF-8, as in the HTML standard.
      headers: {
        ...headers,
        accept: 'text/event-stream',
        'last-event-id': Buffer.from(lastEventId).toString('latin1'),
      },
      timeoutMs: timeLeft(),
      startedAt,
    };
    failures += 1;
    const answer = await send(again).catch((error: unknown) => {
      // A socket error is retried; a deadline or a caller that disconnected is not.
      if (error instanceof UpstreamError) return null;
      throw error;
    });
    if (answer === null) continue;
    const { status, contentType } = answer;
    const isStream = status === 200 && contentType === 'text/event-stream';
    if (isStream && answer.text !== null) return answer;
    if (status === 401 || status === 405) break;
    if (!isStream && !PASSING.has(status)) refusals += 1;
    if (isStream) refusals = 0;
    if (isStream && answer.resume && answer.resume.lastEventId !== lastEventId) {
      failures = 0;
      if (request.extendWithEvents) timeLeft = deadlineIn(request.timeoutMs);
    }
    last = { ...answer, resume: answer.resume ?? last.resume };
  }
  return broken;
}

/** Returns the delay of `Retry-After` in milliseconds. */
function waitOf({ status, headers }: ExchangeAnswer): number {
  return status === 429 || status === 503 ? (Number(headers['retry-after']) || 0) * 1_000 : 0;
}

function pause(ms: number, cancellation?: Cancellation): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = () => {
      clearTimeout(timer);
      reject(new CallerLeftError());
    };
    const timer = setTimeout(() => {
      cancellation?.forget(cancel);
      resolve();
    }, ms);
    cancellation?.notify(cancel);
  });
}
