/**
 * An upstream channel shared by its callers; every call to a connection or a release passes here.
 *
 * For each call it checks with the owner (a connection, or a release with the values of its callers) that it may be
 * sent, sets the timeout, adds trace context to `_meta`, and reports the outcome to the owner, which decides the error
 * that the caller sees.
 *
 * It has the catalogs of tools: one for callers without capabilities, and up to 20 for others, since some servers list
 * a tool only to clients that can answer requests. It counts calls and listeners, so that a pool closes it when idle,
 * and drains them: for at most an hour, or a minute after its owner was deleted.
 */
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
import { tracing } from '../../platform/telemetry/tracing.js';
import { type CallHooks, type HookedTarget, sendWithHooks } from './tools/call-hooks.js';
import { matchesFilter } from './listeners.js';
import { callsOfProcess } from './call-registry.js';
import { CALL_MS_MAX } from './silence-timer.js';
import { ToolCatalog } from './tools/tool-catalog.js';

/** Limits of catalogs for callers with capabilities, and of the length of these capabilities as JSON text. */
const CATALOGS_MAX = 20;
const CAPABILITIES_CHARS_MAX = 4_096;

/** Drain time of running calls after their connection or release was deleted. */
const DELETED_DRAIN_MS_MAX = 60_000;

export interface HandleOwner {
  /** Returns the error that prevents a call; null to send it. */
  refusal?(call: McpCall): Error | null;
  timeoutOf?(call: McpCall): number;
  /** Called with a reply: a result or a JSON-RPC error. Must not throw. */
  succeeded?(call?: McpCall, reply?: McpReply): void;
  /**
   * Called when a request failed. @param isGone the owner was deleted meanwhile @returns the error for its caller. Must not
   * throw
   */
  failed(method: string, error: Error, isGone: boolean): Error;
  callHooks?: CallHooks;
  hookedTarget?(): HookedTarget;
}

export class UpstreamHandle<Owner extends HandleOwner = HandleOwner> implements Channel {
  readonly catalog = new ToolCatalog(this);
  lastUsedAt = Date.now();
  private readonly catalogs = new LRUCache<string, ToolCatalog>({ max: CATALOGS_MAX });
  private isGone = false;
  private running = 0;
  private readonly listening = new Set<{ filter: ListenFilter; listener: UpstreamListener }>();
  private onIdle: (() => void) | null = null;

  constructor(
    private readonly channel: Channel,
    readonly owner: Owner,
  ) {}

  open(timeoutMs: number, era?: Era): Promise<UpstreamIdentity> {
    return this.track('initialize', this.channel.open(timeoutMs, era));
  }

  request(call: McpCall): Promise<McpReply> {
    const refusal = this.owner.refusal?.(call);
    if (refusal) return Promise.reject(refusal);
    const runner = this.owner.callHooks?.runner;
    const target = runner && call.method === 'tools/call' ? this.owner.hookedTarget?.() : undefined;
    if (!runner || !target) return this.trace(call);
    return sendWithHooks(call, target, runner, (hooked, after) => this.trace(hooked, after));
  }

  /** @param after changes the reply before it is observed */
  private trace(call: McpCall, after?: (reply: McpReply) => Promise<McpReply>): Promise<McpReply> {
    const traced = tracing();
    if (!traced) return this.send(call, after);
    // Name and attributes follow the semantic conventions of OpenTelemetry for MCP.
    const { method, params, invocationId } = call;
    const nameText = method === 'tools/call' ? memberText(params ?? '{}', 'name') : undefined;
    const tool = nameText?.startsWith('"') ? (JSON.parse(nameText) as string) : undefined;
    const attributes = {
      'mcp.method.name': method,
      'gen_ai.tool.name': tool,
      'gen_ai.operation.name': tool && 'execute_tool',
      'slipway.invocation.id': invocationId,
    };
    return traced.run(tool === undefined ? method : `${method} ${tool}`, 'client', attributes, (headers) =>
      this.send({ ...call, trace: { ...call.trace, ...headers } }, after),
    );
  }

  private send(call: McpCall, after?: (reply: McpReply) => Promise<McpReply>): Promise<McpReply> {
    const observed = this.toObserved(call);
    this.begin();
    // A single promise covers the count of running calls, the status, and the exit of the process.
    return new Promise((resolve, reject) => {
      const leave = callsOfProcess.add({ call, reject });
      const answer = this.channel.request(observed);
      (after ? answer.then(after) : answer).then(
        (reply) => {
          leave();
          this.finish();
          this.owner.succeeded?.(call, reply);
          resolve(reply);
        },
        (error: Error) => {
          leave();
          this.finish();
          reject(this.owner.failed(call.method, error, this.isGone));
        },
      );
    });
  }

  /** Copies field by field: to spread calls of several shapes takes V8 7 µs each. */
  private toObserved(call: McpCall): Record<keyof McpCall, unknown> & McpCall {
    return {
      method: call.method,
      params: withTraceMeta(call.params, call.trace),
      timeoutMs: this.owner.timeoutOf?.(call) ?? call.timeoutMs,
      cancellation: call.cancellation,
      onNotification: call.onNotification && this.withListChanges(call.onNotification),
      onListChange: this.tellListeners,
      onInterrupted: call.onInterrupted,
      profile: call.profile,
      era: call.era,
      onRequest: call.onRequest,
      caller: call.caller,
      timing: call.timing,
      session: call.session,
      via: call.via,
      trace: call.trace,
      invocationId: call.invocationId,
      origin: call.origin,
    };
  }
  /** Returns the catalog for these capabilities: some servers list a tool only to clients that can answer requests. */
  catalogFor(capabilities: Record<string, unknown> | undefined): ToolCatalog {
    const key = JSON.stringify(capabilities ?? {});
    if (key === '{}' || key.length > CAPABILITIES_CHARS_MAX) return this.catalog;
    const catalog = this.catalogs.get(key) ?? new ToolCatalog(this.listsFor(capabilities));
    this.catalogs.set(key, catalog);
    return catalog;
  }

  listsFor(capabilities: Record<string, unknown> = {}): Pick<Channel, 'request'> {
    return {
      request: async (call) => {
        const { era } = await this.open(call.timeoutMs);
        return this.request({ ...call, profile: sharedProfile(era, capabilities) });
      },
    };
  }

  async listen(filter: ListenFilter, listener: UpstreamListener, options: ListenOptions): Promise<Listening> {
    const release = () => this.listening.delete(member);
    const watched: UpstreamListener = {
      onNotification: this.withListChanges((text, method) => listener.onNotification(text, method)),
      onEnd: (reason) => {
        if (release()) listener.onEnd(reason);
      },
    };
    const member = { filter, listener: watched };
    this.listening.add(member);
    try {
      const listening = await this.track('subscriptions/listen', this.channel.listen(filter, watched, options));
      return {
        honoured: listening.honoured,
        close: () => {
          release();
          return listening.close();
        },
      };
    } catch (error) {
      release();
      throw error;
    }
  }

  forgetLists(): void {
    this.forgetCatalogs();
    this.channel.forgetLists?.();
  }

  notify(profileKey: string, text: string): void {
    this.channel.notify?.(profileKey, text);
  }

  release(profileKey: string, forGood?: boolean): Promise<void> {
    return this.channel.release(profileKey, forGood);
  }

  close(forGood = false): Promise<void> {
    this.isGone ||= forGood;
    return this.channel.close(forGood);
  }

  /** Closes when the running calls have finished: after at most an hour, or a minute with `forGood`. */
  async retire(forGood?: boolean): Promise<void> {
    for (const { listener } of [...this.listening]) listener.onEnd(null);
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

  get isIdle(): boolean {
    return this.running === 0 && this.listening.size === 0;
  }

  /** Notifies listeners of a list change that arrives during a call, which they might not receive otherwise. */
  private readonly tellListeners = (text: string, method: string): void => {
    for (const { filter, listener } of this.listening) {
      if (matchesFilter(filter, method, undefined)) listener.onNotification(text, method);
    }
    if (method === 'notifications/tools/list_changed') this.forgetCatalogs();
  };

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

  private async track<T>(method: string, work: Promise<T>): Promise<T> {
    this.begin();
    try {
      const value = await work;
      this.owner.succeeded?.();
      return value;
    } catch (error) {
      throw this.owner.failed(method, error as Error, this.isGone);
    } finally {
      this.finish();
    }
  }

  private begin(): void {
    this.running += 1;
    this.lastUsedAt = Date.now();
  }

  private finish(): void {
    this.running -= 1;
    if (this.running === 0) this.onIdle?.();
  }
}
