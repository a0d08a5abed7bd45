import type { Channel, Listening, ListenFilter } from '../../protocol/channel.js';
import type { McpResponseSink } from '../mcp-request.js';
import type { SessionListener } from './live-sessions.js';
import { isWanted, LISTEN_TIMEOUT_MS } from './subscription.js';

/** An upstream that stopped telling is listened to again after this long, then twice as long, and so on. */
const AGAIN_MS = 1_000;
const AGAIN_MS_MAX = 60_000;

/**
 * A legacy session's own stream: tells of changed lists, and of the resources its client subscribed to. It stays open when
 * the upstream cannot tell anything, or not now.
 */
export class SessionStream implements SessionListener {
  private listening: Listening | null = null;
  private again: NodeJS.Timeout | undefined;
  private waitMs = AGAIN_MS;
  private isOver = false;
  /** Counts what was wanted; an older listener that is accepted late is not kept. */
  private turn = 0;

  /**
   * @param open the upstream, asked for whenever it is listened to anew; once it is gone, so is the stream
   * @param uris the resources to tell of, asked for whenever they change
   */
  constructor(
    private readonly open: () => Promise<Channel>,
    private readonly sink: McpResponseSink,
    private readonly uris: () => string[],
  ) {}

  start(): void {
    this.sink.open();
    void this.listen();
  }

  changed(): void {
    if (!this.isOver) void this.listen();
  }

  end(): void {
    if (this.isOver) return;
    this.stop();
    this.sink.end();
  }

  /** Nobody reads it any more. */
  stop(): void {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.again);
    void this.listening?.close();
    this.listening = null;
  }

  /** The new listener is there before the old one goes, so that nothing is missed in between. */
  private async listen(): Promise<void> {
    const turn = (this.turn += 1);
    clearTimeout(this.again);
    const uris = this.uris();
    const filter: ListenFilter = {
      toolsListChanged: true,
      promptsListChanged: true,
      resourcesListChanged: true,
      ...(uris.length > 0 ? { resourceSubscriptions: uris } : {}),
    };
    const isCurrent = () => !this.isOver && this.turn === turn;
    const onNotification = (text: string, method: string) => {
      if (isCurrent() && isWanted(filter, method, text)) this.sink.event(text);
    };
    const onEnd = () => {
      if (isCurrent()) this.listenLater();
    };
    try {
      const channel = await this.open().catch(() => null);
      if (!isCurrent()) return;
      if (!channel) return this.end();
      const listening = await channel.listen(filter, { onNotification, onEnd }, LISTEN_TIMEOUT_MS);
      if (!isCurrent()) return void listening.close();
      const before = this.listening;
      this.listening = listening;
      this.waitMs = AGAIN_MS;
      await before?.close();
    } catch {
      // Said to whoever calls the upstream; here it only means that there is nothing to hear for now.
      onEnd();
    }
  }

  private listenLater(): void {
    clearTimeout(this.again);
    this.again = setTimeout(() => void this.listen(), this.waitMs).unref();
    this.waitMs = Math.min(this.waitMs * 2, AGAIN_MS_MAX);
  }
}
