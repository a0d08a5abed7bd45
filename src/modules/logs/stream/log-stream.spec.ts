import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { beforeAll, describe, expect } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { RevocationRegistry } from '../../../platform/http/revocation-registry.js';
import type { PubSub } from '../../../platform/queue/pub-sub.js';
import type { Metrics } from '../../../platform/telemetry/metrics.js';
import { until } from '../../../../test/support/until.js';
import { verifies } from '../../../../test/support/verifies.js';
import type { InvocationSearchRepository } from '../search/invocation-search.repository.js';
import { LogStream } from './log-stream.js';
import { LogStreams } from './log-streams.js';

const empty = {
  find: () => Promise.resolve({ invocations: [], total: 0, totalIsExact: true, leftOut: 0 }),
  versions: () => Promise.resolve([]),
  byIds: () => Promise.resolve([]),
} as unknown as InvocationSearchRepository;

const followed = { serverId: randomUUID(), query: {}, limit: 20, check: () => Promise.resolve() };

/** The response to a client that reads nothing before `drain`. */
function reader(broken: Partial<ServerResponse> = {}) {
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
    ...broken,
  };
  return { seen, response: response as unknown as ServerResponse };
}

describe('a reader of a stream', () => {
  verifies('runtime-log:stream:end', 'is disconnected when it reads nothing', async () => {
    const stalled = reader();
    await new LogStream(empty, followed, stalled.response, 50).run();
    expect(stalled.seen).toMatchObject({ isCut: true, written: expect.stringMatching(/^id: \nevent: init\ndata: \{/) });
  });

  verifies('runtime-log:stream:end', 'stays connected when it reads slowly, but in time', async () => {
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

describe('a log stream that fails', () => {
  beforeAll(() => Logger.overrideLogger(false));

  const fail = () => {
    throw new Error('the headers are sent');
  };

  verifies('runtime-log:stream:end', 'occupies no slot, whether it failed before its start or later', async () => {
    const streams = new LogStreams(empty, {} as PubSub, new RevocationRegistry(), {
      gauge: () => undefined,
    } as unknown as Metrics);
    const follow = (broken: Partial<ServerResponse>) =>
      streams.follow({ ...followed, accountId: 'one', keyId: 'one' }, reader(broken).response);
    for (let times = 0; times < 20; times += 1)
      expect(() => follow({ writeHead: fail })).toThrow('the headers are sent');
    expect(streams.size).toBe(0);
    for (let times = 0; times < 10; times += 1) follow({ write: fail, end: fail });
    expect(streams.size).toBe(10);
    await until(() => streams.size === 0, 'they are forgotten');
  });
});
