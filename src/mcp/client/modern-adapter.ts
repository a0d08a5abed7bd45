import type { Listening, ListenFilter, McpCall, McpReply, UpstreamListener } from '../protocol/channel.js';
import { deadlineIn, withinDeadline } from '../protocol/deadline.js';
import { elements, members, slice, splice } from '../protocol/json-text.js';
import { listPages, mcpLists } from '../protocol/list-pages.js';
import { UpstreamFailure, UpstreamError, fromHttpStatus } from '../protocol/mcp-errors.js';
import {
  headerValue,
  namedBy,
  resultOf,
  withEnvelope,
  parseMessage,
  requestText,
  withoutSubscriptionId,
} from '../protocol/messages.js';
import { MODERN_VERSION, rpcCode, type UpstreamIdentity } from '../protocol/protocol.js';
import { resultTypeOf } from '../protocol/messages.js';
import { helloOfDiscover } from '../protocol/session.js';
import { EraContradictedError, isOutOfPlace, mayRepeat, type ProtocolAdapter } from './protocol-adapter.js';
import type { HttpWire } from './http/http-wire.js';
import { Listeners, type OpenListening } from './listeners.js';
import { refusal } from './refusal.js';
import type { ResultCache } from './result-cache.js';
import { SingleFlight } from './single-flight.js';
import { paramHeaders, ToolHeaders } from './tool-headers.js';
import { isObject } from '../../platform/text/json.js';
import { common } from './listen-filter.js';

/** What a server says of itself is believed this long at least, however little it says about that. */
const HELLO_MS_MIN = 30_000;
const HELLO_MS_MAX = 60 * 60_000;

/** Reading all tools anew, for what their calls must repeat in headers. */
const TOOLS_TIMEOUT_MS = 30_000;
const TOOL_PAGES_MAX = 64;

const METHOD = 'subscriptions/listen';

/** What a server said of itself, and until when that holds. */
export interface Discovered {
  hello: UpstreamIdentity;
  until: number;
}

/** What a modern dialect needs to know of the verdict it was chosen by. */
export interface ModernOptions {
  /** What the server said while it was found out what the endpoint is. */
  discovered?: Discovered;
  /** True while the verdict is of this moment: then nothing contradicts it, failures are failures. */
  isFresh: () => boolean;
  /** An answer came that a modern server does not give. It is an answer all the same. */
  onDoubt(): void;
}

/** MCP 2026-07-28 over streamable HTTP: no sessions, every request says for itself what it needs. */
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
    this.listeners = new Listeners(modernListening(wire, this.headers), (method) => cache.noticed(method));
  }

  async open(timeoutMs: number): Promise<UpstreamIdentity> {
    const known = this.discovery.value;
    if (known && known.until < Date.now()) this.discovery.lose(known);
    return (await this.discovery.get(timeoutMs)).hello;
  }

  async request(call: McpCall, timeoutMs: number): Promise<McpReply> {
    const capabilities = call.profile?.capabilities;
    const key = this.cache.keyOf(call.method, call.params, capabilities ? JSON.stringify(capabilities) : '');
    const known = key === null ? undefined : this.cache.get(key);
    if (known) return known;
    const left = deadlineIn(timeoutMs);
    let reply = await this.repeated(call, left);
    if (reply.error?.code === rpcCode.headerMismatch && call.method === 'tools/call') {
      await this.readTools(left());
      reply = await this.repeated(call, left);
    }
    this.judge(reply, call);
    if (call.method === mcpLists.tools.method) reply = this.withoutInvalidTools(reply);
    if (key !== null) this.cache.keep(key, reply);
    return reply;
  }

  listen(filter: ListenFilter, listener: UpstreamListener, timeoutMs: number): Promise<Listening> {
    return this.listeners.add(filter, listener, timeoutMs);
  }

  async release(): Promise<void> {}

  async close(): Promise<void> {
    this.cache.clear();
    await this.listeners.close();
    await this.discovery.close(async () => undefined);
  }

  /** What only reads is sent once more when its answer is lost. */
  private async repeated(call: McpCall, left: () => number): Promise<McpReply> {
    try {
      return await this.send(call, left());
    } catch (error) {
      if (isOutOfPlace(error) && !this.options.isFresh()) throw new EraContradictedError(error as Error);
      if (mayRepeat(call, error)) return this.send(call, left());
      throw error instanceof UpstreamFailure && call.method === 'tools/call' ? error.ofCall() : error;
    }
  }

  private async send(call: McpCall, timeoutMs: number): Promise<McpReply> {
    const { reply } = await this.wire.ask(call, {
      era: 'modern',
      headers: this.headersOf(call),
      params: withEnvelope(call.params, call.profile?.capabilities),
      timeoutMs,
    });
    return reply;
  }

  /** A modern request repeats in headers what it is about. */
  private headersOf({ method, params }: McpCall): Record<string, string> {
    const named = namedBy.get(method);
    const parsed = named && params ? (JSON.parse(params) as Record<string, unknown>) : undefined;
    const name = named && parsed?.[named];
    const headers: Record<string, string> = { ...this.headers, 'mcp-method': headerValue(method) };
    if (typeof name !== 'string') return headers;
    headers['mcp-name'] = headerValue(name);
    const marked = method === 'tools/call' ? this.tools.of(name) : undefined;
    return marked ? Object.assign(headers, paramHeaders(marked, parsed?.arguments)) : headers;
  }

  /**
   * Whether an answer is one of a modern server.
   *
   * @throws EraContradictedError when it says that the request did not run
   */
  private judge(reply: McpReply, { method }: McpCall): void {
    const { error } = reply;
    if (error) {
      if (error.code === rpcCode.invalidParams) this.cache.forgetPages(method);
      const isRefused = error.code === rpcCode.unsupportedVersion || isRefusedUnread(reply);
      if (isRefused && !this.options.isFresh()) throw new EraContradictedError(reply);
      return;
    }
    if (!reply.text.includes('"resultType"')) this.options.onDoubt();
    const type = resultTypeOf(reply);
    if (type === 'complete' || type === 'input_required' || type === 'task') return;
    throw new UpstreamError(`The MCP server answered with a result of type "${type?.slice(0, 40)}", which is not MCP.`);
  }

  /** Learns what calls must repeat in headers, and leaves out tools that may not be called for how they say it. */
  private withoutInvalidTools(reply: McpReply): McpReply {
    const { text, result } = reply;
    const list = result && text[result[0]] === '{' ? members(text, result[0]).get('tools') : undefined;
    if (!result || !list || text[list[0]] !== '[') return reply;
    const items = elements(text, list[0]).map((span) => slice(text, span));
    const refused = this.tools.learn(items);
    if (refused.size === 0) return reply;
    const kept = splice(text, list, `[${items.filter((_, at) => !refused.has(at)).join(',')}]`);
    const parts = members(kept);
    return { ...reply, text: kept, id: parts.get('id') ?? null, result: parts.get('result') ?? null };
  }

  private async readTools(timeoutMs: number): Promise<void> {
    this.cache.noticed('notifications/tools/list_changed');
    const request = async (call: McpCall) => this.withoutInvalidTools(await this.repeated(call, () => call.timeoutMs));
    const pages = listPages({ request }, mcpLists.tools, Math.min(timeoutMs, TOOLS_TIMEOUT_MS));
    let read = 0;
    while (read < TOOL_PAGES_MAX && !(await pages.next()).done) read += 1;
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

/** Legacy servers refuse so what they have no session for: with a generic code, and no id since they did not read on. */
function isRefusedUnread({ text, id, error }: McpReply): boolean {
  const isGeneric = error?.code === -32000 || error?.code === rpcCode.invalidRequest;
  return isGeneric && (id === null || slice(text, id) === 'null');
}

/** What every request to a modern server carries. */
export function modernHeaders({ headers }: HttpWire): Record<string, string> {
  return {
    ...headers,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': MODERN_VERSION,
  };
}

/** What a `server/discover` reply says. @throws UpstreamError when it speaks no version of ours */
export function discovered(reply: McpReply, url: URL): Discovered {
  const result = resultOf(reply);
  const { ttlMs } = result as { ttlMs?: unknown };
  const ms = typeof ttlMs === 'number' && ttlMs > HELLO_MS_MIN ? Math.min(ttlMs, HELLO_MS_MAX) : HELLO_MS_MIN;
  return { hello: helloOfDiscover(result, url), until: Date.now() + ms };
}

/**
 * Listening to a modern server: one `subscriptions/listen`, whose first message says what of the filter the server tells.
 * A server that refuses it, or does not know it, tells nothing.
 */
function modernListening(wire: HttpWire, headers: Record<string, string>): OpenListening {
  return async (filter, ears, timeoutMs) => {
    let acknowledge: (honoured: ListenFilter) => void = () => undefined;
    let fail: (error: Error) => void = () => undefined;
    const acknowledged = new Promise<ListenFilter>((resolve, reject) => {
      acknowledge = resolve;
      fail = reject;
    });
    acknowledged.catch(() => undefined);
    let isEnded = false;
    const end = () => {
      isEnded = true;
      fail(new UpstreamError(`${wire.target.url.host} ended the stream on which it should tell of changes.`));
      ears.lost();
    };
    const stream = await wire.stream({
      method: 'POST',
      headers: { ...headers, 'mcp-method': METHOD },
      body: requestText(wire.takeId(), METHOD, withEnvelope(JSON.stringify({ notifications: filter }))),
      timeoutMs,
      onMessage: (data) => {
        const head = parseMessage(data);
        if (typeof head?.method !== 'string') {
          // An error says that it tells nothing; a result that it is over, which the stream's own end says too.
          if (head?.error) acknowledge({});
        } else if (head.method === 'notifications/subscriptions/acknowledged') {
          acknowledge(common(filter, honouredIn(head.params)));
        } else ears.hear(withoutSubscriptionId(data), head.method);
      },
      onEnd: end,
    });
    if (stream.status >= 500 || stream.status === 429) throw fromHttpStatus(stream.status, wire.target.url, undefined);
    if (stream.text !== null) return { honoured: {}, close: async () => undefined };
    const late = `${wire.target.url.host} did not say what changes it tells of.`;
    try {
      const honoured = isEnded ? await acknowledged : await withinDeadline(acknowledged, timeoutMs, late);
      return { honoured, close: async () => stream.close() };
    } catch (error) {
      stream.close();
      throw error;
    }
  };
}

function honouredIn(params: unknown): ListenFilter {
  const told = isObject(params) && isObject(params.notifications) ? params.notifications : {};
  const { resourceSubscriptions: uris } = told;
  return {
    toolsListChanged: told.toolsListChanged === true,
    promptsListChanged: told.promptsListChanged === true,
    resourcesListChanged: told.resourcesListChanged === true,
    resourceSubscriptions: Array.isArray(uris) ? uris.filter((uri) => typeof uri === 'string') : [],
  };
}
