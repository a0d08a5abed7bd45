import { repeat, type Repeat } from '../../platform/schedule/repeat.js';
import type { CallerProfile, McpCall, McpReply } from '../protocol/channel.js';
import { UpstreamError } from '../protocol/mcp-errors.js';
import { CallList } from './call-registry.js';
import { Listeners, type OpenListening } from './listeners.js';
import { SingleFlight } from './single-flight.js';
import type { UpstreamIdentity } from '../protocol/protocol.js';

/** Limit of caller-owned sessions per upstream; above it the longest idle one is ended. */
const PROFILES_MAX = 100;

/** Limit of sessions per upstream that callers with equal capabilities share; other callers use that of all. */
const SHARED_MAX = 10;

/** Idle timeout of a caller-owned session. */
const IDLE_MS = 10 * 60_000;
const SWEEP_EVERY_MS = 60_000;

/** Callbacks of a session for events outside of its calls. */
export interface SessionHandlers {
  /** Receives a notification that belongs to no call. */
  onNotification(text: string, method: string): void;
  /** Called when the session is lost, with everything that ran in it. */
  onLost(session: LegacySession): void;
}

/** A session with a server of 2025-11-25 or older. */
export interface LegacySession {
  readonly identity: UpstreamIdentity;
  /** False when the server answers each request by itself. */
  readonly isStateful: boolean;
  /**
   * @param isRepeat the request was already sent once in a lost session; it is not resent again
   *
   * @throws UpstreamFailure, SessionLostError when the request did not run because the session is gone
   */
  request(call: McpCall, timeoutMs: number, isRepeat: boolean): Promise<McpReply>;
  /**
   * Starts receiving notifications outside of calls, unless already started; false when the server does not send any.
   *
   * @param onEnd called when the server's stream ends
   * @throws UpstreamFailure, SessionLostError when the server does not find the session, or has nothing at this address
   */
  startListening(timeoutMs: number, onEnd: () => void): Promise<boolean>;
  stopListening(): void;
  /**
   * Ends the session here, and upstream too unless the upstream restores it by name and `forGood` is not set. Never
   * rejects.
   */
  end(forGood?: boolean): Promise<void>;
}

/** A session opened before its owner was known. The owner replaces the handlers. */
export interface OpenedSession {
  session: LegacySession;
  handlers: SessionHandlers;
}

/** Opens a session of one transport, for one caller that can answer server requests, or for all that cannot. */
export type OpenSession = (profile: CallerProfile | undefined, handlers: SessionHandlers) => Promise<LegacySession>;

/** Holds one session, opened on demand. */
export class SessionSlot extends SingleFlight<LegacySession> {
  lastUsedAt = Date.now();
  running = 0;
  /** Log level of the caller, for a session that is opened to listen in. */
  level: string | undefined;
  /** True if callers with equal capabilities share the session. */
  readonly isShared: boolean;
  /** Calls in the session. */
  readonly calls = new CallList<McpCall>();
  /** Listeners to the session. */
  readonly listeners: Listeners;

  private readonly handlers: SessionHandlers;

  constructor(
    open: OpenSession,
    profile: CallerProfile | undefined,
    onNotification: SessionHandlers['onNotification'],
    openListening: OpenListening,
    url: URL,
  ) {
    const onLost = (session: LegacySession) => {
      this.lose(session);
      // Callers of the shared session reopen it, and its listeners with it.
      if (profile && !this.listeners.isEmpty) this.listeners.restart();
    };
    const handlers: SessionHandlers = { onNotification, onLost };
    super(() => open(profile, handlers), url);
    this.handlers = handlers;
    this.isShared = profile?.isShared === true;
    this.listeners = new Listeners(openListening);
  }

  /** Takes over a session that was opened elsewhere. */
  adopt({ session, handlers }: OpenedSession): void {
    Object.assign(handlers, this.handlers);
    this.value = session;
  }

  async end(forGood?: boolean): Promise<void> {
    await this.listeners.close();
    await this.close((session) => session.end(forGood));
  }
}

/** Caller-owned sessions, one per caller profile, ended after 10 idle minutes. */
export class ProfileSlots {
  private readonly slots = new Map<string, SessionSlot>();
  private sweeper: Repeat | undefined;

  /** @param max limit of concurrent sessions */
  constructor(
    private readonly make: (profile: CallerProfile) => SessionSlot,
    private readonly max = PROFILES_MAX,
  ) {}

  /**
   * Runs `work` with the caller's slot, which is not ended meanwhile. Returns null without running it when all slots
   * are taken and the caller may share a session.
   *
   * @throws UpstreamError when all slots are in use and the caller needs its own
   */
  async use<T>(profile: CallerProfile, work: (slot: SessionSlot) => Promise<T>): Promise<T | null> {
    // A caller that may share a session does not evict another caller's.
    const slot = profile.mayShare ? this.slotFor(profile) : this.slotOf(profile);
    if (!slot) return null;
    slot.running += 1;
    try {
      return await work(slot);
    } finally {
      slot.running -= 1;
      slot.lastUsedAt = Date.now();
    }
  }

  /** The caller's slot; null when all are taken by others. */
  slotFor(profile: CallerProfile): SessionSlot | null {
    if (this.slots.has(profile.key)) return this.slotOf(profile);
    const shared = profile.isShared ? [...this.slots.values()].filter(({ isShared }) => isShared).length : 0;
    return this.slots.size >= this.max || shared >= SHARED_MAX ? null : this.slotOf(profile);
  }

  async release(key: string, forGood?: boolean): Promise<void> {
    const slot = this.slots.get(key);
    this.slots.delete(key);
    await slot?.end(forGood);
  }

  async close(forGood?: boolean): Promise<void> {
    this.sweeper?.stop();
    await Promise.all([...this.slots.keys()].map((key) => this.release(key, forGood)));
  }

  private slotOf(profile: CallerProfile): SessionSlot {
    const { key } = profile;
    const slot = this.slots.get(key) ?? this.make(profile);
    // A Map iterates in insertion order, so reinserting moves the least recently used keys to the front.
    this.slots.delete(key);
    if (this.slots.size >= this.max) this.evictIdle();
    this.slots.set(key, slot);
    this.sweeper ??= repeat(SWEEP_EVERY_MS, () => this.endIdle());
    return slot;
  }

  private evictIdle(): void {
    const idle = [...this.slots].find(([, { running }]) => running === 0);
    if (!idle) {
      throw new UpstreamError(
        `More than ${this.max} clients with sessions of their own use this server at once: try again later.`,
      );
    }
    void this.release(idle[0]);
  }

  private endIdle(): void {
    const before = Date.now() - IDLE_MS;
    for (const [key, { running, lastUsedAt, listeners }] of this.slots) {
      if (running === 0 && lastUsedAt < before && listeners.isEmpty) void this.release(key);
    }
  }
}
