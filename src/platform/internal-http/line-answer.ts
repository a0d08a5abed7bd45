import type { ServerResponse } from 'node:http';

/** A process that does not read what it asked for gets no more than this. */
const UNREAD_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Begins an answer of JSON lines to another process. What comes when it is complete, or nobody hears it any more, is dropped:
 * writing on would be an error that nobody hears, and end the process.
 *
 * @returns writes one line
 */
export function beginLines<L>(response: ServerResponse): (line: L) => void {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
  return (line) => {
    if (response.writableEnded || response.destroyed) return;
    response.write(`${JSON.stringify(line)}\n`);
    if (response.writableLength > UNREAD_BYTES_MAX) response.destroy();
  };
}
