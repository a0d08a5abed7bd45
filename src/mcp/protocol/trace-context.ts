import { memberText, withMember } from './json-edit.js';

/** Headers of a caller's request that are forwarded upstream: its id, and its trace context (W3C Trace Context). */
export type TraceHeaders = Partial<Record<'x-request-id' | 'traceparent' | 'tracestate', string>>;

/** A valid `traceparent`: not of version ff, no id of zeros. */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}$/;

/** A `tracestate` of the length that every party propagates (W3C Trace Context, 3.3.1.5). */
const TRACESTATE = /^[\x20-\x7e\t]{1,512}$/;

/** @param header reads a header of the caller's request by its lower-case name */
export function traceHeaders(header: (name: string) => string | string[] | undefined): TraceHeaders {
  const id = header('x-request-id');
  const traceparent = header('traceparent');
  const headers: TraceHeaders = typeof id === 'string' ? { 'x-request-id': id } : {};
  if (typeof traceparent !== 'string' || !TRACEPARENT.test(traceparent)) return headers;
  headers.traceparent = traceparent;
  const tracestate = header('tracestate');
  if (typeof tracestate === 'string' && TRACESTATE.test(tracestate)) headers.tracestate = tracestate;
  return headers;
}

/**
 * Adds the trace to the params, for servers reached without headers (MCP 2026-07-28, trace context). A context set by the caller remains.
 *
 * @param params JSON text of an object
 */
export function withTraceMeta(params: string | undefined, trace: TraceHeaders | undefined): string | undefined {
  if (trace?.traceparent === undefined) return params;
  const meta = memberText(params ?? '{}', '_meta') ?? '{}';
  if (!meta.startsWith('{') || memberText(meta, 'traceparent') !== undefined) return params;
  let traced = withMember(meta, 'traceparent', JSON.stringify(trace.traceparent));
  if (trace.tracestate) traced = withMember(traced, 'tracestate', JSON.stringify(trace.tracestate));
  return withMember(params ?? '{}', '_meta', traced);
}
