import type { Listening, ListenFilter, McpCall, McpReply, UpstreamListener } from '../protocol/channel.js';
import { UpstreamError } from '../protocol/mcp-errors.js';
import type { UpstreamIdentity } from '../protocol/protocol.js';
import {
  EraContradictedError,
  HandshakeRefusedError,
  isOutOfPlace,
  mayRepeat,
  type ProtocolAdapter,
} from './protocol-adapter.js';
import { SessionLostError } from './http/http-wire.js';
import { LegacyListening } from './legacy-listening.js';
import type { LegacySession, OpenedSession, OpenSession, SessionEars } from './session-slots.js';
import { LegacyTasks, offersTasks } from './legacy-tasks.js';
import { Listeners } from './listeners.js';
import { ProfileSlots, SessionSlot } from './session-slots.js';

/** What a legacy dialect needs to know of the verdict it was chosen by. */
export interface LegacyOptions {
  url: URL;
  /** The session that was opened while it was found out what the endpoint is. */
  opened?: OpenedSession;
  /** True while the verdict is of this moment: then nothing contradicts it, failures are failures. */
  isFresh: () => boolean;
  /** True when the verdict is old enough to be doubted once the server has forgotten its sessions. */
  isDoubtful: () => boolean;
  /** Callers that may have sessions of their own at once. */
  sessionsMax?: number;
}

/** MCP of 2025-11-25 and older: sessions that begin with `initialize`, over streamable HTTP or HTTP+SSE. */
export class LegacyAdapter implements ProtocolAdapter {
  /** Shared by all callers of whom nothing can be asked. */
  private readonly plain: SessionSlot;
  private readonly profiles: ProfileSlots;
  private readonly listeners: Listeners;
  private readonly tasks = new LegacyTasks();

  constructor(
    open: OpenSession,
    private readonly options: LegacyOptions,
  ) {
    const { url, opened } = options;
    const listening = new LegacyListening((timeoutMs) => this.plain.get(timeoutMs));
    this.listeners = new Listeners((...args) => listening.start(...args));
    const onNotification: SessionEars['onNotification'] = (...heard) => this.listeners.overheard(...heard);
    const onLost = () => undefined;
    this.plain = new SessionSlot(
      open,
      undefined,
      { onNotification: (...heard) => listening.hear(...heard), onLost },
      url,
    );
    if (opened) this.plain.adopt(opened);
    this.profiles = new ProfileSlots(
      (profile) => new SessionSlot(open, profile, { onNotification, onLost }, url),
      options.sessionsMax,
    );
  }

  async open(timeoutMs: number): Promise<UpstreamIdentity> {
    return (this.plain.value ?? (await this.session(this.plain, timeoutMs))).hello;
  }

  request(call: McpCall, timeoutMs: number): Promise<McpReply> {
    const { profile } = call;
    if (!profile) return this.requestIn(this.plain, call, timeoutMs);
    return this.profiles
      .use(profile, (slot) => this.requestIn(slot, call, timeoutMs))
      .then((reply) => reply ?? this.requestIn(this.plain, call, timeoutMs));
  }

  listen(filter: ListenFilter, listener: UpstreamListener, timeoutMs: number): Promise<Listening> {
    return this.listeners.add(filter, listener, timeoutMs);
  }

  release(profileKey: string): Promise<void> {
    return this.profiles.release(profileKey);
  }

  async close(forGood?: boolean): Promise<void> {
    await this.listeners.close();
    await Promise.all([this.plain.end(forGood), this.profiles.close(forGood)]);
  }

  private async requestIn(slot: SessionSlot, call: McpCall, timeoutMs: number): Promise<McpReply> {
    const from = performance.now();
    const left = () => Math.max(1, from + timeoutMs - performance.now());
    const open = slot.value;
    const session = open ?? (await this.session(slot, timeoutMs, call));
    const ms = open ? timeoutMs : left();
    if (!offersTasks(session.hello)) return this.send(slot, session, call, ms);
    return this.tasks.send(call, ms, (one, leftMs) => this.send(slot, slot.value ?? session, one, leftMs));
  }

  private async send(slot: SessionSlot, session: LegacySession, call: McpCall, timeoutMs: number): Promise<McpReply> {
    const from = performance.now();
    const left = () => Math.max(1, from + timeoutMs - performance.now());
    try {
      return await session.request(call, timeoutMs, false);
    } catch (error) {
      if (error instanceof SessionLostError) this.forget(slot, session);
      else if (!mayRepeat(call, error)) throw error;
      const again = slot.value ?? (await this.session(slot, left(), call));
      return again.request(call, left(), true);
    }
  }

  /** @throws EraContradictedError when so old a verdict may be wrong by now */
  private forget(slot: SessionSlot, session: LegacySession): void {
    slot.lose(session);
    if (slot === this.plain) this.listeners.restart();
    const { isDoubtful, url } = this.options;
    if (!isDoubtful()) return;
    throw new EraContradictedError(new UpstreamError(`${url.host} forgot the session again and again.`));
  }

  /** The session, opened unless it is. @throws EraContradictedError when the server refuses one as a modern one does */
  private async session(slot: SessionSlot, timeoutMs: number, call?: McpCall): Promise<LegacySession> {
    const from = performance.now();
    try {
      return await slot.get(timeoutMs, call?.cancellation);
    } catch (error) {
      const isOther = error instanceof HandshakeRefusedError ? error.isOtherEra : isOutOfPlace(error);
      throw isOther && !this.options.isFresh() ? new EraContradictedError(error as Error) : error;
    } finally {
      if (call?.timing) call.timing.queueMs = (call.timing.queueMs ?? 0) + performance.now() - from;
    }
  }
}
