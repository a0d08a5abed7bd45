/**
 * The state that legacy clients set in their sessions: log level, subscribed resources, and the closing of the session.
 *
 * Every change is published (`mcp.sessions`) and kept in memory by every process, without a store. A lost message loses
 * a level or a subscription, which the client can set again. A process does not know the state of sessions older than
 * itself. A row in `session_marks` records that such a session had state; the client then gets 404 and opens a new
 * session.
 *
 * A session has one GET stream: a new one closes that of another process. Closing a session closes its upstream
 * sessions; a revoked or expired key closes all its sessions. Limits: 500 sessions per key, 100 subscriptions and 64 KB
 * of URIs each; unused state is dropped after 30 minutes.
 */
import { randomUUID } from 'node:crypto';
import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { RevocationRegistry } from '../../../platform/http/revocation-registry.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { repeat } from '../../../platform/schedule/repeat.js';
import type { Channel } from '../../protocol/channel.js';
import type { Era } from '../../protocol/protocol.js';
import { MessageBudget } from '../../client/message-budget.js';
import { beganAt, type ClientSession, SESSIONS_MAX } from './session-ids.js';
import { MARKS_EACH_MAX, SessionMarksRepository } from './session-mark.repository.js';

declare module '../../../platform/queue/pub-sub.js' {
  interface Topics {
    'mcp.sessions': SessionEvent;
  }
}

/** Idle time after which the state of a session is dropped; its id stays valid until it expires. */
export const IDLE_MS = 30 * 60_000;
const SWEEP_EVERY_MS = 60_000;

/** Maximum number of subscriptions of a session: 500 sessions then hold at most 32 MB. */
const SUBSCRIPTIONS_MAX = 100;
const URIS_CHARS_MAX = 64 * 1024;

/** Maximum number of channels of a session; a changed connection gets a new channel. */
const CHANNELS_MAX = 8;

type SessionEvent = { session: string; principal: string } & (
  | { kind: 'ended'; expiresAt: number }
  | { kind: 'level'; level: string }
  | { kind: 'subscribed' | 'unsubscribed'; uri: string }
  | { kind: 'streaming'; by: string }
  | { kind: 'notified'; by: string; text: string }
);

/** Maximum size of a relayed message; the relay carries 512 KB. */
export const RELAYED_BYTES_MAX = 400 * 1024;

interface Memory {
  level: string | null;
  uris: Set<string>;
  /** Channels that may hold an upstream session owned by this client. */
  channels: Set<Channel>;
  budget: MessageBudget;
  stream: SessionListener | null;
  usedAt: number;
}

export interface SessionListener {
  event(text: string): void;
  changed(): void;
  /** Called when the session has closed, or another process opened its stream. */
  close(): void;
}

/** State of sessions, which is kept equal in all processes. */
@Injectable()
export class LiveSessions implements OnModuleInit {
  private readonly memories = new Map<string, Map<string, Memory>>();
  private readonly releases = new Map<string, () => void>();
  private readonly ended = new Map<string, number>();
  private readonly marked = new LRUCache<string, boolean>({ max: SESSIONS_MAX });
  private readonly sweeper = repeat(SWEEP_EVERY_MS, () => this.forgetIdle());
  private readonly logger = new Logger('mcp');
  private readonly processId = randomUUID();
  private readonly startedAt = Date.now();

  constructor(
    private readonly pubSub: PubSub,
    private readonly sessionMarksRepository: SessionMarksRepository,
    private readonly revocationRegistry: RevocationRegistry,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('mcp.sessions', (event) => this.apply(event));
  }

  get size(): number {
    return [...this.memories.values()].reduce((sum, { size }) => sum + size, 0);
  }

  isEnded({ key }: ClientSession): boolean {
    return this.ended.has(key);
  }

  /** Returns true for a session older than this process. */
  isOld(session: ClientSession): boolean {
    // Session ids contain the second in which they were issued.
    return beganAt(session) < Math.floor(this.startedAt / 1000) * 1000;
  }

  /** Returns true if state of the session was lost; only an old session can have state that this process does not know. */
  async isForgotten({ key }: ClientSession, principal: string): Promise<boolean> {
    const memory = this.find(principal, key);
    if (memory && (memory.level !== null || memory.uris.size > 0)) return false;
    const looked = this.marked.get(key);
    if (looked !== undefined) return looked;
    const isMarked = await this.sessionMarksRepository.has(key).catch((error: unknown) => this.warn(error));
    this.marked.set(key, isMarked ?? false);
    return isMarked ?? false;
  }

  /** Closes a session in every process, with its upstream sessions in this one. */
  closeSession({ key, expiresAt }: ClientSession, principal: string): void {
    this.broadcast({ session: key, principal, kind: 'ended', expiresAt });
  }

  /** Returns the minimum log level the client set; null without one. */
  level({ key }: ClientSession, principal: string): string | null {
    return this.find(principal, key)?.level ?? null;
  }

  async setLevel(session: ClientSession, principal: string, level: string): Promise<void> {
    await this.mark(session, principal);
    this.broadcast({ session: session.key, principal, kind: 'level', level });
  }

  /** @returns false when the limits {@link SUBSCRIPTIONS_MAX} or of URI lengths are reached */
  async subscribe(session: ClientSession, principal: string, uri: string): Promise<boolean> {
    const { key } = session;
    const uris = this.find(principal, key)?.uris;
    if (isFull([...(uris ?? []), uri]) && !uris?.has(uri)) return false;
    await this.mark(session, principal);
    this.broadcast({ session: key, principal, kind: 'subscribed', uri });
    return true;
  }

  unsubscribe({ key }: ClientSession, principal: string, uri: string): void {
    this.broadcast({ session: key, principal, kind: 'unsubscribed', uri });
  }

  uris({ key }: ClientSession, principal: string): string[] {
    return [...(this.find(principal, key)?.uris ?? [])];
  }

  /** Returns `legacy` for a session that uses features without a modern form: requests to its client, a log level, subscriptions. */
  eraOf(session: ClientSession, principal: string): Era | undefined {
    const memory = this.find(principal, session.key);
    const hasState = memory && (memory.level !== null || memory.uris.size > 0);
    return hasState || session.capabilities.length > 0 ? 'legacy' : undefined;
  }

  /** Records a channel whose upstream session closes with this session. */
  uses({ key }: ClientSession, principal: string, channel: Channel): void {
    const { channels } = this.memory(principal, key);
    if (channels.size >= CHANNELS_MAX && !channels.has(channel)) channels.clear();
    channels.add(channel);
  }

  /**
   * Sends a notification to the client's upstream sessions in every process; `text` is a JSON-RPC message. It is dropped above the message
   * limits.
   */
  notify({ key }: ClientSession, principal: string, text: string): void {
    const memory = this.memory(principal, key);
    if (memory.budget.spend(text.length) !== null) return;
    this.notifyUpstreams(memory, key, text);
    if (Buffer.byteLength(JSON.stringify(text)) > RELAYED_BYTES_MAX) return;
    this.pubSub.publish('mcp.sessions', { session: key, principal, kind: 'notified', by: this.processId, text });
  }

  /** Returns the stream in this process; null without one. */
  streamOf(key: string, principal: string): SessionListener | null {
    return this.find(principal, key)?.stream ?? null;
  }

  /**
   * Attaches a stream; a stream of the session in another process closes.
   *
   * @returns function to call when the stream has closed; null when this process already has one
   */
  attach({ key }: ClientSession, principal: string, stream: SessionListener): (() => void) | null {
    const memory = this.memory(principal, key);
    if (memory.stream) return null;
    memory.stream = stream;
    this.pubSub.publish('mcp.sessions', { session: key, principal, kind: 'streaming', by: this.processId });
    return () => {
      if (memory.stream === stream) memory.stream = null;
      memory.usedAt = Date.now();
    };
  }

  close(): void {
    this.sweeper.stop();
  }

  /** Marks a session with state, so that processes started later know about the state. */
  private async mark({ key, expiresAt }: ClientSession, principal: string): Promise<void> {
    const memory = this.memory(principal, key);
    if (memory.level !== null || memory.uris.size > 0) return;
    await this.sessionMarksRepository.add(key, principal, expiresAt).catch((error: unknown) => this.warn(error));
  }

  /** Logs a database failure, which costs only the record that state was lost, not the request. */
  private warn(error: unknown): null {
    this.logger.warn({ msg: 'marks of sessions could not be read or written', err: error });
    return null;
  }

  private broadcast(event: SessionEvent): void {
    this.apply(event);
    this.pubSub.publish('mcp.sessions', event);
  }

  private apply(event: SessionEvent): void {
    const { session, principal } = event;
    let memory: Memory;
    let isAdded: boolean;
    switch (event.kind) {
      case 'ended':
        this.ended.set(session, event.expiresAt);
        if (this.ended.size > SESSIONS_MAX) this.ended.delete(this.ended.keys().next().value as string);
        this.forget(principal, session, true);
        return;
      case 'level':
        memory = this.memory(principal, session);
        if (memory.level === event.level) return;
        memory.level = event.level;
        memory.stream?.changed();
        return;
      case 'subscribed':
      case 'unsubscribed':
        memory = this.memory(principal, session);
        isAdded = event.kind === 'subscribed';
        if (memory.uris.has(event.uri) === isAdded) return;
        if (isAdded && isFull([...memory.uris, event.uri])) return;
        if (isAdded) memory.uris.add(event.uri);
        else memory.uris.delete(event.uri);
        memory.stream?.changed();
        return;
      case 'streaming':
        if (event.by !== this.processId) this.find(principal, session)?.stream?.close();
        return;
      case 'notified':
        if (event.by !== this.processId) this.notifyUpstreams(this.find(principal, session), session, event.text);
    }
  }

  private notifyUpstreams(memory: Memory | undefined, key: string, text: string): void {
    for (const channel of memory?.channels ?? []) channel.notify?.(key, text);
  }

  private find(principal: string, key: string): Memory | undefined {
    const memory = this.memories.get(principal)?.get(key);
    if (memory) memory.usedAt = Date.now();
    return memory;
  }

  private memory(principal: string, key: string): Memory {
    const memory = this.find(principal, key);
    if (memory) return memory;
    const existing = this.memories.get(principal);
    if (existing && existing.size >= MARKS_EACH_MAX) this.forget(principal, existing.keys().next().value as string);
    const sessions = existing ?? new Map<string, Memory>();
    if (!existing) {
      // The sessions of a key close with it.
      const forgetAll = () => [...sessions.keys()].forEach((name) => this.forget(principal, name, true));
      this.memories.set(principal, sessions);
      this.releases.set(principal, this.revocationRegistry.add(principal, forgetAll));
    }
    const created = {
      level: null,
      uris: new Set<string>(),
      channels: new Set<Channel>(),
      budget: new MessageBudget(true),
      stream: null,
      usedAt: Date.now(),
    };
    sessions.set(key, created);
    return created;
  }

  /**
   * @param isOver true when the client closed the session, or its key is no longer valid; otherwise the client might
   * return, and its stored upstream sessions remain
   */
  private forget(principal: string, key: string, isOver = false): void {
    const sessions = this.memories.get(principal);
    const memory = sessions?.get(key);
    if (!sessions || !memory) return;
    sessions.delete(key);
    if (sessions.size === 0) {
      this.memories.delete(principal);
      this.releases.get(principal)?.();
      this.releases.delete(principal);
    }
    memory.stream?.close();
    for (const channel of memory.channels) void channel.release(key, isOver);
  }

  private forgetIdle(): void {
    const before = Date.now() - IDLE_MS;
    for (const [principal, sessions] of this.memories) {
      for (const [key, { stream, usedAt }] of sessions) if (!stream && usedAt < before) this.forget(principal, key);
    }
    for (const [key, expiresAt] of this.ended) if (expiresAt < Date.now()) this.ended.delete(key);
  }
}

export function isFull(uris: readonly string[]): boolean {
  return uris.length > SUBSCRIPTIONS_MAX || uris.reduce((sum, { length }) => sum + length, 0) > URIS_CHARS_MAX;
}
