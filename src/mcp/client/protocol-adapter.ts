import type { Listening, ListenFilter, McpCall, McpReply, UpstreamListener } from '../protocol/channel.js';
import { UpstreamError } from '../protocol/mcp-errors.js';
import type { UpstreamIdentity } from '../protocol/protocol.js';

/** How one kind of server is spoken to. A channel has one, chosen by what the endpoint is known to be. */
export interface ProtocolAdapter {
  open(timeoutMs: number): Promise<UpstreamIdentity>;
  /** @throws EraContradictedError when the endpoint is not what it was taken for, UpstreamFailure */
  request(call: McpCall, timeoutMs: number): Promise<McpReply>;
  listen(filter: ListenFilter, listener: UpstreamListener, timeoutMs: number): Promise<Listening>;
  /** Ends the session of a caller profile in this process. Never rejects. */
  release(profileKey: string): Promise<void>;
  /** Never rejects. */
  close(forGood?: boolean): Promise<void>;
}

/** The endpoint does not behave as it was remembered. The request certainly did not run. */
export class EraContradictedError extends Error {
  /** @param outcome what the caller hears if it turns out to be what it was taken for all the same */
  constructor(readonly outcome: McpReply | Error) {
    super('The endpoint is not what it was taken for');
  }
}

/** The upstream refused to open a session, as a server of the other era does. */
export class HandshakeRefusedError extends UpstreamError {
  /** @param isOtherEra its code is one that modern servers refuse `initialize` with */
  constructor(
    message: string,
    readonly isOtherEra: boolean,
  ) {
    super(message);
  }
}

/** Statuses that say of an endpoint that what was sent has no place there. */
const OUT_OF_PLACE: ReadonlySet<number | null> = new Set([400, 404, 405]);

/** True when the endpoint took no notice of the message as one of MCP: it may be there in another way. */
export function isOutOfPlace(error: unknown): boolean {
  return error instanceof UpstreamError && OUT_OF_PLACE.has(error.status);
}

/** Methods that change nothing upstream: they may run again when their answer was lost. */
const READS = /^(?:ping|server\/discover|completion\/complete|[\w/]+\/(?:list|read|get))$/;

/** True when a request that failed may be sent once more: what only reads, when its answer was lost. */
export function mayRepeat({ method, cancellation }: McpCall, error: unknown): boolean {
  const isLost = error instanceof UpstreamError && error.outcomeUnknown && error.hint === null && READS.test(method);
  return isLost && !cancellation?.isCancelled;
}
