import type { Cancellation } from './cancellation.js';
import type { Span } from './json-text.js';
import type { ServerHello } from './protocol.js';

/** A JSON-RPC error as the upstream sent it. */
export interface RpcError {
  code: number;
  message: string;
  data?: unknown;
}

/** The answer to one request: the upstream's message, untouched, and where its parts stand in it. */
export interface McpReply {
  /** The whole JSON-RPC response. */
  text: string;
  /** Where its id stands; null when it has none. */
  id: Span | null;
  /** Where its result stands; null for an error. */
  result: Span | null;
  error: RpcError | null;
}

/** One request to an upstream. */
export interface McpCall {
  method: string;
  /** The params as JSON text, passed on as they are; omitted when there are none. */
  params?: string;
  /** How long the answer may take, from now. With {@link onNotification} every event starts it anew, up to 15 minutes. */
  timeoutMs: number;
  /** Cancels the call upstream when nobody waits for it any more. */
  cancellation?: Cancellation;
  /** Receives the notifications that precede the answer, as JSON text, each with its method. */
  onNotification?: (text: string, method: string) => void;
}

/**
 * Carries JSON-RPC to one upstream, whatever the transport, shared by all callers. Opens its session with the first
 * call, once however many call at once, and again when the upstream forgets it.
 *
 * Failures of the upstream reject with an error of `mcp-errors.ts`; JSON-RPC errors are answers, not failures.
 */
export interface Channel {
  /** Opens the session if there is none. */
  open(timeoutMs: number): Promise<ServerHello>;
  request(call: McpCall): Promise<McpReply>;
  /** Ends the upstream session; no further call opens one. Never rejects. */
  close(): Promise<void>;
}
