/**
 * The one table of when a request is sent to an upstream a second time. Each row applies at most once to a request,
 * within its deadline. Nothing else is resent: a tool must not run twice.
 *
 *   Failure Did it run? Sent again By the endpoint is of another era no in the other era HttpChannel the session is
 *   lost no in a new session LegacyAdapter 401, and another token is stored no with that token HttpWire wrong
 *   `Mcp-Param-…` headers of a tool call no with headers as listed ModernAdapter the response is lost, of a method that
 *   reads perhaps, harmless as it was both adapters
 *
 * The stream of a response that breaks after an event id is resumed (`resumed` in http-exchange.ts): the call still
 * runs.
 */
import type { McpCall, McpReply } from '../protocol/channel.js';
import { UpstreamError } from '../protocol/mcp-errors.js';
import { rpcCode } from '../protocol/protocol.js';

export class EraContradictedError extends Error {
  /** @param outcome result for the caller if a new probe confirms the remembered era */
  constructor(readonly outcome: McpReply | Error) {
    super('The endpoint is not what it was taken for');
  }
}

/** The session was lost. Without an outcome, the request certainly did not run. */
export class SessionLostError extends Error {
  /**
   * @param outcome result of the request for its caller, if the upstream rejected it without a sign that it read the
   * message, or with a code of lost sessions, and might have lost the session; seen only by the session
   * @param wasRefused with an outcome: true if the request certainly did not run
   */
  constructor(
    readonly outcome: McpReply | UpstreamError | null = null,
    readonly wasRefused = false,
  ) {
    super('The upstream has lost the session');
  }
}

const READS = /^(?:ping|server\/discover|completion\/complete|[\w/]+\/(?:list|read|get))$/;

export function onlyReads(method: string): boolean {
  return READS.test(method);
}

export type Resend = 'other era' | 'new session' | 'new token' | 'new headers' | 'no change';

/** @param failure error, HTTP status, or reply @returns null if the request must not be resent */
export function mayResend(
  { method, cancellation, session }: Pick<McpCall, 'method' | 'cancellation' | 'session'>,
  failure: Error | McpReply | number,
): Resend | null {
  if (typeof failure === 'number') return failure === 401 ? 'new token' : null;
  if (failure instanceof EraContradictedError) return 'other era';
  // A task is lost with its session.
  if (failure instanceof SessionLostError) return session ? null : 'new session';
  if (!(failure instanceof Error)) {
    return failure.error?.code === rpcCode.headerMismatch && method === 'tools/call' ? 'new headers' : null;
  }
  const isLost = failure instanceof UpstreamError && failure.outcomeUnknown && failure.row.isReadAgain;
  return isLost && onlyReads(method) && !cancellation?.isCancelled ? 'no change' : null;
}
