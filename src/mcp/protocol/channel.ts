import type { Cancellation } from './cancellation.js';
import type { Span } from './json-text.js';
import type { Era, UpstreamIdentity } from './protocol.js';
import type { TraceHeaders } from './trace-context.js';

export interface RpcError {
  code: number;
  message: string;
  data?: unknown;
}

/** The upstream's reply to one request, unchanged, with the positions of its parts. */
export interface McpReply {
  text: string;
  /** Position of the id; null without one. */
  id: Span | null;
  /** Position of the result; null for an error. */
  result: Span | null;
  error: RpcError | null;
  /** Era of the result: a modern result has a `resultType`, which may be `input_required`; a legacy one has none. */
  era: Era;
  /** Upstream session of the reply, for a call with {@link McpCall.session}; absent where sessions have no names. */
  session?: string;
}

/**
 * A caller that can answer server requests during a call, with its capabilities. Capabilities are fixed when a legacy
 * session opens, so each profile key gets its own upstream session.
 */
export interface CallerProfile {
  /** Unique per client session, so that messages of the upstream session reach this caller only. */
  key: string;
  /**
   * MCP client capabilities that the caller declared and can serve. Legacy upstreams receive `elicitation`, `sampling`,
   * `roots`, `extensions` and `experimental` only.
   */
  capabilities: Record<string, unknown>;
  /**
   * Answers server requests of a legacy upstream outside of a call; `params` is JSON text. @param ofCall answers during a
   * running call of the caller, if there is one
   */
  onRequest?: (method: string, params: string | undefined, ofCall: McpCall['onRequest']) => Promise<ClientAnswer>;
  /** Log level that the caller set; a legacy upstream receives it before the call, once per session. */
  level?: string;
  /** Allows the shared session, without server requests, when no separate session is available. */
  mayShare?: true;
  /** Set when all callers with equal capabilities have this key and share its session. */
  isShared?: true;
}

/** The response of a client, with its result as JSON text. */
export type ClientAnswer = { result: string } | { error: RpcError };

/** Times of a call in milliseconds; the channel sets the phases that it measures. */
export interface CallTiming {
  /** Time to resolve the address and check it against the egress policy. */
  guardMs?: number;
  /** Time of waiting for a free socket, or for the session of the call. */
  queueMs?: number;
  /** Time to connect; 0 for an open socket. */
  connectMs?: number;
  /** Time from sending the request to the first byte of the response. */
  firstByteMs?: number;
}

/** The sender of a request, for records. */
export interface CallOrigin {
  account: string;
  /**
   * Kind of the credential: an API key, an OAuth token (whose id is that of the client authorization), or a browser
   * session.
   */
  kind: 'key' | 'oauth' | 'session';
  credential: string;
  /** The name in the client's `clientInfo`; null if it sent none. */
  client: string | null;
}

export interface McpCall {
  method: string;
  /**
   * Params as JSON text, forwarded unchanged; omitted without any. Exclude the members of `_meta` that describe the
   * caller's hop (`io.modelcontextprotocol/…` protocol version, capabilities, client info). A hook may replace them.
   */
  params?: string;
  /** Timeout of the response. With {@link onNotification} every message of the call restarts it, up to an hour in all. */
  timeoutMs: number;
  /** Cancels the call upstream when the caller no longer waits. */
  cancellation?: Cancellation;
  /** Receives the notifications that precede the response, as JSON text, each with its method. */
  onNotification?: (text: string, method: string) => void;
  /** Receives the list changes among these notifications, even if the caller accepts no notifications. */
  onListChange?: (text: string, method: string) => void;
  /** Called when the stream of the response broke and is resumed: the response takes longer. */
  onInterrupted?: () => void;
  /** Profile of a caller that can answer server requests; without it they are rejected. */
  profile?: CallerProfile;
  /** Era in which an upstream of both serves the call; `modern` by default. */
  era?: Era;
  /** Answers a server request of a legacy upstream during the call; `params` is JSON text. Requires {@link profile}. */
  onRequest?: (method: string, params: string | undefined) => Promise<ClientAnswer>;
  /**
   * Identity of the caller, for upstreams that separate callers: the client's session, or for clients without one the
   * API key and the target. Absent for callers without an identity.
   */
  caller?: string;
  timing?: CallTiming;
  /**
   * Upstream session in which the request is sent, whichever process opened it: that of a task. Empty for the current
   * session, whose name is then in the reply.
   */
  session?: string;
  /** Slipway services that the call has passed, newest first; see `via.ts`. */
  via?: string;
  /** Request id and trace context of the caller, sent as headers; the trace context also in `_meta`. */
  trace?: TraceHeaders;
  /** UUID of the record of this call, sent to hosted programs, so that their console lines refer to it. */
  invocationId?: string;
  /** Absent for requests of the service itself. */
  origin?: CallOrigin;
}

/** A filter in the form of `subscriptions/listen` (MCP 2026-07-28). */
export interface ListenFilter {
  toolsListChanged?: boolean;
  promptsListChanged?: boolean;
  resourcesListChanged?: boolean;
  resourceSubscriptions?: string[];
  /**
   * Log messages and custom notifications of a legacy upstream's session; only for a caller with its own session; never
   * sent to an upstream.
   */
  messages?: boolean;
}

export interface UpstreamListener {
  /** Called with a notification as JSON text, without the subscription id of its hop. */
  onNotification(text: string, method: string): void;
  /** Called when the stream has closed. The caller decides whether to listen again. */
  onEnd(reason: Error | null): void;
}

export interface ListenOptions {
  timeoutMs: number;
  /** Era in which an upstream of both serves the stream; `modern` by default. */
  era?: Era;
  /** Profile of a caller whose calls run in its own upstream session: listens there, including to log messages. */
  profile?: CallerProfile;
}

export interface Listening {
  honoured: ListenFilter;
  /** Removes the listener. Never rejects. */
  close(): Promise<void>;
}

/**
 * Sends JSON-RPC to one upstream over any transport, shared by all callers. Failures of the upstream reject with an
 * error of `mcp-errors.ts`. JSON-RPC errors and `input_required` results are replies.
 */
export interface Channel {
  /** Opens the session, unless it is open. @param era of an upstream of both; `modern` by default */
  open(timeoutMs: number, era?: Era): Promise<UpstreamIdentity>;
  request(call: McpCall): Promise<McpReply>;
  /**
   * Listens to notifications outside of calls: list changes, and updates of the named resources. Upstreams without
   * notifications honour nothing.
   */
  listen(filter: ListenFilter, listener: UpstreamListener, options: ListenOptions): Promise<Listening>;
  /**
   * Sends a notification, a JSON-RPC message, to the upstream session of a caller profile in this process. Without effect
   * when the caller has none of its own. This method never throws. Absent for channels without such sessions.
   */
  notify?(profileKey: string, text: string): void;
  /** Invalidates cached lists of the upstream, whatever their `ttlMs`. Absent for channels without a cache. */
  forgetLists?(): void;
  /**
   * Closes the upstream sessions of a caller profile. Sessions that the upstream restores by name are deleted only with
   * `forGood`, whichever process opened them. The promise never rejects.
   */
  release(profileKey: string, forGood?: boolean): Promise<void>;
  /** Closes the channel, which then fails further calls. The promise never rejects. */
  close(forGood?: boolean): Promise<void>;
}
