import { Logger } from '@nestjs/common';
import { groupBy } from '../../platform/group-by.js';
import { repeat, type Repeat } from '../../platform/schedule/repeat.js';
import type { ListenFilter, Listening, ListenOptions, UpstreamListener } from '../protocol/channel.js';
import { members as membersOf, slice, splice } from '../protocol/json-text.js';
import { listChanges, listFilter, RESOURCE_UPDATED } from '../protocol/list-pages.js';
import { PARALLEL } from '../protocol/protocol.js';
import { qualifyUri, readUri, withQualifiedUri } from './member-names.js';
import { MEMBERS_MAX, type AggregateSource } from './member-requests.js';
import { someAtOnce } from '../../platform/limits/some-at-once.js';

const LISTEN_TIMEOUT_MS = 5_000;

const NOTIFY_AFTER_MS = 250;

const SYNC_EVERY_MS = 30_000;

/** Delay before listening to resources of a connection again; doubles up to that interval. */
const RELISTEN_MS = 1_000;

/**
 * Notifies listeners of an aggregate when its lists change: on list changes of a connection's server, and when
 * connections are added or removed. Listens to each upstream once for all listeners, and only while there are any.
 */
export class AggregateEvents {
  private readonly logger = new Logger('aggregate');
  private readonly listeners = new Map<UpstreamListener, ListenFilter>();
  private readonly streams = new Map<string, Listening | null>();
  private readonly waiting = new Set<string>();
  private notifyTimer: NodeJS.Timeout | null = null;
  private timer: Repeat | null = null;
  private stopWatching: (() => void) | null = null;
  private syncing: Promise<void> = Promise.resolve();

  constructor(private readonly source: AggregateSource) {}

  /** @returns a function that removes the listener */
  add(filter: ListenFilter, listener: UpstreamListener): () => void {
    this.listeners.set(listener, filter);
    if (this.listeners.size === 1) {
      this.stopWatching = this.source.whenChanged(() => {
        for (const change of listChanges.keys()) this.schedule(change);
        this.sync();
      });
      this.timer = repeat(SYNC_EVERY_MS, () => this.sync());
      this.sync();
    }
    return () => {
      if (this.listeners.delete(listener) && this.listeners.size === 0) this.stop();
    };
  }

  close(): void {
    const listeners = [...this.listeners.keys()];
    this.listeners.clear();
    if (listeners.length > 0) this.stop();
    for (const listener of listeners) listener.onEnd(null);
  }

  private stop(): void {
    this.stopWatching?.();
    this.timer?.stop();
    if (this.notifyTimer) clearTimeout(this.notifyTimer);
    this.notifyTimer = null;
    this.waiting.clear();
    this.sync();
  }

  private sync(): void {
    this.syncing = this.syncing
      .then(() => this.adjust())
      .catch((error: unknown) => this.logger.warn({ msg: 'listening to upstream changes failed', err: error }));
  }

  private async adjust(): Promise<void> {
    const isNeeded = this.listeners.size > 0;
    const { members } = isNeeded ? await this.source.members() : { members: [] };
    const followed = new Set(
      members
        .filter(({ state }) => state === 'connected')
        .slice(0, MEMBERS_MAX)
        .map(({ connectionId }) => connectionId),
    );
    for (const [connectionId, listening] of this.streams) {
      if (followed.has(connectionId)) continue;
      this.streams.delete(connectionId);
      await listening?.close();
    }
    const fresh = [...followed].filter((connectionId) => !this.streams.has(connectionId));
    await someAtOnce(PARALLEL, fresh.values(), (connectionId) => this.listenTo(connectionId));
  }

  private async listenTo(connectionId: string): Promise<void> {
    try {
      const handle = await this.source.handle(connectionId);
      let isEnded = false;
      const listener: UpstreamListener = {
        onNotification: (_text, method) => {
          if (listChanges.has(method)) this.schedule(method);
        },
        onEnd: () => {
          isEnded = true;
          this.streams.delete(connectionId);
        },
      };
      const listening = await handle.listen(
        listFilter(() => true),
        listener,
        { timeoutMs: LISTEN_TIMEOUT_MS },
      );
      // The stream might close before `listen` returns.
      if (!isEnded) this.streams.set(connectionId, listening);
    } catch (error) {
      this.logger.debug({ msg: `listening to ${connectionId} failed`, err: error });
    }
  }

  /** Waits shortly, to notify the listeners of other changes together with this one. */
  schedule(change: string): void {
    this.waiting.add(change);
    this.notifyTimer ??= setTimeout(() => {
      const due = [...this.waiting];
      this.waiting.clear();
      this.notifyTimer = null;
      for (const method of due) {
        const text = JSON.stringify({ jsonrpc: '2.0', method });
        const list = listChanges.get(method);
        for (const [listener, filter] of this.listeners) {
          if (list && filter[list]) listener.onNotification(text, method);
        }
      }
    }, NOTIFY_AFTER_MS).unref();
  }
}

export class MemberEvents {
  private readonly followed = new Map<string, ReturnType<typeof listenToMember>>();

  constructor(
    private readonly source: AggregateSource,
    private readonly notify: UpstreamListener['onNotification'],
    private readonly options: Omit<ListenOptions, 'timeoutMs'>,
  ) {}

  /**
   * Listens to a connection unless it already does. After a failure the next `follow` tries again.
   *
   * @returns URIs of the resources whose updates it sends, as in the aggregate
   */
  async follow(connectionId: string, uris: string[] = []): Promise<string[]> {
    const { source, notify, options } = this;
    const following = this.followed.get(connectionId) ?? listenToMember(source, connectionId, uris, notify, options);
    this.followed.set(connectionId, following);
    try {
      return (await following).uris;
    } catch (error) {
      this.followed.delete(connectionId);
      source.faultOf(connectionId, error);
      return [];
    }
  }

  /** The promise never rejects. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.followed.values()].map(async (following) => (await following).close()));
  }
}

/**
 * Listens to a connection until closed, and again whenever its stream has closed. Every resource is then reported as updated, since updates in
 * between were lost.
 *
 * @throws the error of the first attempt
 */
async function listenToMember(
  source: AggregateSource,
  connectionId: string,
  uris: string[],
  notify: UpstreamListener['onNotification'],
  options: Omit<ListenOptions, 'timeoutMs'>,
): Promise<{ uris: string[]; close: () => Promise<void> }> {
  const method = RESOURCE_UPDATED;
  const qualified = (uri: string) => qualifyUri(connectionId, uri);
  let current: Listening | null = null;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  let delayMs = RELISTEN_MS;

  const onNotification = (text: string, sent: string) => notify(withUpdateOf(text, sent, qualified), sent);
  const open = async (): Promise<string[]> => {
    let isEnded = false;
    const onEnd = () => {
      isEnded = true;
      current = null;
      relisten();
    };
    const handle = await source.handle(connectionId);
    const listening = await handle.listen(
      { ...listFilter(() => options.profile !== undefined), resourceSubscriptions: uris },
      { onNotification, onEnd },
      { ...options, timeoutMs: LISTEN_TIMEOUT_MS },
    );
    if (isClosed) await listening.close();
    else if (!isEnded) current = listening;
    return (listening.honoured.resourceSubscriptions ?? []).map(qualified);
  };
  const relisten = () => {
    if (isClosed) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      open().then(
        (honoured) => {
          delayMs = RELISTEN_MS;
          for (const uri of honoured) {
            if (!isClosed) notify(JSON.stringify({ jsonrpc: '2.0', method, params: { uri } }), method);
          }
        },
        // The connection's status reports the failure.
        relisten,
      );
    }, delayMs).unref();
    delayMs = Math.min(2 * delayMs, SYNC_EVERY_MS);
  };
  const close = async () => {
    isClosed = true;
    clearTimeout(timer);
    await current?.close();
  };
  return { uris: await open(), close };
}

export function withUpdateOf(text: string, method: string, uriFor: (uri: string) => string): string {
  const params = method === RESOURCE_UPDATED ? membersOf(text).get('params') : undefined;
  return params ? splice(text, params, withQualifiedUri(slice(text, params), uriFor)) : text;
}

export function byConnection(uris: string[]): [connectionId: string, uris: string[]][] {
  const read = uris.flatMap((uri) => readUri(uri) ?? []);
  return [...groupBy(read, ({ connectionId }) => connectionId)].map(([id, refs]) => [id, refs.map(({ rest }) => rest)]);
}
