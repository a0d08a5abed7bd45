import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';

/** Hears what becomes of a request that was sent to the place where its program runs. */
export interface PlacedHandler extends Dispatcher.DispatchHandler {
  onRequestStart(controller: Dispatcher.DispatchController): void;
  onResponseStart(controller: Dispatcher.DispatchController | null, status: number, headers: IncomingHttpHeaders): void;
  onResponseData(controller: Dispatcher.DispatchController | null, chunk: Buffer): void;
  onResponseEnd(): void;
  onResponseError(controller: Dispatcher.DispatchController | null, error: Error): void;
  /** It failed: the same as `onResponseError`, for those who have no controller. */
  fail(error: Error): void;
  /** Nobody was there to take it. */
  unreached(): void;
}
