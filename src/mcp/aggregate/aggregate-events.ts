import { Logger } from '@nestjs/common';
import type { ListenFilter, Listening, UpstreamListener } from '../protocol/channel.js';
import { listChanges } from '../protocol/list-pages.js';
import type { AggregateSource } from './member-requests.js';

/** Connections that are listened to, and how many are begun at once. */
const HEARD_MAX = 100;
const PARALLEL = 8;
const LISTEN_TIMEOUT_MS = 5_000;

/** One change often comes as several: they are told as one. */
const TELL_AFTER_MS = 250;

/** Upstreams that stopped talking, or did not listen, are tried again this often. */
const SYNC_EVERY_MS = 30_000;

const everything: ListenFilter = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };

/**
 * Tells listeners of a union when its lists change: because a connection's server says so, or because a connection came or
 * went. Upstreams are listened to once for all listeners, and only while there are any.
 */
export class AggregateEvents {
  private readonly logger = new Logger('union');
  private readonly listeners = new Map<UpstreamListener, ListenFilter>();
  private readonly heard = new Map<string, Listening | null>();
  private readonly waiting = new Set<string>();
  private telling: NodeJS.Timeout | null = null;
  private timer: NodeJS.Timeout | null = null;
  private stopWatching: (() => void) | null = null;
  private syncing: Promise<void> = Promise.resolve();

  constructor(private readonly source: AggregateSource) {}

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
      for (const change of listChanges.keys()) this.tell(change);
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
      let isEnded = false;
      const listener: UpstreamListener = {
        onNotification: (_text, method) => {
          if (listChanges.has(method)) this.tell(method);
        },
        onEnd: () => {
          isEnded = true;
          this.heard.delete(connectionId);
        },
      };
      const listening = await link.listen(everything, listener, LISTEN_TIMEOUT_MS);
      // It may be over before it is known to have begun.
      if (!isEnded) this.heard.set(connectionId, listening);
    } catch (error) {
      // It is tried again; that the connection fails is told by its status.
      this.logger.debug({ msg: `${connectionId} is not listened to`, err: error });
    }
  }

  private tell(change: string): void {
    this.waiting.add(change);
    this.telling ??= setTimeout(() => {
      const due = [...this.waiting];
      this.waiting.clear();
      this.telling = null;
      for (const one of due) this.send(one);
    }, TELL_AFTER_MS).unref();
  }

  private send(change: string): void {
    const text = JSON.stringify({ jsonrpc: '2.0', method: change });
    const list = listChanges.get(change);
    for (const [listener, filter] of this.listeners) {
      if (list && filter[list]) listener.onNotification(text, change);
    }
  }
}
