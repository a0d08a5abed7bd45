import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';

export type SpanAttributes = Record<string, string | number | undefined>;

export interface SpanHeaders {
  traceparent: string;
  tracestate?: string;
}

export interface Tracing {
  /** Handles a request in a span that ends with the response. Its parent is the caller's `traceparent`. */
  handle(request: IncomingMessage, response: ServerResponse, handle: () => void): void;
  /**
   * Runs `work` in a child of the current span; a rejection marks the span as failed.
   *
   * @param kind `client` for a request to another service
   */
  run<T>(
    name: string,
    kind: 'client' | 'internal',
    attributes: SpanAttributes,
    work: (headers: SpanHeaders) => Promise<T>,
  ): Promise<T>;
  /** Times are by `Date.now()`. The parent is the `traceparent` of these headers. */
  record(
    name: string,
    headers: IncomingHttpHeaders,
    span: { at: number; endedAt: number; attributes: SpanAttributes; error: Error | null },
  ): void;
  /** Returns the trace id for log lines; undefined outside of a trace. */
  traceId(): string | undefined;
  stop(): Promise<void>;
}

let current: Tracing | null = null;

/** Returns null unless traces are sent, so that a call costs only one comparison and no library is loaded. */
export function tracing(): Tracing | null {
  return current;
}

/** Installs tracing; called once, before the first request. */
export function useTracing(started: Tracing | null): void {
  current = started;
}
