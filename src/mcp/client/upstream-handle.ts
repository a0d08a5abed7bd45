import { LRUCache } from 'lru-cache';
import { sharedProfile } from '../protocol/session.js';
import type {
  Channel,
  Listening,
  ListenFilter,
  ListenOptions,
  McpCall,
  McpReply,
  UpstreamListener,
} from '../protocol/channel.js';
import type { Era, UpstreamIdentity } from '../protocol/protocol.js';
import { withTraceMeta } from '../protocol/trace-context.js';
import { memberText } from '../protocol/json-edit.js';
import { tracing, type SpanAttributes } from '../../platform/telemetry/tracing.js';
import { untilRestart } from './call-registry.js';
import { CALL_MS_MAX } from './silence-timer.js';
import { ToolCatalog } from './tool-catalog.js';

/** Limits of catalogs for callers with capabilities, and of the length of these capabilities as JSON text. */
const CATALOGS_MAX = 20;
const CAPABILITIES_CHARS_MAX = 4_096;

/** Drain time of running calls after their connection or release was deleted. */
const DELETED_DRAIN_MS_MAX = 60_000;

/** An upstream channel shared by its callers. Counts running calls and listeners, so that it can close when idle. */
export abstract class UpstreamHandle implements Channel {
  readonly catalog = new ToolCatalog(this);
  lastUsedAt = Date.now();
  private readonly catalogs = new LRUCache<string, ToolCatalog>({ max: CATALOGS_MAX });
  /** True once the connection or release was deleted. */
  protected isGone = false;
  private running = 0;
  private listeners = 0;
  private onIdle: (() => void) | null = null;

  constructor(private readonly channel: Channel) {}

  open(timeoutMs: number, era?: Era): Promise<UpstreamIdentity> {
    return this.watched('initialize', this.channel.open(timeoutMs, era));
  }

  request(call: McpCall): Promise<McpReply> {
    const refusal = this.refusal(call);
    if (refusal) return Promise.reject(refusal);
    const traced = tracing();
    if (!traced) return this.send(call);
    const { name, attributes } = spanOf(call);
    return traced.run(name, 'client', attributes, (headers) =>
      this.send({ ...call, trace: { ...call.trace, ...headers } }),
    );
  }

  private send(call: McpCall): Promise<McpReply> {
    const { onNotification } = call;
    const params = withTraceMeta(call.params, call.trace);
    const observed = { ...call, params, onNotification: onNotification && this.withListChanges(onNotification) };
    const reply = this.watched(call.method, this.channel.request(observed));
    this.started(call, reply);
    return untilRestart(call, reply);
  }

  /** The catalog that a caller with these capabilities sees: some servers list a tool only to clients that it can ask. */
  catalogFor(capabilities: Record<string, unknown> | undefined): ToolCatalog {
    const key = JSON.stringify(capabilities ?? {});
    if (key === '{}' || key.length > CAPABILITIES_CHARS_MAX) return this.catalog;
    const catalog = this.catalogs.get(key) ?? new ToolCatalog(this.listsFor(capabilities));
    this.catalogs.set(key, catalog);
    return catalog;
  }

  /** Sends the requests for lists of a caller with these capabilities. */
  listsFor(capabilities: Record<string, unknown> = {}): Pick<Channel, 'request'> {
    return {
      request: async (call) => {
        const { era } = await this.open(call.timeoutMs);
        return this.request({ ...call, profile: sharedProfile(era, capabilities) });
      },
    };
  }

  async listen(filter: ListenFilter, listener: UpstreamListener, options: ListenOptions): Promise<Listening> {
    let isListening = true;
    const leave = () => {
      if (isListening) this.listeners -= 1;
      isListening = false;
    };
    this.listeners += 1;
    const watched: UpstreamListener = {
      onNotification: this.withListChanges((text, method) => listener.onNotification(text, method)),
      onEnd: (reason) => {
        leave();
        listener.onEnd(reason);
      },
    };
    try {
      const listening = await this.watched('subscriptions/listen', this.channel.listen(filter, watched, options));
      return {
        honoured: listening.honoured,
        close: () => {
          leave();
          return listening.close();
        },
      };
    } catch (error) {
      leave();
      throw error;
    }
  }

  forgetLists(): void {
    this.forgetCatalogs();
    this.channel.forgetLists?.();
  }

  release(profileKey: string, forGood?: boolean): Promise<void> {
    return this.channel.release(profileKey, forGood);
  }

  close(forGood = false): Promise<void> {
    this.isGone ||= forGood;
    return this.channel.close(forGood);
  }

  /** Closes after the running calls have ended: in an hour at most, and in a minute `forGood`. */
  async retire(forGood?: boolean): Promise<void> {
    if (this.running > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, forGood ? DELETED_DRAIN_MS_MAX : CALL_MS_MAX).unref();
        this.onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    await this.close(forGood);
  }

  /** True without running calls and listeners. */
  get isIdle(): boolean {
    return this.running === 0 && this.listeners === 0;
  }

  /** Error that prevents a call; null to send it. */
  protected refusal(_call: McpCall): Error | null {
    return null;
  }

  /** Called after a call was sent; `reply` settles as for its caller. Must not throw. */
  protected started(_call: McpCall, _reply: Promise<McpReply>): void {}

  /** Called when a request was answered, with a result or a JSON-RPC error. */
  protected succeeded(): void {}

  /** Called when a request failed. @returns the error for its caller */
  protected failed(_method: string, error: Error): Error {
    return error;
  }

  /** Invalidates the cached tool catalog before the listener receives `notifications/tools/list_changed`. */
  private withListChanges(onNotification: UpstreamListener['onNotification']): UpstreamListener['onNotification'] {
    return (text, method) => {
      if (method === 'notifications/tools/list_changed') this.forgetCatalogs();
      onNotification(text, method);
    };
  }

  private forgetCatalogs(): void {
    this.catalog.forget();
    for (const catalog of this.catalogs.values()) catalog.forget();
  }

  private async watched<T>(method: string, work: Promise<T>): Promise<T> {
    this.running += 1;
    this.lastUsedAt = Date.now();
    try {
      const value = await work;
      this.succeeded();
      return value;
    } catch (error) {
      throw this.failed(method, error as Error);
    } finally {
      this.running -= 1;
      if (this.running === 0) this.onIdle?.();
    }
  }
}

/** Name and attributes by the semantic conventions of OpenTelemetry for MCP. */
function spanOf({ method, params, invocationId }: McpCall): { name: string; attributes: SpanAttributes } {
  const nameText = method === 'tools/call' ? memberText(params ?? '{}', 'name') : undefined;
  const tool = nameText?.startsWith('"') ? (JSON.parse(nameText) as string) : undefined;
  return {
    name: tool === undefined ? method : `${method} ${tool}`,
    attributes: {
      'mcp.method.name': method,
      'gen_ai.tool.name': tool,
      'gen_ai.operation.name': tool && 'execute_tool',
      'slipway.invocation.id': invocationId,
    },
  };
}
