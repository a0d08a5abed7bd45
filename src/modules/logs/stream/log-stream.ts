import { DomainError } from '../../../platform/errors/domain-error.js';
import { STALL_MS_MAX } from '../../../platform/http/stalled-reader.js';
import type { InvocationQuery } from '../search/invocation-query.js';
import type { InvocationSearch } from '../search/invocation-search.js';
import { toInvocationDto } from '../search/runtime-log.mapper.js';

/** A message may be lost while the queue's store is away, so the rows are looked at without one too. */
const POLL_MS = 5_000;

/** However busy a server is, its rows are looked at no more often. */
const LOOK_EVERY_MS = 1_000;

/** Below the 30 to 60 s after which proxies take a silent connection for dead. */
const HEARTBEAT_MS = 15_000;

/** How long after a request came its record, or more of it, is still told: longer than any call lasts. */
const WINDOW_MS = 15 * 60_000;

/** Invocations that are looked at, the newest ones; what else came meanwhile is left out. */
const LOOKED_AT_MAX = 1_000;

/** Invocations in memory at once. */
const READ_AT_ONCE = 20;

/** Where the events of a stream go. */
export interface LogStreamSink {
  /** Called once, before anything is written. */
  open(): void;
  /** @returns whether the listener keeps up */
  write(text: string): boolean;
  /** Calls back once the listener has taken what was written. */
  onDrain(listener: () => void): void;
  end(): void;
  /** Breaks off, without what the listener has not taken yet. */
  cut(): void;
  /** Calls back when the listener leaves. */
  onGone(listener: () => void): void;
}

/** What a stream shows, and to whom. */
export interface Followed {
  serverId: string;
  query: InvocationQuery;
  limit: number;
  after?: string;
  check: () => Promise<void>;
}

/**
 * One listener of a server's log: `init` with the newest invocations, then `invocation` for each that comes, and again with
 * the same id when there is more to it. A listener that comes back gets what came since the last one it has.
 */
export class LogStream {
  private isClosed = false;
  private isDue = false;
  /** The listener has not taken what was written yet. */
  private isWaiting = false;
  private wakeUp: () => void = () => undefined;
  /** How far each invocation of the window has been told. */
  private told = new Map<string, number>();

  constructor(
    private readonly search: InvocationSearch,
    private readonly followed: Followed,
    private readonly sink: LogStreamSink,
    private readonly stallMs = STALL_MS_MAX,
  ) {}

  /** There may be something new. */
  wake(): void {
    this.isDue = true;
    this.wakeUp();
  }

  close(): void {
    this.isClosed = true;
    this.wakeUp();
  }

  async run(): Promise<void> {
    if (this.isClosed) return;
    const heartbeat = setInterval(() => this.beat(), HEARTBEAT_MS).unref();
    try {
      await this.begin();
      while (!this.isClosed) {
        await this.pause(LOOK_EVERY_MS, () => this.isClosed);
        await this.pause(POLL_MS - LOOK_EVERY_MS, () => this.isClosed || this.isDue);
        if (!(await this.isAllowed())) return;
        this.isDue = false;
        await this.look();
      }
    } finally {
      clearInterval(heartbeat);
    }
  }

  private beat(): void {
    if (!this.isClosed) this.sink.write(': still here\n\n');
  }

  private async begin(): Promise<void> {
    const { serverId, query, limit, after } = this.followed;
    const known = await this.versions();
    const told = known.filter(({ id }) => after === undefined || id <= after);
    this.told = new Map(told.map(({ id, version }) => [id, version]));
    const { invocations } = after === undefined ? await this.search.find(serverId, query, limit) : { invocations: [] };
    const last = after ?? invocations[0]?.id;
    await this.send('init', { invocations: invocations.map(toInvocationDto) }, last);
    if (after !== undefined) await this.look();
  }

  /** Sends what is new, the oldest first. */
  private async look(): Promise<void> {
    const versions = await this.versions();
    const news = versions.filter(({ id, version }) => this.told.get(id) !== version).map(({ id }) => id);
    this.told = new Map(versions.map(({ id, version }) => [id, version]));
    for (let end = news.length; end > 0 && !this.isClosed; end -= READ_AT_ONCE) {
      const rows = await this.search.byIds(this.followed.serverId, news.slice(Math.max(0, end - READ_AT_ONCE), end));
      for (const row of rows.reverse()) await this.send('invocation', toInvocationDto(row), row.id);
    }
  }

  private versions() {
    const since = new Date(Date.now() - WINDOW_MS);
    return this.search.versions(this.followed.serverId, this.followed.query, since, LOOKED_AT_MAX);
  }

  /** Keys are revoked and servers change hands while a stream is open. */
  private async isAllowed(): Promise<boolean> {
    if (this.isClosed) return false;
    try {
      await this.followed.check();
      return true;
    } catch (error) {
      if (error instanceof DomainError) return false;
      throw error;
    }
  }

  /** Waits for a listener that does not keep up, and breaks off when it has not taken everything in time. */
  private async send(event: string, data: object, id = ''): Promise<void> {
    if (this.isClosed) return;
    const isKeptUpWith = this.sink.write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    if (isKeptUpWith) return;
    this.isWaiting = true;
    this.sink.onDrain(() => {
      this.isWaiting = false;
      this.wakeUp();
    });
    await this.pause(this.stallMs, () => !this.isWaiting || this.isClosed);
    if (this.isWaiting && !this.isClosed) this.sink.cut();
    this.isClosed ||= this.isWaiting;
  }

  /** Waits for a call, so long at most, unless there is no need to. */
  private async pause(ms: number, isOver: () => boolean): Promise<void> {
    if (isOver()) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms).unref();
      this.wakeUp = () => {
        if (!isOver()) return;
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
