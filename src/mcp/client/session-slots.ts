import type { CallerProfile, McpCall, McpReply } from '../protocol/channel.js';
import { UpstreamError } from '../protocol/mcp-errors.js';
import { SingleFlight } from './single-flight.js';
import type { UpstreamIdentity } from '../protocol/protocol.js';

/** Callers of one upstream with a session of their own; beyond that the idlest one's is ended. */
const PROFILES_MAX = 100;

/** A caller's own session that nobody used for this long is ended. */
const IDLE_MS = 10 * 60_000;
const SWEEP_EVERY_MS = 60_000;

/** What a session hears outside of its calls. */
export interface SessionEars {
  /** A notification that belongs to no call. */
  onNotification(text: string, method: string): void;
  /** The session is gone, with everything that ran in it. */
  onLost(session: LegacySession): void;
}

/** A session with a server of 2025-11-25 or older. */
export interface LegacySession {
  readonly hello: UpstreamIdentity;
  /**
   * @param isRepeat the request was sent before, in a session that was gone: that is not possible twice
   * @throws UpstreamFailure, SessionLostError when the request did not run because the session is gone
   */
  request(call: McpCall, timeoutMs: number, isRepeat: boolean): Promise<McpReply>;
  /**
   * Has the server tell what happens outside of calls, if it does not already; false when it does not.
   *
   * @param onEnd the server tells no more
   */
  startListening(timeoutMs: number, onEnd: () => void): Promise<boolean>;
  stopListening(): void;
  /** Ends it here; upstream too, unless it is kept there for whoever comes back and not ended `forGood`. Never rejects. */
  end(forGood?: boolean): Promise<void>;
}

/** A session that was opened before anybody could say who hears it: its ears are changed when somebody can. */
export interface OpenedSession {
  session: LegacySession;
  ears: SessionEars;
}

/** Opens sessions of one transport, for one caller who can be asked, or for all who cannot. */
export type OpenSession = (profile: CallerProfile | undefined, ears: SessionEars) => Promise<LegacySession>;

/** Where a session is, or will be when somebody needs it. */
export class SessionSlot extends SingleFlight<LegacySession> {
  lastUsedAt = Date.now();
  running = 0;

  private readonly heard: SessionEars;

  constructor(open: OpenSession, profile: CallerProfile | undefined, ears: SessionEars, url: URL) {
    const heard: SessionEars = {
      onNotification: (text, method) => ears.onNotification(text, method),
      onLost: (session) => {
        this.lose(session);
        ears.onLost(session);
      },
    };
    super(() => open(profile, heard), url);
    this.heard = heard;
  }

  /** Takes over a session that was opened elsewhere. */
  adopt({ session, ears }: OpenedSession): void {
    Object.assign(ears, this.heard);
    this.value = session;
  }

  end(forGood?: boolean): Promise<void> {
    return this.close((session) => session.end(forGood));
  }
}

/** The sessions of callers who have their own: one for each, ended when it is not used any more. */
export class ProfileSlots {
  private readonly slots = new Map<string, SessionSlot>();
  private sweeper: NodeJS.Timeout | undefined;

  /** @param max sessions at once */
  constructor(
    private readonly make: (profile: CallerProfile) => SessionSlot,
    private readonly max = PROFILES_MAX,
  ) {}

  /**
   * The caller's own slot, held while `work` runs in it; null, and nothing was done, when there is none for a caller who can
   * do without.
   *
   * @throws UpstreamError when all others are in use
   */
  async use<T>(profile: CallerProfile, work: (slot: SessionSlot) => Promise<T>): Promise<T | null> {
    const isFull = !this.slots.has(profile.key) && this.slots.size >= this.max;
    // Nobody's session ends for one who can do without.
    if (isFull && profile.mayShare) return null;
    const slot = this.slotOf(profile);
    slot.running += 1;
    try {
      return await work(slot);
    } finally {
      slot.running -= 1;
      slot.lastUsedAt = Date.now();
    }
  }

  async release(key: string, forGood?: boolean): Promise<void> {
    const slot = this.slots.get(key);
    this.slots.delete(key);
    await slot?.end(forGood);
  }

  async close(forGood?: boolean): Promise<void> {
    clearInterval(this.sweeper);
    await Promise.all([...this.slots.keys()].map((key) => this.release(key, forGood)));
  }

  private slotOf(profile: CallerProfile): SessionSlot {
    const { key } = profile;
    const slot = this.slots.get(key) ?? this.make(profile);
    // A Map keeps its keys in order of arrival, so the first ones are those nobody used the longest.
    this.slots.delete(key);
    if (this.slots.size >= this.max) this.makeRoom();
    this.slots.set(key, slot);
    this.sweeper ??= setInterval(() => this.endIdle(), SWEEP_EVERY_MS).unref();
    return slot;
  }

  private makeRoom(): void {
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
    for (const [key, { running, lastUsedAt }] of this.slots) {
      if (running === 0 && lastUsedAt < before) void this.release(key);
    }
  }
}
