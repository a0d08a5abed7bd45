/**
 * One request to a program, tried at up to three hosts.
 *
 * Another host gets the request only when the first certainly did not run it (it was not reached, or rejected it), no
 * response has begun, and the body can still be sent. All callers try an unreachable host last for a while.
 *
 * When no host is left, the caller gets the most specific failure: that of a host that rejected the request, rather
 * than that there is no host. Errors of the database, which has the placements, become HostAwayErrors with the advice
 * to try again.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { ProcessUnreachedError } from '../../platform/internal-http/internal-client.js';
import { HostAwayError, HostedFailure, HostingUnavailableError } from '../hosting.errors.js';
import type { HostedRequest } from '../hosting.types.js';
import { ForwardedRequest } from '../hosting.js';

const NO_ANSWER = 'The process that runs this program does not answer: try again in a moment.';

const ATTEMPTS_MAX = 3;

export interface AttemptHandler extends Dispatcher.DispatchHandler {
  onRequestStart(controller: Dispatcher.DispatchController): void;
  onResponseStart(controller: Dispatcher.DispatchController | null, status: number, headers: IncomingHttpHeaders): void;
  onResponseData(controller: Dispatcher.DispatchController | null, chunk: Buffer): void;
  onResponseEnd(): void;
  /** @param error ProcessUnreachedError when the host was not reached and nothing was sent */
  onResponseError(controller: Dispatcher.DispatchController | null, error: Error): void;
}

export interface Candidate {
  /** The host's id; null for this process while it is not a host. */
  id: string | null;
  send(request: HostedRequest, handler: AttemptHandler): void;
  suspect(): void;
}

/** @throws HostedFailure when no host is left */
export type ChooseCandidate = (excluded: ReadonlySet<string>) => Promise<Candidate>;

export class RetryingDispatch extends ForwardedRequest implements AttemptHandler {
  private readonly excluded = new Set<string>();
  private candidate: Candidate | null = null;
  private attempts = 0;
  private isStarted = false;
  private hasHead = false;
  private isEnded = false;

  constructor(
    private readonly choose: ChooseCandidate,
    private readonly request: HostedRequest,
    private readonly handler: Dispatcher.DispatchHandler,
    /** Receives errors thrown by the handler, which must not crash the process. */
    private readonly onThrown: (error: unknown) => void,
  ) {
    super();
  }

  start(failedBefore: HostedFailure | null = null): void {
    this.try(failedBefore).catch(this.onThrown);
  }

  protected onAbort(reason: Error): void {
    this.inner?.abort(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.inner = controller;
    if (this.aborted) return controller.abort(this.reason ?? new Error('aborted'));
    if (this.paused) controller.pause();
    if (this.isStarted) return;
    this.isStarted = true;
    this.handler.onRequestStart?.(this, {});
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController | null,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status >= 200) this.hasHead = true;
    if (!this.isEnded) this.handler.onResponseStart?.(this, status, headers);
  }

  onResponseData(_controller: Dispatcher.DispatchController | null, chunk: Buffer): void {
    if (!this.isEnded) this.handler.onResponseData?.(this, chunk);
  }

  onResponseEnd(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.handler.onResponseEnd?.(this, {});
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, cause: Error): void {
    const { candidate } = this;
    const isUnreached = cause instanceof ProcessUnreachedError;
    if (isUnreached) candidate?.suspect();
    const error = isUnreached ? new HostAwayError(NO_ANSWER, 1) : cause;
    const isRefused = error instanceof HostedFailure && error.refusal === 'unavailable';
    const { body } = this.request;
    const hasBody = !(body instanceof Readable) || !(body.readableDidRead || body.destroyed);
    const isOver = this.isEnded || this.hasHead || this.aborted || this.attempts >= ATTEMPTS_MAX;
    if (!candidate || !isRefused || !hasBody || isOver) return this.finish(error);
    if (candidate.id !== null) this.excluded.add(candidate.id);
    this.candidate = null;
    this.start(error);
  }

  private async try(failedBefore: HostedFailure | null): Promise<void> {
    this.attempts += 1;
    this.inner = null;
    try {
      this.candidate = await this.choose(this.excluded);
      if (this.aborted) this.finish(this.reason ?? new Error('aborted'));
      else this.candidate.send(this.request, this);
    } catch (error) {
      const isLessSpecific = failedBefore instanceof HostingUnavailableError && error instanceof HostAwayError;
      this.finish(isLessSpecific ? failedBefore : placementFailure(error));
    }
  }

  private finish(error: Error): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.handler.onResponseError?.(this, error);
  }
}

/** Converts an error of the placements: errors of other types come from the database that holds them. */
export function placementFailure(error: unknown): HostedFailure {
  if (error instanceof HostedFailure) return error;
  const message = 'The process that runs this program cannot be determined right now: try again in a moment.';
  return new HostAwayError(message, 2, error);
}
