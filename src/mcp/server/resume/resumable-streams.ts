/**
 * Streams of legacy clients that outlive a broken connection (from 2025-06-18 on). GET with `Last-Event-ID` sends what
 * the client missed, then the rest.
 *
 * The sealed name in an event id contains the process that holds the stream, and is valid only for this session and
 * caller. Another process forwards the request to it. Clients of 2025-11-25 get an id immediately, by an event without
 * data and `retry: 1000`.
 *
 * A stream keeps 256 events or 1 MB, for 5 minutes after it closed or its client disconnected. An account has at most
 * 32 MB, the process 128 MB: above that the oldest stream of the largest account can no longer be resumed, and a call
 * without a reader is cancelled. A client that missed an event no longer stored gets McpSessionNotFoundError (404).
 */
import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { InternalClient, isProcessGone } from '../../../platform/internal-http/internal-client.js';
import { Vault } from '../../../platform/vault/vault.js';
import { McpSessionNotFoundError } from '../mcp-server.errors.js';
import type { ClientSession } from '../sessions/session-ids.js';
import { SealedStreamIds } from '../sessions/sealed-stream-ids.js';

/** Oldest revision whose streams can be resumed, and the first whose streams begin with an event without data. */
const RESUMABLE_VERSION = '2025-06-18';
const PRIMED_VERSION = '2025-11-25';

const RESUMABLE_MS = 5 * 60_000;

const RETRY_MS = 1_000;

const ALL_BYTES_MAX = 128 * 1024 * 1024;

/** Limit of an account, above which its oldest stream is dropped. */
const ACCOUNT_BYTES_MAX = ALL_BYTES_MAX / 4;

/** Minimum size that is charged for a stream. */
const STREAM_BYTES = 1024;

/** Timeout until the other process starts its response. */
const OPENED_MS = 10_000;

const EVENTS_MAX = 256;
const EVENTS_BYTES_MAX = 1024 * 1024;

export const RESUMED_STREAMS_PATH = '/internal/resumed-streams';

export interface ResumedStreamHead {
  name: string;
  /** Number of the last event that the client has. */
  after: number;
}

/** Messages of a resumed stream; `opened` means that the stream was found. */
export type ResumedStreamMessage = { type: 'opened' } | { type: 'event'; frame: string };

export interface StreamReader {
  open(): void;
  write(frame: string): void;
  end(last?: string): void;
}

class EventBuffer {
  private readonly events: { text: string; bytes: number }[] = [];
  private last = 0;
  bytes = 0;

  /** Drops the oldest events above the limits. @returns the number of the event */
  add(text: string): number {
    const bytes = Buffer.byteLength(text);
    this.events.push({ text, bytes });
    this.bytes += bytes;
    while (this.events.length > EVENTS_MAX || this.bytes > EVENTS_BYTES_MAX)
      this.bytes -= this.events.shift()?.bytes ?? 0;
    return (this.last += 1);
  }

  /** Returns the events after a number (0 for all); null when one of them was dropped, or the number does not exist. */
  eventsAfter(number: number): { number: number; text: string }[] | null {
    const first = this.last - this.events.length + 1;
    if (!(number >= first - 1 && number <= this.last)) return null;
    return this.events.slice(number - first + 1).map(({ text }, index) => ({ number: number + 1 + index, text }));
  }
}

export class ResumableStream {
  /** Null when the stream can no longer be resumed. */
  private buffer: EventBuffer | null = new EventBuffer();
  private timer: NodeJS.Timeout | undefined;
  private isEnded = false;
  private onUnread: () => void = () => undefined;

  /**
   * @param reader the client that opened the stream
   *
   * @param id prefix of its event ids
   *
   * @param onGrown called with the change of its size
   *
   * @param onGone called after the time without a client
   */
  constructor(
    private reader: StreamReader | null,
    private readonly id: string,
    private readonly onGrown: (bytes: number) => void,
    private readonly onGone: () => void,
  ) {}

  get bytes(): number {
    return (this.buffer?.bytes ?? 0) + STREAM_BYTES;
  }

  /** Sends an event without data, from whose id a client can resume. */
  prime(): void {
    this.reader?.write(`id: ${this.id}.0\nretry: ${RETRY_MS}\ndata: \n\n`);
  }

  /** Sends an event. @param frame without an id */
  send(frame: string): void {
    const event = this.add(frame);
    this.reader?.write(event);
  }

  /** Closes the stream, which can be read until its time has elapsed. */
  close(last?: string): void {
    const event = last === undefined ? undefined : this.add(last);
    this.isEnded = true;
    this.reader?.end(event);
    this.reader = null;
    this.wait();
  }

  /**
   * Sends the events after this one, then new ones.
   *
   * @throws McpSessionNotFoundError when one of these events was dropped
   */
  resume(after: number, reader: StreamReader): void {
    const missed = this.buffer?.eventsAfter(after);
    if (!missed) throw streamGone();
    clearTimeout(this.timer);
    this.reader?.end();
    this.reader = reader;
    reader.open();
    for (const { number, text } of missed) reader.write(this.numbered(number, text));
    if (this.isEnded) this.close();
  }

  detach(reader: StreamReader): void {
    if (this.reader !== reader) return;
    this.reader = null;
    if (this.buffer) this.wait();
    else this.onUnread();
  }

  /** Called when no client can resume the stream. */
  whenUnread(onUnread: () => void): void {
    this.onUnread = onUnread;
    if (!this.buffer && !this.reader) onUnread();
  }

  /** Drops the stream. Its current client keeps reading; no client can resume it. */
  drop(): void {
    clearTimeout(this.timer);
    this.buffer = null;
    if (!this.reader) this.onUnread();
  }

  /** @returns the event with its id, or unchanged when the stream can no longer be resumed */
  private add(frame: string): string {
    const { buffer, bytes } = this;
    if (!buffer) return frame;
    const number = buffer.add(frame);
    this.onGrown(this.bytes - bytes);
    return this.numbered(number, frame);
  }

  private wait(): void {
    clearTimeout(this.timer);
    if (this.buffer) this.timer = setTimeout(this.onGone, RESUMABLE_MS).unref();
  }

  private numbered(number: number, frame: string): string {
    return `id: ${this.id}.${number}\n${frame}`;
  }
}

interface Share {
  bytes: number;
  names: Set<string>;
}

@Injectable()
export class ResumableStreams {
  private readonly streamIds: SealedStreamIds;
  private readonly streams = new Map<string, ResumableStream>();
  private readonly shares = new Map<string, Share>();
  private bytes = 0;

  constructor(
    vault: Vault,
    env: Env,
    private readonly internalClient: InternalClient,
  ) {
    this.streamIds = new SealedStreamIds(vault, env);
  }

  /** Opens a stream, which counts toward the limit of the account; `reader` is already open. */
  open(session: ClientSession, caller: string, account: string, reader: StreamReader): ResumableStream {
    const name = this.streamIds.create();
    const id = this.streamIds.seal(name, ownerOf(session, caller));
    const stream = new ResumableStream(
      reader,
      id,
      (bytes) => this.grow(account, bytes),
      () => this.drop(account, name),
    );
    const share = this.shares.get(account) ?? { bytes: 0, names: new Set() };
    this.shares.set(account, share);
    share.names.add(name);
    this.streams.set(name, stream);
    this.grow(account, stream.bytes);
    if (session.version >= PRIMED_VERSION) stream.prime();
    return stream;
  }

  /**
   * Resolves when the stream has started, in the process that holds it.
   *
   * @param whenLeft registers a function to call when the client has disconnected
   * @throws McpSessionNotFoundError
   */
  async resume(
    eventId: string,
    session: ClientSession,
    caller: string,
    reader: StreamReader,
    whenLeft: (leave: () => void) => void,
  ): Promise<void> {
    const dot = eventId.lastIndexOf('.');
    const ref = this.streamIds.open(eventId.slice(0, Math.max(dot, 0)), ownerOf(session, caller));
    const number = eventId.slice(dot + 1);
    if (!ref || !/^\d{1,15}$/.test(number)) throw streamGone();
    const head: ResumedStreamHead = { name: ref.name, after: Number(number) };
    if (this.streamIds.isOwn(ref)) return this.read(head, reader, whenLeft);
    if (ref.url === null) throw streamGone();
    const { url } = ref;
    return new Promise((resolve, reject) => {
      let isOpen = false;
      const call = { url, path: RESUMED_STREAMS_PATH, head, answerTimeoutMs: OPENED_MS };
      const followed = this.internalClient.follow<ResumedStreamMessage>(call, (message) => {
        if (message.type === 'event') return reader.write(message.frame);
        isOpen = true;
        reader.open();
        resolve();
      });
      whenLeft(() => {
        resolve();
        followed.abort(new Error('The client has left'));
      });
      const finish = (error?: unknown) => {
        if (isOpen) reader.end();
        else reject(isProcessGone(error) ? streamGone() : (error as Error));
      };
      followed.ended.then(finish, finish);
    });
  }

  /** Reads a stream that this process must hold. @throws McpSessionNotFoundError */
  read({ name, after }: ResumedStreamHead, reader: StreamReader, whenLeft: (leave: () => void) => void): void {
    const stream = this.streams.get(name);
    if (!stream) throw streamGone();
    stream.resume(after, reader);
    whenLeft(() => stream.detach(reader));
  }

  /** Calls without a client then stop with the process. */
  close(): void {
    for (const [account, { names }] of this.shares) for (const name of names) this.drop(account, name);
  }

  private grow(account: string, bytes: number): void {
    this.bytes += bytes;
    const share = this.shares.get(account);
    if (!share) return;
    share.bytes += bytes;
    while (share.bytes > ACCOUNT_BYTES_MAX) this.dropOldest(account, share);
    while (this.bytes > ALL_BYTES_MAX) {
      const [first, ...rest] = this.shares;
      if (!first) return;
      this.dropOldest(...rest.reduce((largest, other) => (other[1].bytes > largest[1].bytes ? other : largest), first));
    }
  }

  private dropOldest(account: string, { names }: Share): void {
    for (const name of names) return this.drop(account, name);
  }

  private drop(account: string, name: string): void {
    const stream = this.streams.get(name);
    const share = this.shares.get(account);
    if (!stream || !share) return;
    this.streams.delete(name);
    share.names.delete(name);
    this.bytes -= stream.bytes;
    share.bytes -= stream.bytes;
    if (share.names.size === 0) this.shares.delete(account);
    stream.drop();
  }
}

export function isResumable({ version }: ClientSession): boolean {
  return version >= RESUMABLE_VERSION;
}

function ownerOf({ key }: ClientSession, caller: string): string {
  return `${caller} ${key}`;
}

function streamGone(): McpSessionNotFoundError {
  return new McpSessionNotFoundError('The stream of this Last-Event-ID cannot be resumed: open a new one without it');
}
