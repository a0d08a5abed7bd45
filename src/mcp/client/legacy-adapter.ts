import type { Listening, ListenFilter, McpCall, McpReply, UpstreamListener } from '../protocol/channel.js';
import { UpstreamError, UpstreamFailure } from '../protocol/mcp-errors.js';
import type { UpstreamIdentity } from '../protocol/protocol.js';
import {
  EraContradictedError,
  HandshakeRefusedError,
  isOutOfPlace,
  mayRepeat,
  type ProtocolAdapter,
} from './protocol-adapter.js';
import { SessionLostError } from './http/http-wire.js';
import {
  type LegacySession,
  type OpenedSession,
  type OpenSession,
  type SessionHandlers,
  ProfileSlots,
  SessionSlot,
} from './session-slots.js';
import { LegacyTasks, offersTasks } from './legacy-tasks.js';
import { Listeners, type ListenStreamHandlers, type ListenStream } from './listeners.js';
import { listFilter } from '../protocol/list-pages.js';
import { isObject } from '../../platform/text/json.js';

/** Limit of concurrent subscribe requests. */
const PARALLEL = 8;

/** Timeout of unsubscribing from a resource. */
const UNSUBSCRIBE_MS = 5_000;

/** Part of a session that {@link LegacyListening} uses. */
type ListeningSession = Pick<LegacySession, 'identity' | 'request' | 'startListening' | 'stopListening'>;

/**
 * Change notifications of a legacy server. List changes arrive on the stream of its shared session. Resource updates
 * are subscribed to once per resource, however many listeners want them.
 */
export class LegacyListening {
  private handlers: ListenStreamHandlers | null = null;

  constructor(private readonly session: (timeoutMs: number) => Promise<ListeningSession>) {}

  /** Handles a notification of the shared session. */
  onNotification(text: string, method: string): void {
    this.handlers?.onNotification(text, method);
  }

  async start(filter: ListenFilter, handlers: ListenStreamHandlers, timeoutMs: number): Promise<ListenStream> {
    const session = await this.session(timeoutMs);
    this.handlers = handlers;
    const isListening = await session.startListening(timeoutMs, () => handlers.lost());
    if (!isListening) return { honoured: {}, close: async () => undefined };
    const subscribed = new Set<string>();
    const change = async (wanted: ListenFilter, ms: number): Promise<ListenFilter> => {
      await subscribe(session, subscribed, wanted.resourceSubscriptions ?? [], ms);
      return honoured(session.identity.capabilities, wanted, subscribed);
    };
    try {
      return {
        honoured: await change(filter, timeoutMs),
        change,
        close: () => this.stop(session, subscribed, handlers),
      };
    } catch (error) {
      await this.stop(session, subscribed, handlers);
      throw error;
    }
  }

  private async stop(
    session: ListeningSession,
    subscribed: Set<string>,
    handlers: ListenStreamHandlers,
  ): Promise<void> {
    if (this.handlers === handlers) this.handlers = null;
    session.stopListening();
    // Unsubscribed because the session stays open for its callers while nobody listens.
    await subscribe(session, subscribed, [], UNSUBSCRIBE_MS).catch(() => undefined);
  }
}

/** Options of a legacy adapter that depend on the era verdict. */
export interface LegacyOptions {
  url: URL;
  /** Session opened by the era probe. */
  opened?: OpenedSession;
  /** True while the verdict is new: failures are then reported, not taken for an era change. */
  isFresh: () => boolean;
  /** True when the verdict is old enough to be doubted after the server has lost its sessions. */
  isDoubtful: () => boolean;
  /** Limit of concurrent sessions owned by callers. */
  sessionsMax?: number;
}

/** MCP of 2025-11-25 and older: sessions that begin with `initialize`, over streamable HTTP or HTTP+SSE. */
export class LegacyAdapter implements ProtocolAdapter {
  /** Session shared by all callers that cannot answer server requests. */
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
    const onNotification: SessionHandlers['onNotification'] = (...notification) =>
      this.listeners.onOtherNotification(...notification);
    this.plain = new SessionSlot(open, undefined, (...notification) => listening.onNotification(...notification), url);
    if (opened) this.plain.adopt(opened);
    this.profiles = new ProfileSlots(
      (profile) => new SessionSlot(open, profile, onNotification, url),
      options.sessionsMax,
    );
  }

  async open(timeoutMs: number): Promise<UpstreamIdentity> {
    return (this.plain.value ?? (await this.session(this.plain, timeoutMs))).identity;
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
    if (!offersTasks(session.identity)) return this.send(slot, session, call, ms);
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

  /** Drops a lost session. @throws EraContradictedError when the verdict is old enough to be wrong */
  private forget(slot: SessionSlot, session: LegacySession): void {
    slot.lose(session);
    if (slot === this.plain) this.listeners.restart();
    const { isDoubtful, url } = this.options;
    if (!isDoubtful()) return;
    throw new EraContradictedError(new UpstreamError(`${url.host} forgot the session again and again.`));
  }

  /**
   * Returns the session of a slot, opening it first if needed. @throws EraContradictedError when the server refuses it
   * as a modern server does
   */
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

/**
 * Subscribes and unsubscribes so that `subscribed` equals the wanted resources, without those that the server refuses.
 */
async function subscribe(
  session: ListeningSession,
  subscribed: Set<string>,
  wanted: string[],
  timeoutMs: number,
): Promise<void> {
  if (subscribed.size === 0 && !declares(session.identity.capabilities, 'resources', 'subscribe')) return;
  const ask = (verb: string, uri: string) =>
    session
      .request({ method: `resources/${verb}`, params: JSON.stringify({ uri }), timeoutMs }, timeoutMs, false)
      .catch((error: unknown) => {
        if (!(error instanceof SessionLostError)) throw error;
        throw new UpstreamError('The MCP server forgot the session of its change notifications.');
      });
  const gone = [...subscribed].filter((uri) => !wanted.includes(uri));
  for (const uri of gone) subscribed.delete(uri);
  const fresh = wanted.filter((uri) => !subscribed.has(uri));
  await someAtOnce(fresh, async (uri) => (await ask('subscribe', uri)).error ?? subscribed.add(uri));
  await someAtOnce(gone, (uri) =>
    ask('unsubscribe', uri).catch((error: unknown) => {
      // A failed unsubscribe only causes notifications without a listener.
      if (!(error instanceof UpstreamFailure)) throw error;
    }),
  );
}

async function someAtOnce(uris: string[], work: (uri: string) => Promise<unknown>): Promise<void> {
  const queue = uris.values();
  const worker = async () => {
    for (const uri of queue) await work(uri);
  };
  await Promise.all(Array.from({ length: Math.min(PARALLEL, uris.length) }, worker));
}

function honoured(capabilities: Record<string, unknown>, wanted: ListenFilter, subscribed: Set<string>): ListenFilter {
  return {
    ...listFilter(
      (flag) => wanted[flag] === true && declares(capabilities, flag.replace('ListChanged', ''), 'listChanged'),
    ),
    ...(subscribed.size === 0 ? {} : { resourceSubscriptions: [...subscribed] }),
  };
}

function declares(capabilities: Record<string, unknown>, of: string, what: string): boolean {
  const capability = capabilities[of];
  return isObject(capability) && capability[what] === true;
}
