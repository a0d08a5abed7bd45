/**
 * Sessions with a legacy upstream, one per slot, opened on demand and opened again after they were lost.
 *
 * The channel has one slot for all callers without a profile, and here one per caller profile, because a server can
 * send requests during a call, and only the right client may answer. Above 100 slots the longest idle one closes; while
 * all are in use, a caller that needs its own fails with an UpstreamError.
 *
 * A server that rejects requests without a sign of having read them, or with a code of lost sessions, might have lost
 * the session. It gets a `ping` (`mayProbe`), at most every 30 s unless it responded to the last one.
 */
import { repeat, type Repeat } from '../../platform/schedule/repeat.js';
import type { CallerProfile, ClientAnswer, McpCall, McpReply } from '../protocol/channel.js';
import { UpstreamError } from '../protocol/mcp-errors.js';
import { unansweredRequest } from '../protocol/messages.js';
import { CallList } from '../../platform/limits/call-list.js';
import { Listeners, type OpenListening } from './listeners.js';
import { SingleFlight } from './single-flight.js';
import type { UpstreamIdentity } from '../protocol/protocol.js';

const PROFILES_MAX = 100;

/** Maximum number of shared sessions; other callers use the common session. */
const SHARED_MAX = 10;

const IDLE_MS = 10 * 60_000;
const SWEEP_EVERY_MS = 60_000;

/**
 * Interval of the pings in the sessions of a slot. A server that responds to none of them, although it knows the
 * session, loses its session that often.
 */
const PROBE_EVERY_MS = 30_000;

export interface SessionHandlers {
  onNotification(text: string, method: string): void;
  /** @param ofCall answers during a call that runs in the session, if there is one */
  onRequest(method: string, params: string | undefined, ofCall: McpCall['onRequest']): Promise<ClientAnswer>;
  onLost(session: LegacySession): void;
  mayProbe(): boolean;
  /** Called once the state is known: the next probe can follow immediately. */
  onKnown(): void;
}

export interface LegacySession {
  readonly identity: UpstreamIdentity;
  readonly isStateful: boolean;
  /**
   * @param isRepeat the request was already sent once in a lost session; it is not resent a second time
   *
   * @throws UpstreamFailure, SessionLostError when the request did not run because the session no longer exists
   */
  request(call: McpCall, timeoutMs: number, isRepeat: boolean): Promise<McpReply>;
  /** `text` is a JSON-RPC message. This method never throws. */
  notify(text: string): void;
  /**
   * Starts receiving notifications outside of calls, unless already started; false when the server does not send any.
   *
   * @param onEnd called when the server's stream closes, with its last `retry` in milliseconds, null without one
   * @throws UpstreamFailure, SessionLostError when the server does not find the session, or has nothing at this address
   */
  startListening(timeoutMs: number, onEnd: (retryMs: number | null) => void): Promise<boolean>;
  stopListening(): void;
  /**
   * Returns true if the server responds to a `ping`, false if it rejects the ping, null otherwise. Absent if the server itself
   * reports that a session has closed. The promise never rejects.
   */
  ping?(): Promise<boolean | null>;
  /**
   * Closes the session upstream too, unless the upstream restores it by name and `forGood` is not set. The promise never rejects.
   */
  close(forGood?: boolean): Promise<void>;
}

/** An opened session, whose handlers its owner replaces. */
export interface OpenedSession {
  session: LegacySession;
  handlers: SessionHandlers;
}

/** Opens a session for one caller that can answer server requests, or for all that cannot. */
export type OpenSession = (profile: CallerProfile | undefined, handlers: SessionHandlers) => Promise<LegacySession>;

export class SessionSlot extends SingleFlight<LegacySession> {
  lastUsedAt = Date.now();
  running = 0;
  /** Log level of the caller, for a session opened to listen in. */
  level: string | undefined;
  readonly isShared: boolean;
  readonly calls = new CallList<McpCall>();
  readonly listeners: Listeners;

  private readonly handlers: SessionHandlers;
  private nextProbeAt = 0;

  constructor(
    open: OpenSession,
    profile: CallerProfile | undefined,
    onNotification: SessionHandlers['onNotification'],
    openListening: OpenListening,
    upstream: { host: string; isProgram?: boolean },
  ) {
    const onLost = (session: LegacySession) => {
      this.discard(session);
      // Callers of the shared session reopen it, and its listeners with it.
      if (profile && !this.listeners.isEmpty) this.listeners.restart();
    };
    const onRequest: SessionHandlers['onRequest'] = (method, params, ofCall) => {
      // A server might send a request before the call that opens its session was sent.
      const [waiting] = ofCall
        ? [ofCall]
        : this.calls.filter((call) => call.onRequest !== undefined).map((call) => call.onRequest);
      if (profile?.onRequest) return profile.onRequest(method, params, waiting);
      return waiting ? waiting(method, params) : Promise.resolve(unansweredRequest(method));
    };
    const onKnown = () => void (this.nextProbeAt = 0);
    const handlers: SessionHandlers = { onNotification, onRequest, onLost, onKnown, mayProbe: () => this.mayProbe() };
    super(async () => {
      const session = await open(profile, handlers);
      // A server that rejects a ping in a new session rejects them all: a rejection then proves nothing about the lost
      // session.
      if (performance.now() < this.nextProbeAt) {
        void session.ping?.().then((isKnown) => isKnown && onKnown());
      }
      return session;
    }, upstream);
    this.handlers = handlers;
    this.isShared = profile?.isShared === true;
    this.listeners = new Listeners(openListening);
  }

  adopt({ session, handlers }: OpenedSession): void {
    Object.assign(handlers, this.handlers);
    this.value = session;
  }

  private mayProbe(): boolean {
    const now = performance.now();
    if (now < this.nextProbeAt) return false;
    this.nextProbeAt = now + PROBE_EVERY_MS;
    return true;
  }

  async closeSession(forGood?: boolean): Promise<void> {
    await this.listeners.close();
    await this.close((session) => session.close(forGood));
  }
}

export class ProfileSlots {
  private readonly slots = new Map<string, SessionSlot>();
  private sweeper: Repeat | undefined;

  constructor(
    private readonly make: (profile: CallerProfile) => SessionSlot,
    private readonly max = PROFILES_MAX,
  ) {}

  /**
   * Runs `work` in a slot, which stays open meanwhile. Returns null without running `work` when all slots are taken and the caller may
   * share a session.
   *
   * @throws UpstreamError when all slots are in use and the caller needs its own
   */
  async use<T>(profile: CallerProfile, work: (slot: SessionSlot) => Promise<T>): Promise<T | null> {
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

  /** Returns the caller's slot; null when all are taken by others. */
  slotFor(profile: CallerProfile): SessionSlot | null {
    if (this.slots.has(profile.key)) return this.slotOf(profile);
    const shared = profile.isShared ? [...this.slots.values()].filter(({ isShared }) => isShared).length : 0;
    return this.slots.size >= this.max || shared >= SHARED_MAX ? null : this.slotOf(profile);
  }

  /** Does nothing if the session is closed or shared with other callers. */
  notify(key: string, text: string): void {
    const slot = this.slots.get(key);
    if (slot && !slot.isShared) slot.value?.notify(text);
  }

  async release(key: string, forGood?: boolean): Promise<void> {
    const slot = this.slots.get(key);
    this.slots.delete(key);
    await slot?.closeSession(forGood);
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
    if (this.slots.size >= this.max) {
      const idle = [...this.slots].find(([, { running }]) => running === 0);
      if (!idle) {
        throw new UpstreamError(
          `More than ${this.max} clients use this server concurrently, each with its own session: try again later.`,
        );
      }
      void this.release(idle[0]);
    }
    this.slots.set(key, slot);
    this.sweeper ??= repeat(SWEEP_EVERY_MS, () => {
      const before = Date.now() - IDLE_MS;
      for (const [name, { running, lastUsedAt, listeners }] of this.slots) {
        if (running === 0 && lastUsedAt < before && listeners.isEmpty) void this.release(name);
      }
    });
    return slot;
  }
}
