import { once } from 'node:events';
import { createServer } from 'node:http';
import { readWithin } from '../../platform/egress/follow.js';
import { jsonIn } from '../../platform/text/json-bounds.js';
import type { TraceException } from '../hosting.types.js';

/** Size limit of a report: workerd stores 256 KB of an event, which escaping may multiply. */
const REPORT_BYTES_MAX = 2_097_152;

const CONNECTIONS_MAX = 64;

export interface TailItem {
  id: string;
  hasThrown: boolean;
  /** True if workerd dropped lines: it stores 256 KB of an event. */
  isTruncated: boolean;
  /** Time in ms since 1970, level, text. */
  lines: [number, string, string][];
  exceptions: TraceException[];
}

/**
 * Opens a socket for the reports of one program. Only the workerd of this program reaches it; malformed reports are rejected.
 *
 * @returns function to close it with its connections; never rejects
 * @throws the error of `listen`
 */
export async function openTraceSink(path: string, onItems: (items: TailItem[]) => void): Promise<() => Promise<void>> {
  const server = createServer((request, response) => {
    void (async () => {
      response.on('error', () => request.destroy());
      const body = await readWithin(request, REPORT_BYTES_MAX).catch(() => null);
      if (body === null) return void response.destroy();
      const items = jsonIn(body.toString());
      const isSound = Array.isArray(items) && items.every(isItem);
      response.writeHead(isSound ? 204 : 400).end();
      if (isSound) onItems(items);
    })();
  });
  server.maxConnections = CONNECTIONS_MAX;
  server.on('clientError', (_error, socket) => socket.destroy());
  await once(server.listen(path), 'listening');
  server.on('error', () => undefined);
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
}

function isItem(item: unknown): item is TailItem {
  const { id, lines, exceptions } = (item ?? {}) as Partial<TailItem>;
  return (
    typeof id === 'string' &&
    Array.isArray(lines) &&
    lines.every((line) => Array.isArray(line) && isTime(line[0]) && typeof line[2] === 'string') &&
    Array.isArray(exceptions) &&
    exceptions.every((thrown) => thrown && isTime(thrown.at) && typeof thrown.message === 'string')
  );
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Math.abs(value) <= 8.64e15;
}
