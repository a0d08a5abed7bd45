import type { Channel, McpCall, McpReply } from '../../mcp/channel.js';
import { CallerLeftError, UpstreamFailure, UpstreamTimeoutError } from '../../mcp/mcp-errors.js';
import type { ServerHello } from '../../mcp/protocol.js';
import { ToolCatalog } from '../../mcp/tool-catalog.js';
import { statusAfter } from './connection-status.js';
import type { StatusObserver } from './status-recorder.js';

/** How long calls may still run on a link that was replaced. */
const DRAIN_MS_MAX = 60_000;

/** The live end of a connection in this process: its channel, watched, so that every outcome reaches the status. */
export class ConnectionLink implements Channel {
  readonly catalog = new ToolCatalog(this);
  lastUsedAt = Date.now();
  private running = 0;
  private onIdle: (() => void) | null = null;

  constructor(
    readonly id: string,
    readonly revision: number,
    private readonly channel: Channel,
    private readonly observer: StatusObserver,
  ) {}

  open(timeoutMs: number): Promise<ServerHello> {
    return this.watched('initialize', this.channel.open(timeoutMs));
  }

  request(call: McpCall): Promise<McpReply> {
    return this.watched(call.method, this.channel.request(call));
  }

  close(): Promise<void> {
    return this.channel.close();
  }

  /** Closes once the calls that run are over. */
  async retire(): Promise<void> {
    if (this.running > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, DRAIN_MS_MAX).unref();
        this.onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    await this.close();
  }

  get isIdle(): boolean {
    return this.running === 0;
  }

  private async watched<T>(method: string, work: Promise<T>): Promise<T> {
    this.running += 1;
    this.lastUsedAt = Date.now();
    try {
      const value = await work;
      this.observer.succeeded();
      return value;
    } catch (error) {
      if (error instanceof UpstreamFailure && saysSomething(method, error)) this.observer.failed(statusAfter(error));
      throw error;
    } finally {
      this.running -= 1;
      if (this.running === 0) this.onIdle?.();
    }
  }
}

/** A caller that leaves, or one slow tool, says nothing about the connection. */
function saysSomething(method: string, failure: UpstreamFailure): boolean {
  if (failure instanceof CallerLeftError) return false;
  return !(failure instanceof UpstreamTimeoutError && method === 'tools/call' && failure.outcomeUnknown);
}
