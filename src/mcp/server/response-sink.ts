/**
 * Writes the response to one MCP request. It is JSON, or an event stream as soon as a message precedes it or after 5 s.
 *
 * A stream has a comment line every 10 s, so that proxies leave it open. If its client can resume it, each event has an
 * id, and the call continues after the client has disconnected; for others a disconnect cancels the call
 * (`DisconnectCancellation`). A 409 carries `x-should-retry: false`, because published clients would repeat it.
 *
 * A client that does not read is disconnected at 16 MB unread, on a long-lived stream at 1 MB. Nothing is written after
 * the end: a late event would raise an error that crashes the process.
 */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { EVENT_STREAM_HEADERS } from '../../platform/http/event-stream.js';
import { repeat, type Repeat } from '../../platform/schedule/repeat.js';
import type { McpResponseSink } from './mcp-request.js';
import { Cancellation } from '../protocol/cancellation.js';
import type { ResumableStream, StreamReader } from './resume/resumable-streams.js';
import { JSON_TYPE } from '../../platform/http/json-answer.js';

const KEEP_ALIVE_MS = 10_000;

/** Time after which a request without a response gets the headers of a stream. */
const EARLY_MS = 5_000;

const UNREAD_BYTES_MAX = 16 * 1024 * 1024;

/** Limit of unread bytes of long-lived streams, of which there are many. */
const STREAM_UNREAD_BYTES_MAX = 1024 * 1024;

export class ResponseSink implements McpResponseSink {
  private keepAlive: Repeat | null = null;
  private early: NodeJS.Timeout | undefined;
  private isOver = false;

  private unreadBytesMax = UNREAD_BYTES_MAX;

  /** Called when the response becomes a stream; null when the client cannot resume it. */
  resumable: ((reader: StreamReader) => ResumableStream | null) | null = null;
  private stream: ResumableStream | null = null;
  opened: () => void = () => undefined;
  private readonly reader: StreamReader = {
    open: () => undefined,
    write: (frame) => this.write(frame),
    end: (frame) => this.finish(frame),
  };

  constructor(private readonly response: ServerResponse) {}

  reply(status: number, text: string | null, sessionId?: string): void {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.early);
    if (this.keepAlive) {
      this.endStream(text === null ? undefined : frame(text));
      return;
    }
    const headers: OutgoingHttpHeaders = {};
    if (sessionId !== undefined) headers['mcp-session-id'] = sessionId;
    if (text === null) {
      this.response.writeHead(status, headers).end();
      return;
    }
    headers['content-type'] = JSON_TYPE;
    headers['content-length'] = Buffer.byteLength(text);
    if (status === 409) headers['x-should-retry'] = 'false';
    this.response.writeHead(status, headers).end(text);
  }

  cancelled(text: string): void {
    this.reply(202, this.stream ? text : null);
  }

  event(text: string): void {
    if (this.isOver) return;
    this.begin();
    if (this.stream) this.stream.send(frame(text));
    else this.write(frame(text));
  }

  open(): void {
    this.unreadBytesMax = STREAM_UNREAD_BYTES_MAX;
    this.openAnswer();
  }

  openAnswer(): void {
    if (this.isOver || this.response.destroyed) return;
    this.begin();
    this.response.flushHeaders();
  }

  /** Sends the address to which the client posts (MCP 2024-11-05). */
  openFor(address: string): void {
    if (this.isOver) return;
    this.begin();
    this.response.write(`event: endpoint\ndata: ${address}\n\n`);
  }

  openWhenLate(): void {
    this.early = setTimeout(() => this.openAnswer(), EARLY_MS).unref();
  }

  close(): void {
    this.isOver = true;
    clearTimeout(this.early);
    this.endStream(undefined);
  }

  /**
   * Detaches the client. The call continues while the client can resume the stream.
   *
   * @returns false for a response that cannot be resumed
   */
  detachClient(cancellation: Cancellation): boolean {
    if (!this.stream) return false;
    this.stream.detach(this.reader);
    this.stream.whenUnread(() => cancellation.cancel());
    return true;
  }

  /** Writes a message. @param text not formatted */
  write(text: string): void {
    // Events between the end of a response and its closing would emit an unhandled error.
    if (this.response.writableEnded) return;
    this.response.write(text);
    if (this.response.writableLength > this.unreadBytesMax) this.response.destroy();
  }

  private endStream(last: string | undefined): void {
    if (this.stream) this.stream.close(last);
    else this.finish(last);
  }

  /** Closes the response. @param last not formatted */
  finish(last?: string): void {
    this.keepAlive?.stop();
    if (!this.response.writableEnded) this.response.end(last);
  }

  private begin(): void {
    if (this.keepAlive) return;
    this.response.writeHead(200, EVENT_STREAM_HEADERS);
    this.keepAlive = repeat(KEEP_ALIVE_MS, () => void this.response.write(': keep-alive\n\n'));
    this.response.on('close', () => this.keepAlive?.stop());
    this.opened();
    if (!this.response.destroyed) this.stream = this.resumable?.(this.reader) ?? null;
  }
}

/** Returns the frame of an event. JSON contains raw line breaks only if pretty-printed; each line becomes a `data` field. */
function frame(text: string): string {
  return `event: message\n${text
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}\n`)
    .join('')}\n`;
}

/**
 * For a client that disconnects before its response is complete. {@link stopWatching} must be called after the work.
 */
export class DisconnectCancellation extends Cancellation {
  /**
   * @param sink can let the work continue instead ({@link ResponseSink.detachClient}); it then owns the cancellation
   */
  constructor(
    private readonly response: ServerResponse,
    private readonly sink: ResponseSink | null = null,
  ) {
    super();
    if (response.destroyed) this.cancel();
    else response.on('close', this.onClose);
  }

  stopWatching(): void {
    this.response.off('close', this.onClose);
  }

  private readonly onClose = (): void => {
    if (!this.sink?.detachClient(this)) this.cancel();
  };
}

/** Resolves when either side has closed the response. */
export function closed(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (response.destroyed) resolve();
    else response.once('close', resolve);
  });
}
