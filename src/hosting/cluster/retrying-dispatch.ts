import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { HostAwayError, HostedFailure, HostingUnavailableError } from '../hosting.errors.js';
import type { HostedRequest } from '../hosting.types.js';
import type { PlacedHandler } from './placed-handler.js';

/** So often a request is offered before its failure is passed on. */
const TRIES_MAX = 3;

/** The place one try goes to. */
export interface Place {
  /** The host's id; null for this process when it is none at the moment. */
  id: string | null;
  send(request: HostedRequest, handler: PlacedHandler): void;
  /** It was not reached. */
  suspect(): void;
}

/** Chooses a place, other than those that did not take the request. @throws HostedFailure when there is none */
export type ChoosePlace = (passedOver: ReadonlySet<string>) => Promise<Place>;

/**
 * One request on its way to wherever its program runs. A place that certainly did not begin with it is passed over for
 * another one, as long as the body is still there to be sent; the caller sees one request, and its controller works across
 * the tries.
 */
export class RetryingDispatch implements PlacedHandler, Dispatcher.DispatchController {
  aborted = false;
  paused = false;
  reason: Error | null = null;
  readonly rawHeaders = null;
  readonly rawTrailers = null;
  private readonly passedOver = new Set<string>();
  private inner: Dispatcher.DispatchController | null = null;
  private place: Place | null = null;
  private tries = 0;
  private isStarted = false;
  private hasHead = false;
  private isOver = false;

  constructor(
    private readonly choose: ChoosePlace,
    private readonly request: HostedRequest,
    private readonly handler: Dispatcher.DispatchHandler,
    /** Hears what the handler throws: a mistake of whoever wrote it, which must not end the process. */
    private readonly onThrown: (error: unknown) => void,
  ) {}

  start(failedBefore: HostedFailure | null = null): void {
    this.try(failedBefore).catch(this.onThrown);
  }

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.inner?.abort(reason);
  }

  pause(): void {
    this.paused = true;
    this.inner?.pause();
  }

  resume(): void {
    this.paused = false;
    this.inner?.resume();
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
    if (!this.isOver) this.handler.onResponseStart?.(this, status, headers);
  }

  onResponseData(_controller: Dispatcher.DispatchController | null, chunk: Buffer): void {
    if (!this.isOver) this.handler.onResponseData?.(this, chunk);
  }

  onResponseEnd(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.handler.onResponseEnd?.(this, {});
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.fail(error);
  }

  fail(error: Error): void {
    const { place } = this;
    if (this.isOver || !place || !this.mayGoElsewhere(error)) return this.over(error);
    if (place.id !== null) this.passedOver.add(place.id);
    this.place = null;
    this.start(error as HostedFailure);
  }

  unreached(): void {
    this.place?.suspect();
    this.fail(new HostAwayError('The process that runs this program does not answer: try again in a moment.', 1));
  }

  private async try(failedBefore: HostedFailure | null): Promise<void> {
    this.tries += 1;
    this.inner = null;
    try {
      this.place = await this.choose(this.passedOver);
      if (this.aborted) this.over(this.reason ?? new Error('aborted'));
      else this.place.send(this.request, this);
    } catch (error) {
      // With nowhere else to go, a host that answered has said more.
      const hasSaidMore = failedBefore instanceof HostingUnavailableError && error instanceof HostAwayError;
      this.over(hasSaidMore ? failedBefore : asFailure(error));
    }
  }

  private mayGoElsewhere(error: Error): boolean {
    const isElsewhere = error instanceof HostAwayError || error instanceof HostingUnavailableError;
    const { body } = this.request;
    const hasBody = !(body instanceof Readable) || !(body.readableDidRead || body.destroyed);
    return isElsewhere && hasBody && !this.hasHead && !this.aborted && this.tries < TRIES_MAX;
  }

  private over(error: Error): void {
    if (this.isOver) return;
    this.isOver = true;
    this.handler.onResponseError?.(this, error);
  }
}

/** What is none of ours comes from the database: where a program is stands there. */
function asFailure(error: unknown): Error {
  if (error instanceof HostedFailure) return error;
  return new HostingUnavailableError('Where this program runs cannot be told right now: try again in a moment.', error);
}
