/**
 * One request to a program and its streamed response. It finishes once, by the first of: the response, the caller, a
 * limit, or the program's exit.
 *
 * The invocation id comes with the request if a connection or run endpoint recorded it, else it is created here. When
 * finished, the call reports outcome, times and CPU share as a trace to the owner, and a span to OpenTelemetry.
 *
 * When the connection to the program breaks, the call waits up to 500 ms for the exit of the program, the more precise
 * reason. Otherwise the caller gets a cut-off response, or ProgramCrashedError if no response had begun. An event
 * stream has no limit of time or size.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { Logger } from '@nestjs/common';
import type { Dispatcher } from 'undici';
import { uuidV7 } from '../../platform/database/uuid-v7.js';
import { statusOf } from '../../platform/errors/domain-error.js';
import type { Instance } from '../engine.js';
import { HostedFailure } from '../hosting.errors.js';
import {
  INVOCATION_HEADER,
  RPC_METHOD_HEADER,
  type HostedRequest,
  type ProgramLimits,
  type RuntimeOutcome,
  type Trace,
  SCAN_HEADER,
  SESSION_HEADER,
} from '../hosting.types.js';
import { noAnswer, overResponse, overWall } from './termination-errors.js';
import { hopByHopOf } from '../../platform/http/hop-by-hop.js';
import { ForwardedRequest } from '../hosting.js';
import { tracing } from '../../platform/telemetry/tracing.js';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

const EXIT_NEWS_MS = 500;

type Headers = Record<string, string | string[]>;

const INTERNAL_PREFIX = 'x-slipway-';

export interface CallHost {
  countRefusal(error: HostedFailure): void;
  /** Called before the caller is notified. @returns CPU time in ms */
  finishCall(call: HostedCall, isWhole: boolean): number;
  reportOutcome(trace: Omit<Trace, 'ref'>): void;
}

/** `outcome` undefined: the outcome that the program reports applies. */
interface Ending {
  error: Error | null;
  outcome?: RuntimeOutcome;
}

export class HostedCall extends ForwardedRequest implements Dispatcher.DispatchHandler {
  private static readonly logger = new Logger('hosting');
  readonly invocationId: string;
  readonly at = Date.now();
  readonly startedAt = performance.now();
  private readonly hasRecord: boolean;
  private readonly timer: NodeJS.Timeout | undefined;
  private newsTimer: NodeJS.Timeout | undefined;
  /** Time of sending by `performance.now()`; 0 before. */
  sentAt = 0;
  private status = 0;
  private bytes = 0;
  isEnded = false;

  constructor(
    readonly request: HostedRequest,
    private readonly handler: Dispatcher.DispatchHandler,
    private readonly limits: ProgramLimits,
    private readonly host: CallHost,
  ) {
    super();
    const invocation = request.headers[INVOCATION_HEADER];
    this.hasRecord = typeof invocation === 'string' && UUID.test(invocation);
    this.invocationId = this.hasRecord ? (invocation as string) : uuidV7(this.at);
    if (!request.isStream) this.timer = setTimeout(() => this.fail(overWall(limits.wallMs)), limits.wallMs);
    // A body that fails before it is read must not crash the process.
    if (request.body instanceof Readable) request.body.on('error', (error) => this.abort(error));
  }

  send({ dispatcher }: Instance): void {
    if (this.isEnded) return;
    this.sentAt = performance.now();
    const { method, path, body } = this.request;
    const headers = endToEnd(this.request.headers);
    headers[INVOCATION_HEADER] = this.invocationId;
    // undici computes the length of a string itself, and refuses a request with another length.
    if (!(body instanceof Readable)) delete headers['content-length'];
    try {
      const timeouts = { headersTimeout: 0, bodyTimeout: 0 };
      dispatcher.dispatch({ origin: 'http://program', method, path, headers, body, ...timeouts }, this);
    } catch (error) {
      this.handleBreak(error as Error);
    }
  }

  /** Fails the call, and cuts off a response in progress. */
  fail(error: HostedFailure): void {
    if (!this.isEnded && !error.mayHaveRun) this.host.countRefusal(error);
    this.finish({ error, outcome: error.outcome });
  }

  close(): void {
    if (this.status !== 0) this.finish({ error: null });
  }

  protected onAbort(reason: Error): void {
    this.finish({ error: reason, outcome: 'canceled' });
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    if (this.isEnded) return controller.abort(new Error('The request ended before it was sent'));
    this.inner = controller;
    this.handler.onRequestStart?.(this, context);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusMessage?: string,
  ): void {
    if (this.isEnded || status < 200) return;
    const { responseBytes } = this.limits;
    if (!this.request.isStream && Number(headers['content-length'] ?? 0) > responseBytes) {
      return this.fail(overResponse(responseBytes));
    }
    this.status = status;
    this.handler.onResponseStart?.(this, status, endToEnd(headers), statusMessage);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.isEnded) return;
    this.bytes += chunk.length;
    const { responseBytes } = this.limits;
    if (this.bytes > responseBytes && !this.request.isStream) return this.fail(overResponse(responseBytes));
    this.handler.onResponseData?.(this, chunk);
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    this.finish({ error: null }, trailers);
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.handleBreak(error);
  }

  private handleBreak(error: Error): void {
    if (this.isEnded) return;
    this.inner = null;
    this.newsTimer = setTimeout(() => {
      if (this.status !== 0) this.finish({ error, outcome: 'responseStreamDisconnected' });
      else this.fail(noAnswer());
    }, EXIT_NEWS_MS);
  }

  private finish(ending: Ending, trailers: IncomingHttpHeaders = {}): void {
    if (this.isEnded) return;
    this.isEnded = true;
    clearTimeout(this.timer);
    clearTimeout(this.newsTimer);
    const { error, outcome } = ending;
    const cpuMs = this.host.finishCall(this, error === null);
    const { method, path, headers } = this.request;
    const rpcHeader = headers[RPC_METHOD_HEADER];
    const rpcMethod = typeof rpcHeader === 'string' ? rpcHeader : null;
    const failure = error instanceof HostedFailure ? error : null;
    const status = this.status || (failure ? statusOf[failure.kind] : 0);
    this.host.reportOutcome({
      invocationId: this.invocationId,
      ...(!this.hasRecord && {
        request: { at: this.at, method, path: path.split('?', 1)[0] ?? '/', status, rpcMethod },
      }),
      ...(outcome && { outcome }),
      cpuMs,
      wallMs: performance.now() - this.startedAt,
      lines: [],
      exceptions: failure ? [{ at: Date.now(), name: failure.name, message: failure.message }] : [],
    });
    const attributes = {
      'http.request.method': method,
      'http.response.status_code': this.status || undefined,
      'mcp.method.name': rpcMethod ?? undefined,
      'slipway.invocation.id': this.invocationId,
    };
    tracing()?.record('hosted call', headers, { at: this.at, endedAt: Date.now(), attributes, error });
    // Closes the socket of an incomplete response; no effect on a complete one.
    this.inner?.abort(error ?? new Error('The stream was closed'));
    // Called from timers and exits too, so exceptions of the caller's handler are caught here.
    try {
      if (error === null) this.handler.onResponseEnd?.(this, trailers);
      else this.handler.onResponseError?.(this, error);
    } catch (thrown) {
      HostedCall.logger.error({ msg: 'the end of a hosted request could not be delivered', err: thrown });
    }
  }
}

/** Drops hop-by-hop headers and internal ones, except the session name. */
export function endToEnd(headers: IncomingHttpHeaders | Headers): Headers {
  const isHopByHop = hopByHopOf(headers.connection);
  const result: Headers = {};
  for (const [name, value] of Object.entries(headers)) {
    const isInternal = name.startsWith(INTERNAL_PREFIX) && name !== SESSION_HEADER && name !== SCAN_HEADER;
    if (value !== undefined && !isHopByHop(name) && !isInternal) result[name] = value;
  }
  return result;
}
