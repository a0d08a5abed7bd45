import type { Listening, ListenFilter, UpstreamListener } from '../protocol/channel.js';
import { withinDeadline } from '../protocol/deadline.js';
import { listChanges, RESOURCE_UPDATED } from '../protocol/list-pages.js';
import { UpstreamError } from '../protocol/mcp-errors.js';
import { bounded, common, hasAny, isSame, union, uriIn, wants } from './listen-filter.js';

/** Listeners of one channel. */
const LISTENERS_MAX = 1_000;

/** A stream that broke is opened again after 1 s, then 2 s, … 30 s; after this many failures in a row it is given up. */
const RETRY_MS = 1_000;
const RETRY_MS_MAX = 30_000;
const RETRIES_MAX = 6;

/** A stream that lasted this long did not fail: proxies end those on which nothing is said, every minute or so. */
const GOOD_STREAM_MS = 30_000;

/** What is kept of the changes that a stream tells before it has said what it can tell. */
const EARLY_CHARS_MAX = 1024 * 1024;

/** How long opening a stream again may take. */
const REOPEN_TIMEOUT_MS = 30_000;

/** The stream an upstream tells its listeners by. */
export interface ListenStream {
  /** What of the filter it tells. */
  honoured: ListenFilter;
  /** Tells another filter by the same stream, and gives what it honours of it; without it a new stream takes over. */
  change?(filter: ListenFilter, timeoutMs: number): Promise<ListenFilter>;
  /** Never rejects. */
  close(): Promise<void>;
}

/** What a stream's owner hears by it. */
export interface Ears {
  hear(text: string, method: string): void;
  lost(): void;
}

/** Opens a stream for a filter. One that honours nothing may have no stream behind it. */
export type OpenListening = (filter: ListenFilter, ears: Ears, timeoutMs: number) => Promise<ListenStream>;

interface Member {
  filter: ListenFilter;
  listener: UpstreamListener;
}

/** Everybody who listens to one upstream: they share one stream, which tells whatever any of them wants to hear. */
export class Listeners {
  private readonly members = new Set<Member>();
  private stream: { current: ListenStream; filter: ListenFilter } | null = null;
  /** Whose ears count: a stream that was replaced speaks on for a moment. */
  private mouth: object | null = null;
  private work: Promise<unknown> = Promise.resolve();
  private retry: NodeJS.Timeout | undefined;
  private failures = 0;
  private openedAt = 0;
  private isClosed = false;

  /** @param onChange told of every change, before the listeners, for what is remembered of the upstream */
  constructor(
    private readonly openStream: OpenListening,
    private readonly onChange: (method: string) => void = () => undefined,
  ) {}

  /** @throws UpstreamFailure when the upstream cannot be asked, or too many listen */
  async add(filter: ListenFilter, listener: UpstreamListener, timeoutMs: number): Promise<Listening> {
    if (this.isClosed) throw new UpstreamError('The connection was changed or deleted meanwhile.');
    if (this.members.size >= LISTENERS_MAX) throw new UpstreamError(`More than ${LISTENERS_MAX} listeners share it.`);
    const member: Member = { filter: bounded(filter), listener };
    this.members.add(member);
    const leave = async () => {
      if (this.members.delete(member)) await this.enqueue(() => this.adjust(REOPEN_TIMEOUT_MS)).catch(() => undefined);
    };
    try {
      const adjusted = this.enqueue(() => this.adjust(timeoutMs));
      await withinDeadline(adjusted, timeoutMs, 'The MCP server did not let anybody listen in time.');
    } catch (error) {
      void leave();
      throw error;
    }
    return { honoured: common(member.filter, this.stream?.current.honoured ?? {}), close: leave };
  }

  /** What came by another way than the stream; told on only while there is no stream, which would tell it too. */
  overheard(text: string, method: string): void {
    if (this.mouth === null) this.tell(text, method);
    else if (listChanges.has(method)) this.onChange(method);
  }

  /** The stream speaks for something that is gone: another one takes over, if anybody listens. */
  restart(): void {
    if (this.stream) this.lost(this.mouth);
  }

  /** Ends all. Never rejects. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.retry);
    this.endAll(null);
    await this.enqueue(() => this.shut()).catch(() => undefined);
  }

  /** One change after the other: what the stream tells follows from who listens when it is its turn. */
  private enqueue<T>(job: () => Promise<T>): Promise<T> {
    const done = this.work.then(job, job);
    this.work = done.catch(() => undefined);
    return done;
  }

  private async adjust(timeoutMs: number): Promise<void> {
    if (this.members.size === 0) return this.shut();
    const filter = union([...this.members].map((member) => member.filter));
    if (this.stream && isSame(this.stream.filter, filter)) return;
    if (this.stream?.current.change) {
      this.stream.current.honoured = await this.stream.current.change(filter, timeoutMs);
      this.stream.filter = filter;
      return;
    }
    await this.replace(filter, timeoutMs);
  }

  /** The new stream speaks before the old one falls silent, so nothing goes untold. */
  private async replace(filter: ListenFilter, timeoutMs: number): Promise<void> {
    const mouth = {};
    let isLost = false;
    let early: [string, string][] | null = [];
    let earlyChars = 0;
    const ears: Ears = {
      hear: (text, method) => {
        if (early) {
          earlyChars += text.length;
          if (earlyChars <= EARLY_CHARS_MAX) early.push([text, method]);
        } else if (this.mouth === mouth) this.tell(text, method);
      },
      lost: () => {
        isLost = true;
        this.lost(mouth);
      },
    };
    const current = await this.openStream(filter, ears, timeoutMs);
    const before = this.stream;
    this.stream = { current, filter };
    this.openedAt = Date.now();
    this.mouth = hasAny(current.honoured) ? mouth : null;
    this.failures = 0;
    for (const [text, method] of early) this.tell(text, method);
    early = null;
    await before?.current.close();
    if (isLost) this.lost(mouth);
  }

  private async shut(): Promise<void> {
    clearTimeout(this.retry);
    const { stream } = this;
    this.stream = null;
    this.mouth = null;
    await stream?.current.close();
  }

  private lost(mouth: object | null): void {
    if (mouth === null || this.mouth !== mouth) return;
    this.mouth = null;
    const { stream } = this;
    this.stream = null;
    void stream?.current.close();
    if (Date.now() - this.openedAt > GOOD_STREAM_MS) this.failures = 0;
    this.scheduleRetry();
  }

  private scheduleRetry(): void {
    if (this.isClosed || this.members.size === 0) return;
    if (this.failures >= RETRIES_MAX) {
      this.endAll(new UpstreamError('The MCP server ends every stream on which it tells of changes.'));
      return;
    }
    const ms = Math.min(RETRY_MS * 2 ** this.failures, RETRY_MS_MAX);
    this.failures += 1;
    clearTimeout(this.retry);
    this.retry = setTimeout(() => void this.reopen(), ms * (0.75 + Math.random() / 2)).unref();
  }

  private async reopen(): Promise<void> {
    const { failures } = this;
    try {
      await this.enqueue(() => this.adjust(REOPEN_TIMEOUT_MS));
      this.failures = failures;
      // Nobody knows what changed while nobody told it.
      for (const method of [...listChanges.keys(), RESOURCE_UPDATED]) this.onChange(method);
    } catch {
      this.scheduleRetry();
    }
  }

  private tell(text: string, method: string): void {
    this.failures = 0;
    this.onChange(method);
    const uri = method === RESOURCE_UPDATED ? uriIn(text) : undefined;
    for (const { filter, listener } of this.members)
      if (wants(filter, method, uri)) listener.onNotification(text, method);
  }

  private endAll(reason: Error | null): void {
    const members = [...this.members];
    this.members.clear();
    for (const { listener } of members) listener.onEnd(reason);
  }
}
