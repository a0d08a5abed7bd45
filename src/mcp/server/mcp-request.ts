import type { Cancellation } from '../protocol/cancellation.js';
import type { CallTiming, Channel, McpReply } from '../protocol/channel.js';
import type { McpRequestHeaders } from './classify.js';
import type { ClientSession } from './sessions/session-ids.js';

/** One POST to an MCP endpoint. */
export interface McpRequestContext {
  /** Request body. */
  text: string;
  /** True when the client accepts an event stream as the answer. */
  acceptsStream: boolean;
  headers: McpRequestHeaders;
  /** Returns a header by its lower-case name. */
  header(name: string): string | undefined;
  /** Account of the key; streams are counted per account. */
  account: string;
  /** Identity of the caller; session state is stored per principal, within limits. */
  principal: string;
  /** Caller and target, the scope in which a caller can cancel its calls. */
  caller: string;
  /** Legacy session of the request; null without one. */
  session: ClientSession | null;
  /** Cancelled when the client disconnects. */
  cancellation: Cancellation;
  /** Observer of the request's outcome. */
  watch?: CallObserver;
}

/** Receives the method and the outcome of a request, for records. */
export interface CallObserver {
  /**
   * Called once the message was parsed: a request or notification with its params. The method is null for a client's
   * response.
   */
  asked(method: string | null, params: unknown): void;
  /** Called when the upstream answered, also with a JSON-RPC error. */
  answered?(reply: McpReply): void;
  /**
   * Called when the upstream failed or was not called. A JSON-RPC error of the upstream is an answer, not a failure.
   */
  failed(error: Error): void;
  /** Filled during the upstream call. */
  readonly timing?: CallTiming;
  /** Id (UUID) of the record. */
  readonly invocationId?: string;
}

/** Receives the answer. */
export interface McpResponseSink {
  /** Sends the answer: a status and JSON text, or null for no body. After an event it ends the stream. */
  reply(status: number, text: string | null, headers?: Record<string, string>): void;
  /** Sends a message before the answer; the first one turns the answer into an event stream. */
  event(text: string): void;
  /** Turns the answer into an event stream before the first message. */
  open(): void;
  /** Ends the stream without an answer. */
  end(): void;
}

/** A request in progress. */
export interface McpRequest {
  channel: Channel;
  method: string;
  /** Params as a value. */
  params: unknown;
  /** Params as the client's JSON text. */
  own: string | undefined;
  /** Request id as JSON text. */
  id: string;
  request: McpRequestContext;
  sink: McpResponseSink;
}
