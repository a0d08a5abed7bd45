/**
 * Client side of MCP 2026-07-28 over streamable HTTP. There is no session: every request carries the protocol version
 * and the capabilities of its caller in `_meta`.
 *
 * `server/discover` gives the identity, cached for its `ttlMs` within 30 s and an hour. Notifications come on one
 * `subscriptions/listen`; a server that does not know the method honours nothing.
 *
 * When the server says that a header is missing or wrong, the tools are listed again and the call is sent again. A
 * response without `resultType` makes the era doubtful; an error in the form of legacy servers proves that the call did
 * not run (`EraContradictedError`). A `resultType` other than `complete`, `input_required` and `task` is an
 * UpstreamError.
 */
import type {
  Listening,
  ListenFilter,
  ListenOptions,
  McpCall,
  McpReply,
  UpstreamListener,
} from '../protocol/channel.js';
import { deadlineIn, withinDeadline } from '../protocol/deadline.js';
import { slice } from '../protocol/json-text.js';
import { listFilter, mcpLists, readList } from '../protocol/list-pages.js';
import { UpstreamError } from '../protocol/mcp-errors.js';
import {
  headerValue,
  namedBy,
  resultOf,
  withEnvelope,
  parseMessage,
  requestText,
  withList,
  withoutSubscriptionId,
  resultTypeOf,
} from '../protocol/messages.js';
import { MODERN_VERSION, rpcCode, TTL_MS_MAX, type UpstreamIdentity } from '../protocol/protocol.js';
import { identityOfDiscover } from '../protocol/session.js';
import { EraContradictedError, mayResend } from './may-resend.js';
import { isOutOfPlace, type ProtocolAdapter, refusal } from './protocol-adapter.js';
import type { HttpWire } from './http/http-wire.js';
import { Listeners, type OpenListening, common } from './listeners.js';
import type { ResultCache } from './result-cache.js';
import { SingleFlight } from './single-flight.js';
import { paramHeaders, ToolHeaders } from './tools/tool-headers.js';
import { isObject } from '../../platform/text/json.js';

/** Minimum lifetime of an identity, whatever the `ttlMs` of the result. */
const IDENTITY_MS_MIN = 30_000;

const TOOLS_TIMEOUT_MS = 30_000;

const METHOD = 'subscriptions/listen';

export interface Discovered {
  identity: UpstreamIdentity;
  until: number;
}

export interface ModernOptions {
  discovered?: Discovered;
  /** True while the verdict is new: failures are then reported and do not cause another probe. */
  isFresh: () => boolean;
  /** Forgets the era of the endpoint. The response is still returned. */
  invalidateEra(): void;
}

export class ModernAdapter implements ProtocolAdapter {
  private readonly headers: Record<string, string>;
  private readonly discovery: SingleFlight<Discovered>;
  private readonly tools = new ToolHeaders();
  private readonly listeners: Listeners;

  constructor(
    private readonly wire: HttpWire,
    private readonly cache: ResultCache,
    private readonly options: ModernOptions,
  ) {
    this.headers = modernHeaders(wire);
    this.discovery = new SingleFlight(() => this.discover(), wire.target.url);
    this.discovery.value = options.discovered ?? null;
    this.listeners = new Listeners(modernListening(wire, this.headers), (method) => cache.invalidate(method));
  }

  async open(timeoutMs: number): Promise<UpstreamIdentity> {
    const discovery = this.discovery.value;
    if (discovery && discovery.until < Date.now()) this.discovery.discard(discovery);
    return (await this.discovery.get(timeoutMs)).identity;
  }

  async request(call: McpCall, timeoutMs: number): Promise<McpReply> {
    const capabilities = call.profile?.capabilities;
    const key = this.cache.keyOf(call.method, call.params, capabilities ? JSON.stringify(capabilities) : '');
    const cached = key === null ? undefined : this.cache.get(key);
    if (cached) return cached;
    const timeLeft = deadlineIn(timeoutMs);
    let reply = await this.repeated(call, timeLeft);
    if (mayResend(call, reply) === 'new headers') {
      this.cache.invalidate('notifications/tools/list_changed');
      const list = async (part: McpCall) => this.withoutInvalidTools(await this.repeated(part, () => part.timeoutMs));
      await readList({ request: list }, mcpLists.tools, Math.min(timeLeft(), TOOLS_TIMEOUT_MS));
      reply = await this.repeated(call, timeLeft);
    }
    this.checkEra(reply, call);
    if (call.method === mcpLists.tools.method) reply = this.withoutInvalidTools(reply);
    if (key !== null) this.cache.store(key, reply);
    return reply;
  }

  listen(filter: ListenFilter, listener: UpstreamListener, { timeoutMs }: ListenOptions): Promise<Listening> {
    return this.listeners.add(filter, listener, timeoutMs);
  }

  async release(): Promise<void> {}

  async close(): Promise<void> {
    this.cache.clear();
    await this.listeners.close();
    await this.discovery.close(async () => undefined);
  }

  private repeated(call: McpCall, timeLeft: () => number): Promise<McpReply> {
    return this.send(call, timeLeft()).catch((error: Error) => {
      if (isOutOfPlace(error) && !this.options.isFresh()) throw new EraContradictedError(error);
      if (mayResend(call, error) === 'no change') return this.send(call, timeLeft());
      throw error;
    });
  }

  private send(call: McpCall, timeoutMs: number): Promise<McpReply> {
    return this.wire.request(call, {
      era: 'modern',
      headers: this.headersOf(call),
      params: withEnvelope(call.params, call.profile?.capabilities),
      timeoutMs,
    });
  }

  private headersOf({ method, params }: McpCall): Record<string, string> {
    const nameKey = namedBy.get(method);
    const parsed = nameKey && params ? (JSON.parse(params) as Record<string, unknown>) : undefined;
    const name = nameKey && parsed?.[nameKey];
    const headers: Record<string, string> = { ...this.headers, 'mcp-method': headerValue(method) };
    if (typeof name !== 'string') return headers;
    headers['mcp-name'] = headerValue(name);
    const marked = method === 'tools/call' ? this.tools.headersOf(name) : undefined;
    return marked ? Object.assign(headers, paramHeaders(marked, parsed?.arguments)) : headers;
  }

  /** @throws EraContradictedError when the response proves that the request did not run */
  private checkEra(reply: McpReply, { method }: McpCall): void {
    const { error } = reply;
    if (error) {
      if (error.code === rpcCode.invalidParams) this.cache.forgetPages(method);
      // Legacy servers reject a request without a session by a generic code without an id.
      const isGeneric = error.code === -32000 || error.code === rpcCode.invalidRequest;
      const isUnread = isGeneric && (reply.id === null || slice(reply.text, reply.id) === 'null');
      if ((error.code === rpcCode.unsupportedVersion || isUnread) && !this.options.isFresh())
        throw new EraContradictedError(reply);
      return;
    }
    if (!reply.text.includes('"resultType"')) this.options.invalidateEra();
    const type = resultTypeOf(reply);
    if (type === 'complete' || type === 'input_required' || type === 'task') return;
    throw new UpstreamError(`The MCP server answered with a result of type "${type?.slice(0, 40)}", which is not MCP.`);
  }

  /** Removes invalid tools, and stores the header parameters of the others. */
  private withoutInvalidTools(reply: McpReply): McpReply {
    return withList(reply, 'tools', (items) => {
      const refused = this.tools.learnHeaders(items);
      return refused.size === 0 ? null : items.filter((_, at) => !refused.has(at));
    });
  }

  private async discover(): Promise<Discovered> {
    const { url, connectTimeoutMs } = this.wire.target;
    const call = { method: 'server/discover', timeoutMs: connectTimeoutMs };
    const reply = await this.repeated(call, deadlineIn(connectTimeoutMs));
    if (reply.error) {
      if (!this.options.isFresh()) throw new EraContradictedError(refusal(this.wire.target, reply.error.message));
      throw refusal(this.wire.target, reply.error.message);
    }
    return discovered(reply, url);
  }
}

export function modernHeaders({ headers }: HttpWire): Record<string, string> {
  return {
    ...headers,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': MODERN_VERSION,
  };
}

/** @throws UpstreamError when the server supports none of our versions */
export function discovered(reply: McpReply, url: URL): Discovered {
  const result = resultOf(reply);
  const { ttlMs } = result as { ttlMs?: unknown };
  const ms = typeof ttlMs === 'number' && ttlMs > IDENTITY_MS_MIN ? Math.min(ttlMs, TTL_MS_MAX) : IDENTITY_MS_MIN;
  return { identity: identityOfDiscover(result, url), until: Date.now() + ms };
}

/**
 * Opens a stream. The first message of `subscriptions/listen` contains the honoured filter. A server that rejects or does not know the
 * method honours nothing.
 */
function modernListening(wire: HttpWire, headers: Record<string, string>): OpenListening {
  return async (filter, handlers, timeoutMs) => {
    let acknowledge: (honoured: ListenFilter) => void = () => undefined;
    let fail: (error: Error) => void = () => undefined;
    const acknowledged = new Promise<ListenFilter>((resolve, reject) => {
      acknowledge = resolve;
      fail = reject;
    });
    acknowledged.catch(() => undefined);
    let isEnded = false;
    const finish = (_error: Error | null, retryMs: number | null) => {
      isEnded = true;
      fail(new UpstreamError(`${wire.target.url.host} closed the stream of its change notifications.`));
      handlers.lost(retryMs);
    };
    const stream = await wire.stream({
      method: 'POST',
      headers: { ...headers, 'mcp-method': METHOD },
      body: requestText(wire.takeId(), METHOD, withEnvelope(JSON.stringify({ notifications: filter }))),
      timeoutMs,
      onMessage: (data) => {
        const head = parseMessage(data);
        if (typeof head?.method !== 'string') {
          // An error means that no notifications will be sent; a result means the end, which the closed stream also
          // signals.
          if (head?.error) acknowledge({});
        } else if (head.method === 'notifications/subscriptions/acknowledged') {
          const { notifications } = (head.params ?? {}) as { notifications?: unknown };
          const accepted = isObject(notifications) ? notifications : {};
          const { resourceSubscriptions: uris } = accepted;
          acknowledge(
            common(filter, {
              ...listFilter((flag) => accepted[flag] === true),
              resourceSubscriptions: Array.isArray(uris) ? uris.filter((uri) => typeof uri === 'string') : [],
            }),
          );
        } else handlers.onNotification(withoutSubscriptionId(data), head.method);
      },
      onEnd: finish,
    });
    if (stream.status >= 500 || stream.status === 429) throw wire.statusError(stream);
    if (stream.text !== null) return { honoured: {}, close: async () => undefined };
    const late = `${wire.target.url.host} did not confirm the subscription to its change notifications in time.`;
    try {
      const honoured = isEnded ? await acknowledged : await withinDeadline(acknowledged, timeoutMs, late);
      return { honoured, close: async () => stream.close() };
    } catch (error) {
      stream.close();
      throw error;
    }
  };
}
