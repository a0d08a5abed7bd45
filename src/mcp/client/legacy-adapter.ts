/**
 * Client side of MCP 2025-11-25 and older, over streamable HTTP or HTTP+SSE.
 *
 * Sessions: callers that cannot answer requests of the server share one session. A caller with a profile has its own,
 * or shares that of callers with equal capabilities; if all are taken and it may share, it uses the common one. A lost
 * session is replaced by a new one, and the call is sent again only if `may-resend.ts` allows it.
 *
 * List changes arrive on the stream of a session (GET), resource updates after `resources/subscribe`, once per
 * resource. Messages without a request id go to the only call of a session.
 *
 * A server that rejects the handshake as a modern server does, or loses sessions under an old verdict, contradicts its
 * era (`EraContradictedError`), and the channel probes again. A lost task gives -32602.
 */
import { someAtOnce } from '../../platform/limits/some-at-once.js';
import type {
  CallerProfile,
  Listening,
  ListenFilter,
  ListenOptions,
  McpCall,
  McpReply,
  UpstreamListener,
} from '../protocol/channel.js';
import { UpstreamError, UpstreamFailure } from '../protocol/mcp-errors.js';
import { errorReply } from '../protocol/messages.js';
import { PARALLEL, rpcCode, type UpstreamIdentity } from '../protocol/protocol.js';
import { EraContradictedError, mayResend, SessionLostError } from './may-resend.js';
import { HandshakeRefusedError, isOutOfPlace, type ProtocolAdapter } from './protocol-adapter.js';
import {
  type LegacySession,
  type OpenedSession,
  type OpenSession,
  type SessionHandlers,
  ProfileSlots,
  SessionSlot,
} from './session-slots.js';
import { SessionLevel } from './session-level.js';
import { LegacyTasks, offersTasks } from './legacy-tasks.js';
import type { ListenStreamHandlers, ListenStream, OpenListening } from './listeners.js';
import { isChange, isOfSession, listChanges, listFilter } from '../protocol/list-pages.js';
import { deadlineIn, ERRAND_MS } from '../protocol/deadline.js';
import { isObject } from '../../platform/text/json.js';

const TASK_LOST = 'Task not found: the MCP server no longer has the session in which it was started';

/** Timeout of a subscription, for which other listeners wait. */
const SUBSCRIBE_MS = 5_000;

class LegacyListening {
  private handlers: ListenStreamHandlers | null = null;
  private last: LegacySession | null = null;
  /** True when a session had no stream just after it was opened: a 404 then says nothing about the session. */
  private isWithoutStreams = false;

  /** @param lose discards a session that the server does not find, so that `session` opens another one */
  constructor(
    private readonly session: (timeoutMs: number) => Promise<LegacySession>,
    private readonly lose: (session: LegacySession) => void,
  ) {}

  get isActive(): boolean {
    return this.handlers !== null;
  }

  onNotification(text: string, method: string): void {
    this.handlers?.onNotification(text, method);
  }

  async start(filter: ListenFilter, handlers: ListenStreamHandlers, timeoutMs: number): Promise<ListenStream> {
    const timeLeft = deadlineIn(timeoutMs);
    const session = await this.session(timeLeft());
    try {
      return await this.startIn(session, filter, handlers, timeLeft());
    } catch (error) {
      if (!(error instanceof SessionLostError)) throw error;
    }
    this.lose(session);
    return this.startIn(await this.session(timeLeft()), filter, handlers, timeLeft(), true).catch((error: unknown) => {
      throw error instanceof SessionLostError ? forgotten() : error;
    });
  }

  /** @throws SessionLostError when the server does not find the session */
  private async startIn(
    session: LegacySession,
    filter: ListenFilter,
    handlers: ListenStreamHandlers,
    timeoutMs: number,
    isNew = false,
  ): Promise<ListenStream> {
    this.handlers = handlers;
    if (!(await this.isListening(session, handlers, timeoutMs, isNew))) {
      return { honoured: {}, close: async () => undefined };
    }
    const subscribed = new Set<string>();
    const set = async (requested: ListenFilter, ms: number): Promise<ListenFilter> => {
      await subscribe(session, subscribed, requested.resourceSubscriptions ?? [], ms);
      return honoured(session.identity.capabilities, requested, subscribed);
    };
    const change: ListenStream['change'] = (requested, ms) =>
      set(requested, ms).catch((error: unknown) => {
        if (!(error instanceof SessionLostError)) throw error;
        this.lose(session);
        handlers.lost(null);
        throw forgotten();
      });
    const isReplaced = this.last !== null && this.last !== session;
    this.last = session;
    try {
      const heard = await set(filter, timeoutMs);
      for (const [method, flag] of listChanges) {
        if (isReplaced && heard[flag]) handlers.onNotification(JSON.stringify({ jsonrpc: '2.0', method }), method);
      }
      return { honoured: heard, change, close: () => this.stop(session, subscribed, handlers) };
    } catch (error) {
      await this.stop(session, subscribed, handlers);
      throw error;
    }
  }

  /** Returns false for a session without a stream. @throws SessionLostError unless the session is new */
  private async isListening(
    session: LegacySession,
    handlers: ListenStreamHandlers,
    timeoutMs: number,
    isNew: boolean,
  ): Promise<boolean> {
    try {
      return await session.startListening(timeoutMs, (retryMs) => handlers.lost(retryMs));
    } catch (error) {
      this.isWithoutStreams ||= isNew && error instanceof SessionLostError;
      if (error instanceof SessionLostError && this.isWithoutStreams) return false;
      throw error;
    }
  }

  private async stop(session: LegacySession, subscribed: Set<string>, handlers: ListenStreamHandlers): Promise<void> {
    if (this.handlers === handlers) this.handlers = null;
    session.stopListening();
    // Unsubscribes because the session stays open for its callers while nobody listens.
    await subscribe(session, subscribed, [], SUBSCRIBE_MS).catch(() => undefined);
  }
}

export interface LegacyOptions {
  /** Address of the server, or another name for error messages. */
  url: { host: string; isProgram?: boolean };
  opened?: OpenedSession;
  /** True while the verdict is new: failures are then reported and do not cause another probe. */
  isFresh?: () => boolean;
  /** True when the verdict is so old that lost sessions might mean another era. */
  isStale?: () => boolean;
  sessionsMax?: number;
  /** True if all callers share one session whatever they can answer. Its log level is the last one that was set. */
  hasOneSession?: boolean;
}

export class LegacyAdapter implements ProtocolAdapter {
  readonly plain: SessionSlot;
  private readonly profiles: ProfileSlots;
  private readonly tasks = new LegacyTasks();
  private readonly levels = new WeakMap<LegacySession, SessionLevel>();

  constructor(
    open: OpenSession,
    private readonly options: LegacyOptions,
  ) {
    this.plain = this.slot(open, undefined);
    if (options.opened) this.plain.adopt(options.opened);
    this.profiles = new ProfileSlots((profile) => this.slot(open, profile), options.sessionsMax);
  }

  async open(timeoutMs: number): Promise<UpstreamIdentity> {
    return (this.plain.value ?? (await this.session(this.plain, timeoutMs))).identity;
  }

  request(call: McpCall, timeoutMs: number): Promise<McpReply> {
    const { profile } = call;
    if (!profile || this.options.hasOneSession) return this.requestIn(this.plain, call, timeoutMs);
    return this.profiles
      .use(profile, (slot) => this.requestIn(slot, call, timeoutMs))
      .then((reply) => reply ?? this.requestIn(this.plain, call, timeoutMs));
  }

  async listen(
    filter: ListenFilter,
    listener: UpstreamListener,
    { timeoutMs, profile }: ListenOptions,
  ): Promise<Listening> {
    const slot = profile && this.profiles.slotFor(profile);
    if (!slot || slot.isShared) return (slot ?? this.plain).listeners.add(filter, listener, timeoutMs);
    slot.level = profile.level;
    if (slot.value) await this.setLevel(slot.value, slot.level);
    // A client without a session, which has neither, receives log messages with its calls.
    const hasStream = profile.level !== undefined || profile.onRequest !== undefined;
    return slot.listeners.add(hasStream ? { ...filter, messages: true } : filter, listener, timeoutMs);
  }

  notify(profileKey: string, text: string): void {
    this.profiles.notify(profileKey, text);
  }

  release(profileKey: string): Promise<void> {
    return this.profiles.release(profileKey);
  }

  async close(forGood?: boolean): Promise<void> {
    await Promise.all([this.plain.closeSession(forGood), this.profiles.close(forGood)]);
  }

  private slot(open: OpenSession, profile: CallerProfile | undefined): SessionSlot {
    const session = async (timeoutMs: number) => {
      const opened = await slot.get(timeoutMs);
      await this.setLevel(opened, slot.level);
      return opened;
    };
    const listening = new LegacyListening(session, (lost) => slot.discard(lost));
    const onNotification: SessionHandlers['onNotification'] = (text, method) => {
      const isListenedTo = isChange(method) || (isOfSession(method) && slot.listeners.hearMessages);
      if (isListenedTo && (!profile || listening.isActive)) listening.onNotification(text, method);
      else if (isChange(method)) this.plain.listeners.onOtherNotification(text, method);
      else {
        // Progress notifications carry the token of their call. Others go to the newest call of the session, or, if
        // callers share it, to its only call.
        const calls = slot.calls.filter(() => true);
        const isNamed = method === 'notifications/progress';
        if (!isNamed && (slot === this.plain || slot.isShared) && calls.length > 1) return;
        const able = calls.filter((call) => call.onNotification);
        for (const call of isNamed ? able : able.slice(-1)) call.onNotification?.(text, method);
      }
    };
    const start: OpenListening = (...args) => listening.start(...args);
    const slot: SessionSlot = new SessionSlot(open, profile, onNotification, start, this.options.url);
    return slot;
  }

  private requestIn(slot: SessionSlot, call: McpCall, timeoutMs: number): Promise<McpReply> {
    const end = slot.calls.add(call);
    const { value } = slot;
    const sent = value ? this.sendIn(slot, value, call, timeoutMs) : this.sendInNew(slot, call, timeoutMs);
    return sent.then(
      (reply) => {
        end();
        return reply;
      },
      (error: unknown) => {
        end();
        throw error;
      },
    );
  }

  private async sendInNew(slot: SessionSlot, call: McpCall, timeoutMs: number): Promise<McpReply> {
    const timeLeft = deadlineIn(timeoutMs);
    const session = await this.session(slot, timeoutMs, call);
    return this.sendIn(slot, session, call, timeLeft());
  }

  private sendIn(slot: SessionSlot, session: LegacySession, call: McpCall, timeoutMs: number): Promise<McpReply> {
    if (!offersTasks(session.identity)) return this.send(slot, session, call, timeoutMs);
    return this.tasks.send(call, timeoutMs, (part, leftMs) => this.send(slot, slot.value ?? session, part, leftMs));
  }

  private send(slot: SessionSlot, session: LegacySession, call: McpCall, timeoutMs: number): Promise<McpReply> {
    const until = performance.now() + timeoutMs;
    return this.requestWithLevel(slot, session, call, timeoutMs, false).catch(async (error: Error) => {
      const resend = mayResend(call, error);
      if (resend === 'new session') {
        slot.discard(session);
        if (slot === this.plain || !slot.listeners.isEmpty) slot.listeners.restart();
        const { isStale, url } = this.options;
        if (isStale?.()) {
          throw new EraContradictedError(new UpstreamError(`${url.host} forgot the session again and again.`));
        }
      } else if (error instanceof SessionLostError) return errorReply(rpcCode.invalidParams, TASK_LOST);
      else if (resend !== 'no change') throw error;
      const timeLeft = deadlineIn(until - performance.now());
      const again = slot.value ?? (await this.session(slot, timeLeft(), call));
      return this.requestWithLevel(slot, again, call, timeLeft(), true);
    });
  }

  private requestWithLevel(
    slot: SessionSlot,
    session: LegacySession,
    call: McpCall,
    timeoutMs: number,
    isRepeat: boolean,
  ): Promise<McpReply> {
    const { hasOneSession } = this.options;
    // The session of all callers that cannot answer requests has no level.
    const level = (slot === this.plain && !hasOneSession) || call.session ? undefined : call.profile?.level;
    if (level === undefined) return session.request(call, timeoutMs, isRepeat);
    // Other callers of the one session might wait for the same level.
    const cancellation = hasOneSession ? undefined : call.cancellation;
    return this.setLevel(session, level, isRepeat, cancellation).then(() => session.request(call, timeoutMs, isRepeat));
  }

  private async setLevel(
    session: LegacySession,
    level: string | undefined,
    isRepeat = false,
    cancellation?: McpCall['cancellation'],
  ): Promise<void> {
    if (level === undefined) return;
    const sessionLevel = this.levels.get(session) ?? new SessionLevel();
    this.levels.set(session, sessionLevel);
    await sessionLevel.set(level, (call) =>
      session.request({ ...call, timeoutMs: ERRAND_MS, cancellation }, ERRAND_MS, isRepeat),
    );
  }

  /** @throws EraContradictedError when the server rejects the session as a modern server does */
  private async session(slot: SessionSlot, timeoutMs: number, call?: McpCall): Promise<LegacySession> {
    const from = performance.now();
    try {
      return await slot.get(timeoutMs, call?.cancellation);
    } catch (error) {
      const isOther = error instanceof HandshakeRefusedError ? error.isOtherEra : isOutOfPlace(error);
      throw isOther && !this.options.isFresh?.() ? new EraContradictedError(error as Error) : error;
    } finally {
      if (call?.timing) call.timing.queueMs = (call.timing.queueMs ?? 0) + performance.now() - from;
    }
  }
}

/** Subscribes to resources, and leaves out those that the server rejects. */
async function subscribe(
  session: LegacySession,
  subscribed: Set<string>,
  requested: string[],
  timeoutMs: number,
): Promise<void> {
  if (subscribed.size === 0 && !declares(session.identity.capabilities, 'resources', 'subscribe')) return;
  const ms = Math.min(timeoutMs, SUBSCRIBE_MS);
  const rpc = (verb: string, uri: string) =>
    session.request({ method: `resources/${verb}`, params: JSON.stringify({ uri }), timeoutMs: ms }, ms, false);
  const obsolete = [...subscribed].filter((uri) => !requested.includes(uri));
  for (const uri of obsolete) subscribed.delete(uri);
  const fresh = requested.filter((uri) => !subscribed.has(uri));
  await someAtOnce(PARALLEL, fresh.values(), async (uri) => (await rpc('subscribe', uri)).error ?? subscribed.add(uri));
  await someAtOnce(PARALLEL, obsolete.values(), (uri) =>
    rpc('unsubscribe', uri).catch((error: unknown) => {
      if (!(error instanceof UpstreamFailure || error instanceof SessionLostError)) throw error;
    }),
  );
}

function forgotten(): UpstreamError {
  return new UpstreamError('The MCP server forgot the session of its change notifications.');
}

function honoured(
  capabilities: Record<string, unknown>,
  requested: ListenFilter,
  subscribed: Set<string>,
): ListenFilter {
  return {
    ...listFilter(
      (flag) => requested[flag] === true && declares(capabilities, flag.replace('ListChanged', ''), 'listChanged'),
    ),
    ...(requested.messages ? { messages: true } : {}),
    ...(subscribed.size === 0 ? {} : { resourceSubscriptions: [...subscribed] }),
  };
}

function declares(capabilities: Record<string, unknown>, name: string, flag: string): boolean {
  const capability = capabilities[name];
  return isObject(capability) && capability[flag] === true;
}
