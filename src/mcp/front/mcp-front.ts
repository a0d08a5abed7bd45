import { DomainError, statusOf } from '../../platform/errors/domain-error.js';
import type { Cancellation } from '../cancellation.js';
import type { CallTiming, Channel, McpReply } from '../channel.js';
import { DuplicateMemberError, members, slice, splice, type Span } from '../json-text.js';
import { CallerLeftError, UpstreamAuthRequiredError, UpstreamTimeoutError } from '../mcp-errors.js';
import { parseMessage, type RpcHead } from '../messages.js';
import { envelope, LEGACY_VERSIONS, rpcCode, type ServerHello } from '../protocol.js';
import { FrontRefusal } from './front.errors.js';
import { InFlight } from './in-flight.js';

/** One POST to an MCP endpoint of ours. */
export interface FrontRequest {
  /** The body. */
  text: string;
  /** True when the client takes an event stream for an answer. */
  acceptsStream: boolean;
  /** The `MCP-Protocol-Version` header, if any. */
  protocolVersion: string | undefined;
  /** Who is asking, for cancelling one's own calls: the key, the connection and the client's session id, if it has one. */
  caller: string;
  /** Cancelled when the client is gone. */
  cancellation: Cancellation;
  /** Told how it went, if anybody wants to know. */
  watch?: FrontWatch;
}

/** Hears what a request was about and what became of it, for those who keep records. */
export interface FrontWatch {
  /** It was readable: a request or a notification, with its params. */
  asked(method: string, params: unknown): void;
  /** The upstream answered, be it with an error. */
  answered?(reply: McpReply): void;
  /** The upstream failed, or was not asked; a JSON-RPC error of the upstream is an answer, not a failure. */
  failed(error: Error): void;
  /** Filled while the upstream is asked. */
  readonly timing?: CallTiming;
}

/** Where the answer goes. */
export interface FrontSink {
  /** The answer: a status and JSON text, or null for a body-less one. After an event it ends the stream. */
  reply(status: number, text: string | null): void;
  /** A message ahead of the answer; the first one turns the answer into an event stream. */
  event(text: string): void;
}

/** Methods that would act on the session that all callers share, or that need a stream we do not keep open. */
const refusedMethods: ReadonlySet<string> = new Set([
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
]);

/** Deadlines of what a client may ask for. */
export interface FrontLimits {
  callTimeoutMs: number;
}

/**
 * Serves MCP to clients over one channel, statelessly: no handshake is needed, none is remembered, and a session id the
 * client made up is not looked at. What passes, passes byte for byte; only ids and progress tokens are exchanged.
 */
export class McpFront {
  private readonly inFlight = new InFlight();
  private lastToken = 0;

  constructor(private readonly limits: FrontLimits) {}

  /**
   * Answers one POST. Failures of the upstream become JSON-RPC answers; only bugs reject.
   *
   * @param channel where it leads, or why it leads nowhere
   */
  async serve(channel: Channel | FrontRefusal, request: FrontRequest, sink: FrontSink): Promise<void> {
    const { text } = request;
    const head = parseMessage(text);
    const fault = head ? faultOf(head, request) : unreadable(text);
    if (fault) return sink.reply(fault.status, errorText('null', fault.code, fault.message, fault.data));
    const message = head as RpcHead & { method: string };
    request.watch?.asked(message.method, message.params);
    if (message.id === undefined || typeof message.method !== 'string') {
      if (message.method === 'notifications/cancelled') this.cancel(request, message);
      return sink.reply(202, null);
    }
    let parts: Map<string, Span>;
    try {
      parts = members(text, 0, true);
    } catch (error) {
      if (!(error instanceof DuplicateMemberError)) throw error;
      return sink.reply(400, errorText('null', rpcCode.invalidRequest, `"${error.message}" occurs twice`));
    }
    const id = slice(text, parts.get('id') as Span);
    try {
      await this.answer(channel, request, message, parts, id, sink);
    } catch (error) {
      request.watch?.failed(error as Error);
      sink.reply(error instanceof FrontRefusal ? statusOf[error.kind] : 200, failureText(id, message.method, error));
    }
  }

  private async answer(
    channel: Channel | FrontRefusal,
    request: FrontRequest,
    { method, params }: RpcHead & { method: string },
    parts: Map<string, Span>,
    id: string,
    sink: FrontSink,
  ): Promise<void> {
    if (channel instanceof FrontRefusal) throw channel;
    if (method === 'ping') return sink.reply(200, resultMessage(id, '{}'));
    if (refusedMethods.has(method)) {
      return sink.reply(200, errorText(id, rpcCode.methodNotFound, `This endpoint is stateless and has no ${method}`));
    }
    if (method === 'initialize') {
      const hello = await channel.open(this.limits.callTimeoutMs);
      return sink.reply(200, resultMessage(id, JSON.stringify(initializeResult(hello, params))));
    }
    const span = parts.get('params');
    const own = span && slice(request.text, span);
    const token = own && request.acceptsStream ? progressTokenOf(own) : null;
    const ours = `"slipway-${(this.lastToken += 1)}"`;
    const relayed = (text: string, name: string) => relay(text, name, ours, token && slice(own ?? '', token), sink);
    const end = this.inFlight.begin(request.caller, id, request.cancellation);
    try {
      const reply = await channel.request({
        method,
        params: own && token ? splice(own, token, ours) : own,
        timeoutMs: this.limits.callTimeoutMs,
        cancellation: request.cancellation,
        timing: request.watch?.timing,
        ...(request.acceptsStream ? { onNotification: relayed } : {}),
      });
      request.watch?.answered?.(reply);
      sink.reply(200, withId(reply, id));
    } finally {
      end();
    }
  }

  private cancel({ caller, text }: FrontRequest, { params }: RpcHead): void {
    const requestId = (params as { requestId?: unknown } | undefined)?.requestId;
    if (typeof requestId !== 'string' && typeof requestId !== 'number') return;
    const span = members(text).get('params');
    const raw = span && members(text, span[0]).get('requestId');
    if (raw) this.inFlight.cancel(caller, slice(text, raw));
  }
}

interface Fault {
  status: number;
  code: number;
  message: string;
  data?: unknown;
}

function unreadable(text: string): Fault {
  try {
    if (Array.isArray(JSON.parse(text))) {
      return {
        status: 400,
        code: rpcCode.invalidRequest,
        message: 'Send one message per request: batches are not taken',
      };
    }
    return { status: 400, code: rpcCode.invalidRequest, message: 'The body must be one JSON-RPC message' };
  } catch {
    return { status: 400, code: rpcCode.parseError, message: 'The body is not valid JSON' };
  }
}

function faultOf(head: RpcHead, { protocolVersion }: FrontRequest): Fault | null {
  const invalid = (message: string): Fault => ({ status: 400, code: rpcCode.invalidRequest, message });
  const isResponse = head.method === undefined && ('result' in head || 'error' in head);
  if (isResponse) return null;
  if ((head as { jsonrpc?: unknown }).jsonrpc !== undefined && (head as { jsonrpc?: unknown }).jsonrpc !== '2.0') {
    return invalid('jsonrpc must be "2.0"');
  }
  if (typeof head.method !== 'string') return invalid('method must be a string');
  if (head.id !== undefined && typeof head.id !== 'string' && typeof head.id !== 'number') {
    return invalid('id must be a string or a number');
  }
  if (
    head.params !== undefined &&
    (typeof head.params !== 'object' || head.params === null || Array.isArray(head.params))
  ) {
    return invalid('params must be an object');
  }
  const meta = (head.params as { _meta?: unknown } | undefined)?._meta;
  if (meta !== undefined && (typeof meta !== 'object' || meta === null || Array.isArray(meta))) {
    return { status: 400, code: rpcCode.invalidParams, message: 'params._meta must be an object' };
  }
  const declared = (meta as Record<string, unknown> | undefined)?.[envelope.version];
  const requested = declared ?? (head.method === 'initialize' ? undefined : protocolVersion);
  if (requested === undefined || (LEGACY_VERSIONS as readonly unknown[]).includes(requested)) return null;
  return {
    status: 400,
    code: rpcCode.unsupportedVersion,
    message: 'Unsupported protocol version',
    data: { supported: LEGACY_VERSIONS, requested },
  };
}

/** Where the client's progress token stands in its params, if it sent one. */
function progressTokenOf(params: string): Span | null {
  if (!params.includes('progressToken')) return null;
  const meta = members(params).get('_meta');
  if (!meta || params[meta[0]] !== '{') return null;
  return members(params, meta[0]).get('progressToken') ?? null;
}

/** Passes a notification on, progress under the client's own token; progress of anybody else is dropped. */
function relay(text: string, method: string, ours: string, theirs: string | null, sink: FrontSink): void {
  if (method !== 'notifications/progress') return sink.event(text);
  const params = members(text).get('params');
  const token = params && text[params[0]] === '{' ? members(text, params[0]).get('progressToken') : undefined;
  if (theirs !== null && token && slice(text, token) === ours) sink.event(splice(text, token, theirs));
}

/** The reply under the client's id. */
function withId(reply: McpReply, id: string): string {
  const { error } = reply;
  if (error && hopErrors.has(error.code)) {
    const upstream = { code: error.code, message: error.message };
    return errorText(id, rpcCode.internalError, 'The MCP server did not accept how it was asked', { upstream });
  }
  if (reply.id) return splice(reply.text, reply.id, id);
  const { code = rpcCode.internalError, message = '', data } = reply.error ?? {};
  return errorText(id, code, message, data);
}

/** Errors about the hop between us and the upstream, which say nothing about the client's request. */
const hopErrors: ReadonlySet<number> = new Set([
  rpcCode.headerMismatch,
  rpcCode.missingCapability,
  rpcCode.unsupportedVersion,
]);

function resultMessage(id: string, result: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":${result}}`;
}

/** A JSON-RPC error; `id` is JSON text. */
export function errorText(id: string, code: number, message: string, data?: unknown): string {
  return `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code, message, ...(data === undefined ? {} : { data }) })}}`;
}

/**
 * A failure of the upstream as the client hears it. Never our 401 or 404: a client would refresh a healthy key, or open
 * sessions in a loop. A tool that wants authorization says so as a tool result, which reaches the model and its user.
 */
function failureText(id: string, method: string, error: unknown): string {
  if (error instanceof FrontRefusal) return errorText(id, error.rpcCode, error.message, error.data);
  if (error instanceof UpstreamAuthRequiredError) {
    if (method === 'tools/call') {
      return resultMessage(id, JSON.stringify({ content: [{ type: 'text', text: error.message }], isError: true }));
    }
    return errorText(id, rpcCode.authRequired, error.message);
  }
  if (error instanceof CallerLeftError) return errorText(id, rpcCode.cancelled, 'The call was cancelled');
  if (error instanceof UpstreamTimeoutError) return errorText(id, rpcCode.timeout, error.message);
  if (error instanceof DomainError) return errorText(id, rpcCode.upstreamError, error.message);
  throw error;
}

/** Our answer to `initialize`: the upstream's, less what a stateless endpoint cannot keep. */
function initializeResult(hello: ServerHello, params: unknown): object {
  const requested = (params as { protocolVersion?: unknown } | undefined)?.protocolVersion;
  const isKnown = (LEGACY_VERSIONS as readonly unknown[]).includes(requested);
  return {
    protocolVersion: isKnown ? requested : LEGACY_VERSIONS[0],
    capabilities: statelessCapabilities(hello.capabilities),
    serverInfo: hello.serverInfo,
    ...(hello.instructions === undefined ? {} : { instructions: hello.instructions }),
  };
}

function statelessCapabilities(capabilities: Record<string, unknown>): Record<string, unknown> {
  const { tools, prompts, resources, completions } = capabilities;
  const kept = (name: string, value: unknown) => (value === undefined ? {} : { [name]: {} });
  return {
    ...kept('tools', tools),
    ...kept('prompts', prompts),
    ...kept('resources', resources),
    ...kept('completions', completions),
  };
}
