import type {
  Channel,
  Listening,
  ListenFilter,
  McpCall,
  McpReply,
  RpcError,
  UpstreamListener,
} from '../../../src/mcp/protocol/channel.js';
import { CallerLeftError } from '../../../src/mcp/protocol/mcp-errors.js';
import { replyTo } from '../../../src/mcp/protocol/messages.js';
import type { Era, UpstreamIdentity } from '../../../src/mcp/protocol/protocol.js';

/** Answer of a scripted upstream: a result as a value or as JSON text, or an error. */
export type ScriptedAnswer = object | string | { error: RpcError };

/** A channel to a scripted upstream, without a network. Records the calls. */
export class ScriptedChannel implements Channel {
  readonly calls: McpCall[] = [];
  readonly released: string[] = [];
  readonly listeners = new Set<{ filter: ListenFilter; listener: UpstreamListener }>();
  /** True for an upstream that restores the sessions of callers. */
  restoresSessions = false;
  /** Number of calls that wait for their answer. */
  running = 0;

  constructor(
    readonly era: Era,
    private readonly script: (call: McpCall) => ScriptedAnswer | Promise<ScriptedAnswer>,
    private readonly capabilities: Record<string, unknown> = {
      tools: { listChanged: true },
      prompts: {},
      resources: { subscribe: true, listChanged: true },
      logging: {},
      tasks: {},
    },
  ) {}

  open(): Promise<UpstreamIdentity> {
    const { era, capabilities } = this;
    const protocolVersion = era === 'modern' ? '2026-07-28' : '2025-11-25';
    return Promise.resolve({
      era,
      protocolVersion,
      capabilities,
      serverInfo: { name: 'scripted', version: '1' },
      ...(this.restoresSessions ? { restoresSessions: true } : {}),
    });
  }

  async request(call: McpCall): Promise<McpReply> {
    this.calls.push(call);
    this.running += 1;
    try {
      const cancelled = new Promise<never>((_, reject) =>
        call.cancellation?.notify(() => reject(new CallerLeftError())),
      );
      const answer = await Promise.race([Promise.resolve(this.script(call)), cancelled]);
      const body =
        typeof answer === 'object' && 'error' in answer
          ? `"error":${JSON.stringify(answer.error)}`
          : `"result":${typeof answer === 'string' ? answer : JSON.stringify(answer)}`;
      const text = `{"jsonrpc":"2.0","id":7,${body}}`;
      return replyTo(7, text, JSON.parse(text) as object, this.era) as McpReply;
    } finally {
      this.running -= 1;
    }
  }

  listen(filter: ListenFilter, listener: UpstreamListener): Promise<Listening> {
    const member = { filter, listener };
    this.listeners.add(member);
    const close = () => Promise.resolve(void this.listeners.delete(member));
    return Promise.resolve({ honoured: filter, close });
  }

  /** Sends a notification to the listeners. */
  tell(method: string, params: object = {}): void {
    const text = JSON.stringify({ jsonrpc: '2.0', method, params });
    for (const { listener } of [...this.listeners]) listener.onNotification(text, method);
  }

  release(key: string): Promise<void> {
    this.released.push(key);
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
