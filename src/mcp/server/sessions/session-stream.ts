import type { CallerProfile, Channel, Listening, ListenFilter } from '../../protocol/channel.js';
import { changesOf, isOfSession, listFilter } from '../../protocol/list-pages.js';
import type { Era } from '../../protocol/protocol.js';
import type { McpResponseSink } from '../mcp-request.js';
import type { SessionListener } from './live-sessions.js';
import { AGAIN_MS, isWanted, LISTEN_TIMEOUT_MS } from './subscriptions.js';

/** Maximum delay before an attempt; the delay doubles with each attempt. */
const AGAIN_MS_MAX = 60_000;

/**
 * Sends list changes, updates of the resources that the client subscribed to, log messages and custom notifications of
 * its own upstream session. Stays open while the upstream sends no notifications.
 */
export class SessionStream implements SessionListener {
  private listening: Listening | null = null;
  private again: NodeJS.Timeout | undefined;
  private waitMs = AGAIN_MS;
  private isOver = false;
  /**
   * True once the upstream's stream has closed: changes after that, such as those of a connection by its owner, are
   * unknown.
   */
  private isInterrupted = false;
  /** Incremented with each change of the filter; a late listener of an earlier filter is closed. */
  private turn = 0;

  /**
   * @param open returns the upstream channel, called for each attempt to listen; the stream closes when it rejects
   *
   * @param uris returns the subscribed resources, called on each change
   *
   * @param era returns the era in which to listen to an upstream of both, called on each change
   *
   * @param profile returns the profile of a client whose calls run in its own upstream session, called on each change
   */
  constructor(
    private readonly open: () => Promise<Channel>,
    private readonly sink: McpResponseSink,
    private readonly uris: () => string[],
    private readonly era: () => Era | undefined,
    private readonly profile: () => CallerProfile | undefined,
  ) {}

  start(): void {
    this.sink.open();
    void this.listen();
  }

  event(text: string): void {
    if (!this.isOver) this.sink.event(text);
  }

  changed(): void {
    if (!this.isOver) void this.listen();
  }

  close(): void {
    if (this.isOver) return;
    this.stop();
    this.sink.close();
  }

  stop(): void {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.again);
    void this.listening?.close();
    this.listening = null;
  }

  /** Opens the new listener before closing the old one, so that no notification is lost. */
  private async listen(): Promise<void> {
    const turn = (this.turn += 1);
    clearTimeout(this.again);
    const uris = this.uris();
    const filter: ListenFilter = {
      ...listFilter(() => true),
      ...(uris.length > 0 ? { resourceSubscriptions: uris } : {}),
    };
    const isCurrent = () => !this.isOver && this.turn === turn;
    const profile = this.profile();
    const onNotification = (text: string, method: string) => {
      const isOwnMessage = profile !== undefined && isOfSession(method);
      if (isCurrent() && (isOwnMessage || isWanted(filter, method, text))) this.sink.event(text);
    };
    const onEnd = () => {
      if (!isCurrent()) return;
      clearTimeout(this.again);
      this.isInterrupted = true;
      this.again = setTimeout(() => void this.listen(), this.waitMs).unref();
      this.waitMs = Math.min(this.waitMs * 2, AGAIN_MS_MAX);
    };
    try {
      const channel = await this.open().catch(() => null);
      if (!isCurrent()) return;
      if (!channel) return this.close();
      const listener = { onNotification, onEnd };
      const listening = await channel.listen(filter, listener, {
        timeoutMs: LISTEN_TIMEOUT_MS,
        era: this.era(),
        profile,
      });
      if (!isCurrent()) return void listening.close();
      const before = this.listening;
      this.listening = listening;
      this.waitMs = AGAIN_MS;
      if (this.isInterrupted) for (const text of changesOf(listening.honoured)) this.event(text);
      this.isInterrupted = false;
      await before?.close();
    } catch {
      onEnd();
    }
  }
}
