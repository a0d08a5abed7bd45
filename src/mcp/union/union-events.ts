import { Logger } from '@nestjs/common';
import type { ListenFilter, Listening, UpstreamListener } from '../channel.js';
import type { UnionSource } from './union-source.js';

/** Connections that are listened to, and how many are begun at once. */
const HEARD_MAX = 100;
const PARALLEL = 8;
const LISTEN_TIMEOUT_MS = 5_000;

/** One change often comes as several: they are told as one. */
const TELL_AFTER_MS = 250;

/** Upstreams that stopped talking, or did not listen, are tried again this often. */
const SYNC_EVERY_MS = 30_000;

/** The lists, by the notification that tells of their change. */
const changes = {
  'notifications/tools/list_changed': 'toolsListChanged',
  'notifications/prompts/list_changed': 'promptsListChanged',
  'notifications/resources/list_changed': 'resourcesListChanged',
} as const;
type Change = keyof typeof changes;
const everyChange = Object.keys(changes) as Change[];

const everything: ListenFilter = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };

/**
 * Tells listeners of a union when its lists change: because a connection's server says so, or because a connection came or
 * went. Upstreams are listened to once for all listeners, and only while there are any.
 */
export class UnionEvents {
  private readonly logger = new Logger('union');
  private readonly listeners = new Map<UpstreamListener, ListenFilter>();
  private readonly heard = new Map<string, Listening | null>();
  private readonly waiting = new Set<Change>();
  private telling: NodeJS.Timeout | null = null;
  private timer: NodeJS.Timeout | null = null;
  private stopWatching: (() => void) | null = null;
  private syncing: Promise<void> = Promise.resolve();

  constructor(private readonly source: UnionSource) {}

  /** @returns to be called to stop */
  add(filter: ListenFilter, listener: UpstreamListener): () => void {
    this.listeners.set(listener, filter);
    if (this.listeners.size === 1) this.start();
    return () => {
      if (this.listeners.delete(listener) && this.listeners.size === 0) this.stop();
    };
  }

  /** Ends what is listened to, and tells the listeners. */
  close(): void {
    const listeners = [...this.listeners.keys()];
    this.listeners.clear();
    if (listeners.length > 0) this.stop();
    for (const listener of listeners) listener.onEnd(null);
  }

  private start(): void {
    this.stopWatching = this.source.whenChanged(() => {
      for (const change of everyChange) this.tell(change);
      this.sync();
    });
    this.timer = setInterval(() => this.sync(), SYNC_EVERY_MS).unref();
    this.sync();
  }

  private stop(): void {
    this.stopWatching?.();
    if (this.timer) clearInterval(this.timer);
    if (this.telling) clearTimeout(this.telling);
    this.telling = null;
    this.waiting.clear();
    this.sync();
  }

  /** Listens to those that are to be heard now, and to no others. */
  private sync(): void {
    this.syncing = this.syncing
      .then(() => this.adjust())
      .catch((error: unknown) => this.logger.warn({ msg: 'changes upstream are not heard', err: error }));
  }

  private async adjust(): Promise<void> {
    const isHeard = this.listeners.size > 0;
    const { members } = isHeard ? await this.source.members() : { members: [] };
    const wanted = new Set(
      members
        .filter(({ state }) => state === 'connected')
        .slice(0, HEARD_MAX)
        .map(({ connectionId }) => connectionId),
    );
    for (const [connectionId, listening] of this.heard) {
      if (wanted.has(connectionId)) continue;
      this.heard.delete(connectionId);
      await listening?.close();
    }
    const queue = [...wanted].filter((connectionId) => !this.heard.has(connectionId)).values();
    const worker = async () => {
      for (const connectionId of queue) await this.hear(connectionId);
    };
    await Promise.all(Array.from({ length: PARALLEL }, worker));
  }

  private async hear(connectionId: string): Promise<void> {
    try {
      const link = await this.source.link(connectionId);
      const listener: UpstreamListener = {
        onNotification: (_text, method) => {
          if (method in changes) this.tell(method as Change);
        },
        onEnd: () => this.heard.delete(connectionId),
      };
      this.heard.set(connectionId, await link.listen(everything, listener, LISTEN_TIMEOUT_MS));
    } catch (error) {
      // It is tried again; that the connection fails is told by its status.
      this.logger.debug({ msg: `${connectionId} is not listened to`, err: error });
    }
  }

  private tell(change: Change): void {
    this.waiting.add(change);
    this.telling ??= setTimeout(() => {
      const due = [...this.waiting];
      this.waiting.clear();
      this.telling = null;
      for (const one of due) this.send(one);
    }, TELL_AFTER_MS).unref();
  }

  private send(change: Change): void {
    const text = JSON.stringify({ jsonrpc: '2.0', method: change });
    for (const [listener, filter] of this.listeners) {
      if (filter[changes[change]]) listener.onNotification(text, change);
    }
  }
}
