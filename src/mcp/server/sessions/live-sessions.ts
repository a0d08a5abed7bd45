import type { PubSub } from '../../../platform/queue/pub-sub.js';
import type { Channel } from '../../protocol/channel.js';
import type { ClientSession } from './session-ids.js';

declare module '../../../platform/queue/pub-sub.js' {
  interface Topics {
    'mcp.sessions': SessionEvent;
  }
}

/** What a session set is forgotten when it was not used for this long; its id stays good until its end. */
export const IDLE_MS = 30 * 60_000;
const SWEEP_EVERY_MS = 60_000;

/** Sessions of one caller of which something is remembered; beyond it the one that was set first is forgotten. */
const REMEMBERED_EACH_MAX = 500;

/** Resources one session may subscribe to, and what their URIs take together: 500 sessions then hold 32 MB at most. */
export const SUBSCRIPTIONS_MAX = 100;
const URIS_CHARS_MAX = 64 * 1024;

/** The longest URI of a resource that is kept for a subscription. */
export const URI_CHARS_MAX = 4_096;

/** Channels one session is remembered to have used; when a connection changes, it gets another one. */
const CHANNELS_MAX = 8;

/** Ended sessions that are refused before their ids run out; beyond it the first one to end is forgotten. */
const ENDED_MAX = 10_000;

/** What happened to a session, for every process. */
type SessionEvent = { session: string; principal: string } & (
  | { kind: 'ended'; expiresAt: number }
  | { kind: 'level'; level: string }
  | { kind: 'subscribed' | 'unsubscribed'; uri: string }
  | { kind: 'streaming'; by: string }
);

/** What is remembered of a session beyond its id. */
interface Memory {
  level: string | null;
  uris: Set<string>;
  /** Channels that may hold an upstream session of this client's own. */
  channels: Set<Channel>;
  stream: SessionListener | null;
  usedAt: number;
}

/** A session's stream, as far as it hears of changes. */
export interface SessionListener {
  /** The resources it tells of are others now. */
  changed(): void;
  /** The session is over, or has its stream elsewhere. */
  end(): void;
}

/**
 * What legacy clients set in their sessions: log level, subscribed resources, and that they ended. Every process hears of it
 * over the relay; a lost message costs a level or a subscription, which the client may set again.
 */
export class LiveSessions {
  private readonly memories = new Map<string, Map<string, Memory>>();
  private readonly ended = new Map<string, number>();
  private readonly sweeper = setInterval(() => this.forgetIdle(), SWEEP_EVERY_MS).unref();

  /** @param own names this process */
  constructor(
    private readonly pubSub: PubSub,
    private readonly own: string,
  ) {}

  async listen(): Promise<void> {
    await this.pubSub.subscribe('mcp.sessions', (event) => this.apply(event));
  }

  /** Sessions of which something is remembered. */
  get size(): number {
    return [...this.memories.values()].reduce((sum, { size }) => sum + size, 0);
  }

  isEnded({ key }: ClientSession): boolean {
    return this.ended.has(key);
  }

  /** Nobody is served in this session any more, in any process, and its upstream sessions end. */
  end({ key, expiresAt }: ClientSession, principal: string): void {
    this.tell({ session: key, principal, kind: 'ended', expiresAt });
  }

  /** The least log level the client wants; null when it did not say. */
  level({ key }: ClientSession, principal: string): string | null {
    return this.find(principal, key)?.level ?? null;
  }

  setLevel({ key }: ClientSession, principal: string, level: string): void {
    this.tell({ session: key, principal, kind: 'level', level });
  }

  /** @returns false when there are {@link SUBSCRIPTIONS_MAX} already, or their URIs are too long together */
  subscribe({ key }: ClientSession, principal: string, uri: string): boolean {
    const uris = this.find(principal, key)?.uris;
    if (uris && !uris.has(uri) && isFull(uris, uri)) return false;
    this.tell({ session: key, principal, kind: 'subscribed', uri });
    return true;
  }

  unsubscribe({ key }: ClientSession, principal: string, uri: string): void {
    this.tell({ session: key, principal, kind: 'unsubscribed', uri });
  }

  uris({ key }: ClientSession, principal: string): string[] {
    return [...(this.find(principal, key)?.uris ?? [])];
  }

  /** The client has, or may have, an upstream session of its own there, which ends with its session here. */
  uses({ key }: ClientSession, principal: string, channel: Channel): void {
    const { channels } = this.memory(principal, key);
    if (channels.size >= CHANNELS_MAX && !channels.has(channel)) channels.clear();
    channels.add(channel);
  }

  /**
   * Makes `stream` the session's only one: one of another process ends.
   *
   * @returns to be called when it is over; null when this process has one already
   */
  attach({ key }: ClientSession, principal: string, stream: SessionListener): (() => void) | null {
    const memory = this.memory(principal, key);
    if (memory.stream) return null;
    memory.stream = stream;
    this.pubSub.publish('mcp.sessions', { session: key, principal, kind: 'streaming', by: this.own });
    return () => {
      if (memory.stream === stream) memory.stream = null;
      memory.usedAt = Date.now();
    };
  }

  close(): void {
    clearInterval(this.sweeper);
  }

  private tell(event: SessionEvent): void {
    this.apply(event);
    this.pubSub.publish('mcp.sessions', event);
  }

  /** Applying an event twice changes nothing: our own come back to us. */
  private apply(event: SessionEvent): void {
    const { session, principal } = event;
    switch (event.kind) {
      case 'ended':
        this.ended.set(session, event.expiresAt);
        if (this.ended.size > ENDED_MAX) this.ended.delete(this.ended.keys().next().value as string);
        this.forget(principal, session, true);
        return;
      case 'level':
        this.memory(principal, session).level = event.level;
        return;
      case 'subscribed':
      case 'unsubscribed':
        this.setUri(this.memory(principal, session), event.uri, event.kind === 'subscribed');
        return;
      case 'streaming':
        if (event.by !== this.own) this.find(principal, session)?.stream?.end();
    }
  }

  private setUri({ uris, stream }: Memory, uri: string, isWanted: boolean): void {
    if (uris.has(uri) === isWanted || (isWanted && isFull(uris, uri))) return;
    if (isWanted) uris.add(uri);
    else uris.delete(uri);
    stream?.changed();
  }

  private find(principal: string, key: string): Memory | undefined {
    const memory = this.memories.get(principal)?.get(key);
    if (memory) memory.usedAt = Date.now();
    return memory;
  }

  private memory(principal: string, key: string): Memory {
    const known = this.find(principal, key);
    if (known) return known;
    const own = this.memories.get(principal) ?? new Map<string, Memory>();
    this.memories.set(principal, own);
    if (own.size >= REMEMBERED_EACH_MAX) this.forget(principal, own.keys().next().value as string);
    const made = {
      level: null,
      uris: new Set<string>(),
      channels: new Set<Channel>(),
      stream: null,
      usedAt: Date.now(),
    };
    own.set(key, made);
    // The eviction above may have taken the last one, and the map with it.
    this.memories.set(principal, own);
    return made;
  }

  /** @param isOver its client ended it: otherwise it may come back, and what an upstream keeps for it stays */
  private forget(principal: string, key: string, isOver = false): void {
    const own = this.memories.get(principal);
    const memory = own?.get(key);
    if (!own || !memory) return;
    own.delete(key);
    if (own.size === 0) this.memories.delete(principal);
    memory.stream?.end();
    for (const channel of memory.channels) void channel.release(key, isOver);
  }

  private forgetIdle(): void {
    const before = Date.now() - IDLE_MS;
    for (const [principal, own] of this.memories) {
      for (const [key, { stream, usedAt }] of own) if (!stream && usedAt < before) this.forget(principal, key);
    }
    for (const [key, expiresAt] of this.ended) if (expiresAt < Date.now()) this.ended.delete(key);
  }
}

/** Whether there is no room for one more. */
function isFull(uris: Set<string>, more: string): boolean {
  const chars = [...uris].reduce((sum, { length }) => sum + length, more.length);
  return uris.size >= SUBSCRIPTIONS_MAX || chars > URIS_CHARS_MAX;
}
