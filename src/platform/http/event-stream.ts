import type { ServerResponse } from 'node:http';
import { Logger, type BeforeApplicationShutdown } from '@nestjs/common';
import { KeyedLimiter } from '../limits/keyed-limiter.js';
import type { RevocationRegistry } from './revocation-registry.js';
import { repeat } from '../schedule/repeat.js';
import { STALL_MS_MAX } from './stalled-reader.js';

/** `x-accel-buffering` makes nginx pass each event on immediately. */
export const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
};

/** Interval of heartbeats, shorter than the 30 to 60 s after which proxies close an idle connection. */
const HEARTBEAT_MS = 15_000;

export abstract class EventStream {
  protected isClosed = false;
  private isDue = false;
  private isWaiting = false;
  private wakeUp: () => void = () => undefined;

  constructor(
    protected readonly response: ServerResponse,
    private readonly stallMs = STALL_MS_MAX,
  ) {}

  protected abstract follow(): Promise<void>;

  wake(): void {
    this.isDue = true;
    this.wakeUp();
  }

  close(): void {
    this.isClosed = true;
    this.wakeUp();
  }

  /** Closes the stream when the client disconnects. */
  begin(): void {
    const { response } = this;
    // The client might have disconnected during the previous queries, and HEAD has no events.
    if (response.closed || response.req.method === 'HEAD') this.close();
    else response.on('close', () => this.close());
    response.writeHead(200, EVENT_STREAM_HEADERS);
    response.flushHeaders();
  }

  /** @throws what {@link follow} throws */
  async run(): Promise<void> {
    if (this.isClosed) return;
    const heartbeat = repeat(HEARTBEAT_MS, () => {
      if (!this.isClosed) this.response.write(': still here\n\n');
    });
    try {
      await this.follow();
    } finally {
      heartbeat.stop();
    }
  }

  /** Waits for a slow client, and closes the connection if it has not read everything in time. */
  protected async send(event: string, data: object, id: string): Promise<void> {
    if (this.isClosed) return;
    const isRead = this.response.write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    if (isRead) return;
    this.isWaiting = true;
    this.response.once('drain', () => {
      this.isWaiting = false;
      this.wakeUp();
    });
    await this.pause(this.stallMs, () => !this.isWaiting);
    if (this.isWaiting && !this.isClosed) this.response.destroy();
    this.isClosed ||= this.isWaiting;
  }

  /** Waits at most `ms` milliseconds; a {@link wake} since the last call counts. */
  protected async nextChange(ms: number): Promise<void> {
    await this.pause(ms, () => this.isDue);
    this.isDue = false;
  }

  /** Waits; returns early when `isOver` returns true after a wake-up. */
  protected async pause(ms: number, isOver = () => false): Promise<void> {
    if (this.isClosed || isOver()) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms).unref();
      this.wakeUp = () => {
        if (!this.isClosed && !isOver()) return;
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Owner of a stream, which is counted for the account, and closes with the key. */
export interface StreamOwner {
  accountId: string;
  keyId: string;
}

/** Open streams, which close before the process stops: it does not wait for their clients. */
export abstract class EventStreams<Stream extends EventStream> implements BeforeApplicationShutdown {
  private readonly logger = new Logger('streams');
  private readonly open = new Set<Stream>();
  private readonly limiter: KeyedLimiter;

  /** @param eachMax streams of one account @param allMax streams of all */
  constructor(
    eachMax: number,
    allMax: number,
    private readonly revocationRegistry: RevocationRegistry,
  ) {
    this.limiter = new KeyedLimiter(eachMax, allMax);
  }

  get size(): number {
    return this.limiter.size;
  }

  protected get isFull(): boolean {
    return this.limiter.isFull;
  }

  [Symbol.iterator](): Iterator<Stream> {
    return this.open.values();
  }

  /**
   * Runs in the background until the stream closes, the key is revoked or expires, or the process stops.
   *
   * @returns false above a limit, with nothing sent
   */
  protected start(stream: Stream, { accountId, keyId }: StreamOwner, response: ServerResponse): boolean {
    const leave = this.limiter.acquire(accountId);
    if (!leave) return false;
    try {
      stream.begin();
    } catch (error) {
      leave();
      throw error;
    }
    // The stream is added before its first query, so that it misses no message.
    this.open.add(stream);
    const release = this.revocationRegistry.add(keyId, () => stream.close());
    stream
      .run()
      .finally(() => {
        this.open.delete(stream);
        release();
        leave();
        response.end();
      })
      .catch((error: unknown) => this.logger.warn({ msg: 'a stream broke off', err: error }));
    return true;
  }

  beforeApplicationShutdown(): void {
    for (const stream of this.open) stream.close();
  }
}
