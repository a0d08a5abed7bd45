import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { describe, expect } from '@jest/globals';
import { until } from '../../../../test/support/until.js';
import { verifies } from '../../../../test/support/verifies.js';
import type { InvocationSearchRepository } from '../search/invocation-search.repository.js';
import { LogStream } from './log-stream.js';

const empty = {
  find: () => Promise.resolve({ invocations: [], total: 0, totalIsExact: true, leftOut: 0 }),
  versions: () => Promise.resolve([]),
  byIds: () => Promise.resolve([]),
} as unknown as InvocationSearchRepository;

const followed = { serverId: randomUUID(), query: {}, limit: 20, check: () => Promise.resolve() };

/** The response to a client that reads nothing before `drain`. */
function reader() {
  const seen = { written: '', isCut: false, drain: () => undefined as void };
  const response = {
    req: { method: 'GET' },
    on: () => undefined,
    once: (_event: string, listener: () => void) => (seen.drain = listener),
    writeHead: () => undefined,
    flushHeaders: () => undefined,
    write: (text: string) => {
      seen.written += text;
      return false;
    },
    end: () => undefined,
    destroy: () => (seen.isCut = true),
  };
  return { seen, response: response as unknown as ServerResponse };
}

describe('a reader of a stream', () => {
  verifies('runtime-log:stream:end', 'that reads nothing is disconnected', async () => {
    const stalled = reader();
    await new LogStream(empty, followed, stalled.response, 50).run();
    expect(stalled.seen).toMatchObject({ isCut: true, written: expect.stringMatching(/^id: \nevent: init\ndata: \{/) });
  });

  verifies('runtime-log:stream:end', 'that reads slowly, but in time, is not', async () => {
    const slow = reader();
    const stream = new LogStream(empty, followed, slow.response, 60_000);
    const running = stream.run();
    await until(() => slow.seen.written !== '', 'it is told');
    slow.seen.drain();
    stream.close();
    await running;
    expect(slow.seen.isCut).toBe(false);
  });
});
