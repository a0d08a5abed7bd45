import { beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { PubSub } from '../../../platform/queue/pub-sub.js';
import type { Metrics } from '../../../platform/telemetry/metrics.js';
import { callerFor } from '../../auth/access.types.js';
import type { ServerRef } from '../../servers/server.types.js';
import { until } from '../../../../test/support/until.js';
import { verifies } from '../../../../test/support/verifies.js';
import type { ServerResponse } from 'node:http';
import { RevocationRegistry } from '../../../platform/http/revocation-registry.js';
import { ReleaseStreams } from './release-streams.js';
import type { ReleasesService } from '../releases.service.js';

const fail = () => {
  throw new Error('the headers are sent');
};

/** The response to a client that stays. */
const response = {
  closed: false,
  req: { method: 'GET' },
  on: () => undefined,
  writeHead: () => undefined,
  flushHeaders: () => undefined,
  write: () => undefined,
  end: () => undefined,
};

describe('a release stream that fails', () => {
  beforeAll(() => Logger.overrideLogger(false));

  it('occupies no slot, whether it failed before its start or later', async () => {
    const releases = { find: () => Promise.resolve({ id: 'one' }) } as unknown as ReleasesService;
    const streams = new ReleaseStreams(releases, {} as PubSub, new RevocationRegistry(), {
      gauge: () => undefined,
    } as unknown as Metrics);
    const follow = (broken: object) =>
      streams.follow({} as ServerRef, 'one', { caller: callerFor('one'), after: undefined }, {
        ...response,
        ...broken,
      } as unknown as ServerResponse);
    for (let times = 0; times < 60; times += 1) await expect(follow({ writeHead: fail })).rejects.toThrow('headers');
    expect(streams.size).toBe(0);
    for (let times = 0; times < 10; times += 1) await follow({ write: fail, end: fail });
    await until(() => streams.size === 0, 'they are forgotten');
  });
});

describe('a release stream', () => {
  verifies('streams:key-ended', 'ends with its key, and not with another', async () => {
    const releases = {
      find: () => Promise.resolve({ id: 'one', status: 'WORKING' }),
      logsOf: () => Promise.resolve([]),
    } as unknown as ReleasesService;
    const held = new RevocationRegistry();
    const streams = new ReleaseStreams(releases, {} as PubSub, held, { gauge: () => undefined } as unknown as Metrics);
    for (const keyId of ['revoked', 'valid']) {
      const owner = { caller: { ...callerFor('one'), keyId }, after: undefined };
      const reading = { ...response, write: () => true } as unknown as ServerResponse;
      await streams.follow({} as ServerRef, 'one', owner, reading);
    }
    expect(streams.size).toBe(2);
    held.closeAllOf('revoked');
    await until(() => streams.size === 1, 'it ends');
    expect(held.keyIds).toEqual(['valid']);
    streams.beforeApplicationShutdown();
    await until(() => streams.size === 0, 'the other one ends with the process');
    expect(held.keyIds).toEqual([]);
  });
});
