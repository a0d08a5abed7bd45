import type { ServerResponse } from 'node:http';
import type { McpResponseSink } from './mcp-request.js';

/** Comment lines keep proxies from closing a stream whose tool takes its time. */
const KEEP_ALIVE_MS = 15_000;

/** A client that does not read what it asked for is let go, before its events fill the memory. */
const UNREAD_BYTES_MAX = 16 * 1024 * 1024;

/** What of a stream that stays open may wait for its reader: there are many, and they last. */
const STREAM_UNREAD_BYTES_MAX = 1024 * 1024;

/** Writes an MCP answer: JSON, or an event stream once something precedes the answer. */
export class ResponseSink implements McpResponseSink {
  private keepAlive: NodeJS.Timeout | null = null;
  /** Writing on would be an error that nobody hears, and end the process. */
  private isOver = false;

  private unreadBytesMax = UNREAD_BYTES_MAX;

  constructor(private readonly response: ServerResponse) {}

  reply(status: number, text: string | null, headers: Record<string, string> = {}): void {
    if (this.isOver) return;
    this.isOver = true;
    if (this.keepAlive) {
      clearInterval(this.keepAlive);
      this.response.end(text === null ? undefined : frame(text));
    } else if (text === null) {
      this.response.writeHead(status, headers).end();
    } else {
      this.response
        .writeHead(status, {
          ...headers,
          'content-type': 'application/json; charset=utf-8',
          'content-length': Buffer.byteLength(text),
          // Published clients repeat this status unless told not to.
          ...(status === 409 ? { 'x-should-retry': 'false' } : {}),
        })
        .end(text);
    }
  }

  event(text: string): void {
    if (this.isOver) return;
    this.begin();
    this.response.write(frame(text));
    if (this.response.writableLength > this.unreadBytesMax) this.response.destroy();
  }

  open(): void {
    if (this.isOver) return;
    this.unreadBytesMax = STREAM_UNREAD_BYTES_MAX;
    this.begin();
    this.response.flushHeaders();
  }

  end(): void {
    this.isOver = true;
    clearInterval(this.keepAlive ?? undefined);
    this.response.end();
  }

  private begin(): void {
    if (this.keepAlive) return;
    this.response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    });
    this.keepAlive = setInterval(() => this.response.write(': keep-alive\n\n'), KEEP_ALIVE_MS).unref();
    this.response.on('close', () => clearInterval(this.keepAlive ?? undefined));
  }
}

/** JSON holds no raw line breaks unless it is pretty-printed; each line of it gets its own field. */
function frame(text: string): string {
  return `event: message\n${text
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}\n`)
    .join('')}\n`;
}
