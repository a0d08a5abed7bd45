/**
 * The one table of when a request is sent to an upstream a second time. Each row is used at most once for a request, under
 * its one deadline. Nothing else is sent twice: a tool must not run twice.
 *
 *   Failure                                       Did it run?          Sent again             By
 *   the endpoint is of another era                no                   in the other era       HttpChannel
 *   the session is lost                           no                   in a new session       LegacyAdapter
 *   401, and another token is stored              no                   with that token        HttpWire
 *   wrong `Mcp-Param-…` headers of a tool call    no                   with headers as listed ModernAdapter
 *   the response is lost, of a method that reads    perhaps, harmless    as it was              both adapters
 *
 * The stream of a response that breaks after an event id is resumed (`resumed` in http-exchange.ts): the call still runs.
 */
import type { McpCall, McpReply } from '../protocol/channel.js';
import { UpstreamError } from '../protocol/mcp-errors.js';
import { rpcCode } from '../protocol/protocol.js';

/** The endpoint's behaviour contradicts the remembered era. The request certainly did not run. */
export class EraContradictedError extends Error {
  /** @param outcome result for the caller if a new probe confirms the remembered era */
  constructor(readonly outcome: McpReply | Error) {
    super('The endpoint is not what it was taken for');
  }
}

/** The upstream no longer knows the session of a request, which certainly did not run unless there is an outcome. */
export class SessionLostError extends Error {
  /**
   * @param outcome result of the request for its caller, where the upstream refused it without a sign that it read the
   * message, or by a code of lost sessions, and may have lost the session; seen by the session only
   * @param wasRefused with an outcome: true if the request certainly did not run
   */
  constructor(
    readonly outcome: McpReply | UpstreamError | null = null,
    readonly wasRefused = false,
  ) {
    super('The upstream has lost the session');
  }
}

/** Methods that only read. */
const READS = /^(?:ping|server\/discover|completion\/complete|[\w/]+\/(?:list|read|get))$/;

/** True for a method that may be sent again whether it ran or not. */
export function onlyReads(method: string): boolean {
  return READS.test(method);
}

/** The change with which a failed request is sent again. */
export type Resend = 'other era' | 'new session' | 'new token' | 'new headers' | 'no change';

/** Looks a failure up in the table above. @param failure error, HTTP status, or reply @returns null for no second sending */
export function mayResend(
  { method, cancellation, session }: Pick<McpCall, 'method' | 'cancellation' | 'session'>,
  failure: Error | McpReply | number,
): Resend | null {
  if (typeof failure === 'number') return failure === 401 ? 'new token' : null;
  if (failure instanceof EraContradictedError) return 'other era';
  // A task ends with its session.
  if (failure instanceof SessionLostError) return session ? null : 'new session';
  if (!(failure instanceof Error)) {
    return failure.error?.code === rpcCode.headerMismatch && method === 'tools/call' ? 'new headers' : null;
  }
  const isLost = failure instanceof UpstreamError && failure.outcomeUnknown && failure.row.isReadAgain;
  return isLost && onlyReads(method) && !cancellation?.isCancelled ? 'no change' : null;
}
