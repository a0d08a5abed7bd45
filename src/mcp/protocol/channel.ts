import type { Cancellation } from './cancellation.js';
import type { Span } from './json-text.js';
import type { Era, UpstreamIdentity } from './protocol.js';

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
  /** How the result is to be read: a modern one has a `resultType`, which may ask for input; a legacy one has none. */
  era: Era;
}

/**
 * A caller who can be asked things in the middle of a call, and what it can be asked. Capabilities are fixed when a legacy
 * session opens, so callers with a profile get an upstream session of their own, one for each key.
 */
export interface CallerProfile {
  /** One for each client session: what an upstream sends in its session reaches this caller only. */
  key: string;
  /**
   * MCP client capabilities the caller declared and can be reached for: `elicitation`, `sampling`, `roots`. Empty for one
   * who only has to have a session of its own. Legacy upstreams are told of these three alone.
   */
  capabilities: Record<string, unknown>;
  /** Rather without a session of its own, and so without being asked, than not at all. */
  mayShare?: true;
}

/** What a caller answers to a question of the upstream: the result as JSON text, or an error. */
export type ClientAnswer = { result: string } | { error: RpcError };

/** Where the time of a call went, in milliseconds; filled by the channel as far as it knows. */
export interface CallTiming {
  /** Finding and judging the address. */
  guardMs?: number;
  /** Waiting for a free socket, or for the session the call needs. */
  queueMs?: number;
  /** Opening a socket, TLS included; 0 when one was open. */
  connectMs?: number;
  /** From sending the request to the first byte of the answer. */
  firstByteMs?: number;
}

/** One request to an upstream. */
export interface McpCall {
  method: string;
  /**
   * The params as JSON text, passed on as they are; omitted when there are none. Without the members of `_meta` that are
   * about the caller's own hop (`io.modelcontextprotocol/…` protocol version, capabilities, client info).
   */
  params?: string;
  /** How long the answer may take, from now. With {@link onNotification} every event starts it anew, up to 15 minutes. */
  timeoutMs: number;
  /** Cancels the call upstream when nobody waits for it any more. */
  cancellation?: Cancellation;
  /** Receives the notifications that precede the answer, as JSON text, each with its method. */
  onNotification?: (text: string, method: string) => void;
  /** Who is asking, when it can be asked back. Without it the upstream hears that nobody answers anything. */
  profile?: CallerProfile;
  /** Answers what a legacy upstream asks in the middle of the call; `params` is JSON text. Needs {@link profile}. */
  onRequest?: (method: string, params: string | undefined) => Promise<ClientAnswer>;
  /**
   * Names who is calling, for upstreams that must not mix callers up: the client's session, and for clients without one
   * whose key it is and what it calls. Missing where nobody could be told from anybody else.
   */
  caller?: string;
  /** Filled while the call runs, for those who keep records. */
  timing?: CallTiming;
  /** The services like this one that the call came through before, newest first; see `via.ts`. */
  via?: string;
  /** The record this call belongs to (UUID); told to upstreams that run here, so that their console lines find it. */
  invocationId?: string;
}

/** What a listener wants to hear, in the words of `subscriptions/listen` (MCP 2026-07-28). */
export interface ListenFilter {
  toolsListChanged?: boolean;
  promptsListChanged?: boolean;
  resourcesListChanged?: boolean;
  /** URIs whose changes are told. */
  resourceSubscriptions?: string[];
}

/** Hears what happens upstream outside of any call. */
export interface UpstreamListener {
  /** A notification as JSON text, without marks of the hop it came by. */
  onNotification(text: string, method: string): void;
  /** The upstream will say no more; listening anew is up to the caller. */
  onEnd(reason: Error | null): void;
}

/** A listener's place. */
export interface Listening {
  /** What of the filter the upstream can tell. */
  honoured: ListenFilter;
  /** Ends it. Never rejects. */
  close(): Promise<void>;
}

/**
 * Carries JSON-RPC to one upstream, whatever the transport, shared by all callers. Opens its session with the first
 * call, once however many call at once, and again when the upstream forgets it.
 *
 * Failures of the upstream reject with an error of `mcp-errors.ts`; JSON-RPC errors are answers, not failures, and so are
 * the `input_required` results of a modern upstream.
 */
export interface Channel {
  /** Opens the session if there is none. */
  open(timeoutMs: number): Promise<UpstreamIdentity>;
  request(call: McpCall): Promise<McpReply>;
  /**
   * Hears the upstream's notifications outside of calls: list changes, and changes of the resources named. Upstreams that
   * cannot tell honour nothing.
   */
  listen(filter: ListenFilter, listener: UpstreamListener, timeoutMs: number): Promise<Listening>;
  /**
   * What is remembered of the upstream's lists is asked for anew, whatever it said of how long they stay good. Absent
   * where nothing is remembered.
   */
  forgetLists?(): void;
  /**
   * Ends the upstream sessions of a caller profile, if there are any. Those that the upstream keeps for whoever comes back
   * only end `forGood`, and then whichever process opened them. Never rejects.
   */
  release(profileKey: string, forGood?: boolean): Promise<void>;
  /** The same with every session this process knows; no further call opens one. Never rejects. */
  close(forGood?: boolean): Promise<void>;
}
