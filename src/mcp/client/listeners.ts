/**
 * Listeners of one upstream, which share one stream. Its filter is the union of their filters.
 *
 * When the union changes, an adapter that can change an open stream does so; otherwise a new stream is opened before
 * the old one closes, so that no notification is lost. Changes run one after the other. Each listener receives what its
 * own filter names, never more than the upstream honours.
 *
 * After a stream that closed, all lists count as changed. If it cannot be opened after 6 or more consecutive waits, the
 * listeners get an UpstreamError.
 */
import type { Listening, ListenFilter, UpstreamListener } from '../protocol/channel.js';
import { withinDeadline } from '../protocol/deadline.js';
import { isOfSession, listChanges, listFilter, RESOURCE_UPDATED } from '../protocol/list-pages.js';
import { UpstreamError } from '../protocol/mcp-errors.js';
import { parseMessage } from '../protocol/messages.js';
import { GOOD_STREAM_MS, reopenMs } from './reopen-wait.js';

const RETRIES_MAX = 6;

/** Buffer limit for notifications that arrive before the stream's acknowledgement. */
export const EARLY_CHARS_MAX = 1024 * 1024;

const REOPEN_TIMEOUT_MS = 30_000;

export interface ListenStream {
  honoured: ListenFilter;
  /**
   * Changes the filter of the open stream and returns the honoured part; without this method a new stream replaces it.
   */
  change?(filter: ListenFilter, timeoutMs: number): Promise<ListenFilter>;
  /** Closes the stream. Never rejects. */
  close(): Promise<void>;
}

export interface ListenStreamHandlers {
  onNotification(text: string, method: string): void;
  /** @param retryMs null without a `retry` */
  lost(retryMs: number | null): void;
}

/** Opens a stream. If the upstream honours nothing, no stream is needed. */
export type OpenListening = (
  filter: ListenFilter,
  handlers: ListenStreamHandlers,
  timeoutMs: number,
) => Promise<ListenStream>;

interface SharedStream {
  /** Distinguishes the stream from a replaced one, whose last messages are ignored. */
  id: object;
  current: ListenStream;
  filter: ListenFilter;
  /** Filter of a change in progress: the upstream may send notifications of new resources before all are subscribed. */
  next?: ListenFilter;
}

export class Listeners {
  private readonly members = new Set<{ filter: ListenFilter; listener: UpstreamListener }>();
  private stream: SharedStream | null = null;
  private work: Promise<unknown> = Promise.resolve();
  private retry: NodeJS.Timeout | undefined;
  private failures = 0;
  private openedAt = 0;
  private isClosed = false;

  /** @param onChange is called before the listeners, to invalidate cached results */
  constructor(
    private readonly openStream: OpenListening,
    private readonly onChange: (method: string) => void = () => undefined,
  ) {}

  get isEmpty(): boolean {
    return this.members.size === 0;
  }

  get hearMessages(): boolean {
    return [...this.members].some(({ filter }) => filter.messages);
  }

  /** @throws UpstreamFailure when the stream cannot be opened */
  async add(filter: ListenFilter, listener: UpstreamListener, timeoutMs: number): Promise<Listening> {
    if (this.isClosed) throw new UpstreamError('The connection was changed or deleted meanwhile.');
    const member = { filter, listener };
    this.members.add(member);
    const remove = async () => {
      if (this.members.delete(member)) await this.enqueue(() => this.adjust(REOPEN_TIMEOUT_MS)).catch(() => undefined);
    };
    try {
      const adjusted = this.enqueue(() => this.adjust(timeoutMs));
      await withinDeadline(adjusted, timeoutMs, 'The MCP server did not let anybody listen in time.');
    } catch (error) {
      void remove();
      throw error;
    }
    return { honoured: common(member.filter, this.stream?.current.honoured ?? {}), close: remove };
  }

  /** Forwards a notification unless the upstream uses the stream, which would deliver the notification too. */
  onOtherNotification(text: string, method: string): void {
    if (!this.stream || !hasAny(this.stream.current.honoured)) this.notify(text, method);
    else if (listChanges.has(method)) this.onChange(method);
  }

  /** Starts again, since a new session can have a stream. */
  restart(): void {
    const { stream } = this;
    this.stream = null;
    void stream?.current.close();
    void this.reopen();
  }

  /**
   * Removes all listeners and closes the stream. Never rejects. @param reason null when the connection was changed or
   * deleted
   */
  async close(reason: Error | null = null): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.retry);
    this.endAll(reason);
    await this.enqueue(() => this.shut()).catch(() => undefined);
  }

  private enqueue<T>(job: () => Promise<T>): Promise<T> {
    const done = this.work.then(job, job);
    this.work = done.catch(() => undefined);
    return done;
  }

  private async adjust(timeoutMs: number): Promise<void> {
    if (this.members.size === 0) return this.shut();
    const filter = union([...this.members].map((member) => member.filter));
    const { stream } = this;
    const uris = new Set(stream?.filter.resourceSubscriptions);
    const requested = filter.resourceSubscriptions ?? [];
    const isSame = [...listChanges.values(), 'messages' as const].every((key) => stream?.filter[key] === filter[key]);
    if (stream && isSame && uris.size === requested.length && requested.every((uri) => uris.has(uri))) return;
    if (!stream?.current.change) return this.replace(filter, timeoutMs);
    stream.next = filter;
    try {
      stream.current.honoured = await stream.current.change(filter, timeoutMs);
      stream.filter = filter;
    } finally {
      stream.next = undefined;
    }
  }

  private async replace(filter: ListenFilter, timeoutMs: number): Promise<void> {
    const id = {};
    let lost: { retryMs: number | null } | null = null;
    let early: [string, string][] | null = [];
    let earlyChars = 0;
    const handlers: ListenStreamHandlers = {
      onNotification: (text, method) => {
        if (early) {
          earlyChars += text.length;
          if (earlyChars <= EARLY_CHARS_MAX) early.push([text, method]);
        } else if (this.stream?.id === id) this.notify(text, method, this.stream);
      },
      lost: (retryMs) => {
        lost = { retryMs };
        this.handleLoss(id, retryMs);
      },
    };
    const current = await this.openStream(filter, handlers, timeoutMs);
    const before = this.stream;
    const stream = { id, current, filter };
    this.stream = stream;
    this.openedAt = Date.now();
    for (const [text, method] of early) this.notify(text, method, stream);
    early = null;
    await before?.current.close();
    const { retryMs } = (lost as { retryMs: number | null } | null) ?? { retryMs: undefined };
    if (retryMs !== undefined) this.handleLoss(id, retryMs);
  }

  private async shut(): Promise<void> {
    clearTimeout(this.retry);
    const { stream } = this;
    this.stream = null;
    await stream?.current.close();
  }

  private handleLoss(id: object, retryMs: number | null): void {
    const { stream } = this;
    if (stream?.id !== id) return;
    this.stream = null;
    void stream.current.close();
    // A stream that would carry nothing is reopened only for the next listener.
    if (!stream.next && !hasAny(stream.current.honoured)) return;
    if (Date.now() - this.openedAt > GOOD_STREAM_MS) this.failures = 0;
    this.scheduleRetry(reopenMs(this.failures, retryMs));
  }

  private scheduleRetry(ms: number): void {
    if (this.isClosed || this.members.size === 0) return;
    this.failures += 1;
    clearTimeout(this.retry);
    this.retry = setTimeout(() => void this.reopen(), ms * (1 + Math.random() / 4)).unref();
  }

  private async reopen(): Promise<void> {
    try {
      await this.enqueue(() => this.adjust(REOPEN_TIMEOUT_MS));
      for (const method of [...listChanges.keys(), RESOURCE_UPDATED]) this.onChange(method);
    } catch (error) {
      if (this.failures >= RETRIES_MAX) {
        return this.endAll(new UpstreamError('The MCP server does not open its stream of change notifications.'));
      }
      const { retryAfterSeconds } = error as Partial<UpstreamError>;
      this.scheduleRetry(reopenMs(this.failures, null, retryAfterSeconds));
    }
  }

  /** @param stream origin of the notification, which is dropped if the upstream should not send it there */
  private notify(text: string, method: string, stream?: SharedStream): void {
    this.onChange(method);
    const uri = method === RESOURCE_UPDATED ? uriIn(text) : undefined;
    if (stream && ![stream.current.honoured, stream.next ?? {}].some((sent) => matchesFilter(sent, method, uri)))
      return;
    for (const { filter, listener } of this.members)
      if (matchesFilter(filter, method, uri)) listener.onNotification(text, method);
  }

  private endAll(reason: Error | null): void {
    const members = [...this.members];
    this.members.clear();
    for (const { listener } of members) listener.onEnd(reason);
  }
}

function union(filters: ListenFilter[]): ListenFilter {
  const lists = listFilter((flag) => filters.some((filter) => filter[flag]));
  const messages = filters.some((filter) => filter.messages) ? { messages: true } : {};
  const uris = [...new Set(filters.flatMap((filter) => filter.resourceSubscriptions ?? []))];
  return { ...lists, ...messages, ...(uris.length > 0 && { resourceSubscriptions: uris }) };
}

export function common(requested: ListenFilter, offered: ListenFilter): ListenFilter {
  const messages = requested.messages && offered.messages ? { messages: true } : {};
  const both = { ...listFilter((flag) => requested[flag] === true && offered[flag] === true), ...messages };
  const offeredUris = new Set(offered.resourceSubscriptions);
  const uris = requested.resourceSubscriptions?.filter((uri) => offeredUris.has(uri)) ?? [];
  return uris.length === 0 ? both : { ...both, resourceSubscriptions: uris };
}

function hasAny(filter: ListenFilter): boolean {
  return Object.keys(filter).length > 0;
}

/**
 * Returns true if the filter matches a notification of this method.
 *
 * @param uri resource URI of `notifications/resources/updated`, if it has one
 */
export function matchesFilter(filter: ListenFilter, method: string, uri: unknown): boolean {
  if (isOfSession(method)) return filter.messages === true;
  const list = listChanges.get(method);
  if (list) return filter[list] === true;
  return typeof uri === 'string' && (filter.resourceSubscriptions?.includes(uri) ?? false);
}

export function uriIn(text: string): unknown {
  return (parseMessage(text)?.params as { uri?: unknown } | undefined)?.uri;
}
