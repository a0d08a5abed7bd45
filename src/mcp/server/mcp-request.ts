import type { Cancellation } from '../protocol/cancellation.js';
import type { CallTiming, Channel, McpReply } from '../protocol/channel.js';
import type { McpRequestHeaders } from './classify.js';
import type { ClientSession } from './sessions/session-ids.js';

/** One POST to an MCP endpoint of ours. */
export interface McpRequestContext {
  /** The body. */
  text: string;
  /** True when the client takes an event stream for an answer. */
  acceptsStream: boolean;
  headers: McpRequestHeaders;
  /** A header by its lower-case name. */
  header(name: string): string | undefined;
  /** Whose key it is: streams are counted for it. */
  account: string;
  /** Who is asking: what sessions set is remembered for it, within bounds. */
  principal: string;
  /** Who is asking whom, for cancelling one's own calls. */
  caller: string;
  /** The legacy session it is sent in; null for none. */
  session: ClientSession | null;
  /** Cancelled when the client is gone. */
  cancellation: Cancellation;
  /** Told how it went, if anybody wants to know. */
  watch?: CallObserver;
}

/** Hears what a request was about and what became of it, for those who keep records. */
export interface CallObserver {
  /** It was readable: a request or a notification, with its params. A client's answer to a question has no method: null. */
  asked(method: string | null, params: unknown): void;
  /** The upstream answered, be it with an error. */
  answered?(reply: McpReply): void;
  /** The upstream failed, or was not asked; a JSON-RPC error of the upstream is an answer, not a failure. */
  failed(error: Error): void;
  /** Filled while the upstream is asked. */
  readonly timing?: CallTiming;
  /** The record's id (UUID). */
  readonly invocationId?: string;
}

/** Where the answer goes. */
export interface McpResponseSink {
  /** The answer: a status and JSON text, or null for a body-less one. After an event it ends the stream. */
  reply(status: number, text: string | null, headers?: Record<string, string>): void;
  /** A message ahead of the answer; the first one turns the answer into an event stream. */
  event(text: string): void;
  /** Turns the answer into an event stream that stays open, before there is anything to say. */
  open(): void;
  /** Ends the stream without an answer. */
  end(): void;
}

/** A request that is being answered. */
export interface McpRequest {
  channel: Channel;
  method: string;
  /** The params, read. */
  params: unknown;
  /** The params as they were written. */
  own: string | undefined;
  /** JSON text. */
  id: string;
  request: McpRequestContext;
  sink: McpResponseSink;
}
