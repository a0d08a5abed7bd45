import type { Channel, Listening, ListenFilter, McpCall, McpReply, UpstreamListener } from '../protocol/channel.js';
import type { UpstreamIdentity } from '../protocol/protocol.js';
import { ToolCatalog } from './tool-catalog.js';

/** How long calls may still run on a link that was replaced. */
const DRAIN_MS_MAX = 60_000;

/** The live end of something in this process: its channel, which knows what runs on it and so when it may close. */
export abstract class UpstreamHandle implements Channel {
  readonly catalog = new ToolCatalog(this);
  lastUsedAt = Date.now();
  /** What it led to was deleted. */
  protected isGone = false;
  private running = 0;
  private listeners = 0;
  private onIdle: (() => void) | null = null;

  constructor(private readonly channel: Channel) {}

  open(timeoutMs: number): Promise<UpstreamIdentity> {
    return this.watched('initialize', this.channel.open(timeoutMs));
  }

  request(call: McpCall): Promise<McpReply> {
    const { onNotification } = call;
    const heeded = onNotification ? { ...call, onNotification: this.heeding(onNotification) } : call;
    return this.watched(call.method, this.channel.request(heeded));
  }

  async listen(filter: ListenFilter, listener: UpstreamListener, timeoutMs: number): Promise<Listening> {
    let isListening = true;
    const leave = () => {
      if (isListening) this.listeners -= 1;
      isListening = false;
    };
    this.listeners += 1;
    const watched: UpstreamListener = {
      onNotification: this.heeding((text, method) => listener.onNotification(text, method)),
      onEnd: (reason) => {
        leave();
        listener.onEnd(reason);
      },
    };
    try {
      const listening = await this.watched('subscriptions/listen', this.channel.listen(filter, watched, timeoutMs));
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
    this.catalog.forget();
    this.channel.forgetLists?.();
  }

  release(profileKey: string, forGood?: boolean): Promise<void> {
    return this.channel.release(profileKey, forGood);
  }

  close(forGood = false): Promise<void> {
    this.isGone ||= forGood;
    return this.channel.close(forGood);
  }

  /** Closes once the calls that run are over, after a minute in any case. */
  async retire(forGood?: boolean): Promise<void> {
    if (this.running > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, DRAIN_MS_MAX).unref();
        this.onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    await this.close(forGood);
  }

  /** Nothing runs on it, and nobody listens. */
  get isIdle(): boolean {
    return this.running === 0 && this.listeners === 0;
  }

  /** A request was answered, with an error of the upstream's or without. */
  protected succeeded(): void {}

  /** A request failed. @returns what its caller gets to hear */
  protected failed(_method: string, error: Error): Error {
    return error;
  }

  /** Whoever hears that the tools changed: the catalog hears it first. */
  private heeding(onNotification: UpstreamListener['onNotification']): UpstreamListener['onNotification'] {
    return (text, method) => {
      if (method === 'notifications/tools/list_changed') this.catalog.forget();
      onNotification(text, method);
    };
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
