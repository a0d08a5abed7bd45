import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { verifies } from '../../../test/support/verifies.js';
import { uuidV7 } from '../../platform/database/uuid-v7.js';
import type { Metrics } from '../../platform/telemetry/metrics.js';
import type { CallMetricsService } from './call-metrics.service.js';
import type { ConnectionCall } from './invocation.types.js';
import type { InvocationStore } from './store/invocation-store.js';
import { ConnectionCallsService } from './connection-calls.service.js';
import type { InvocationSearchRepository } from './search/invocation-search.repository.js';

beforeAll(() => Logger.overrideLogger(false));

/** A recorder that writes to an array. */
function on(written: ConnectionCall[], isAway = () => false): ConnectionCallsService {
  const keepCalls = (calls: ConnectionCall[]) => {
    if (isAway()) return Promise.reject(new Error('the database is away'));
    written.push(...calls);
    return Promise.resolve();
  };
  const metrics = { counter: () => undefined } as unknown as Metrics;
  const store = { keepCalls } as unknown as InvocationStore;
  return new ConnectionCallsService(store, {} as InvocationSearchRepository, {} as CallMetricsService, metrics);
}

describe('buffered lines of connections', () => {
  verifies('log:bounded', 'have 16 Mi characters at most while the database is unavailable', async () => {
    let isAway = true;
    const written: ConnectionCall[] = [];
    const recorder = on(written, () => isAway);
    const record = (message: string) => {
      const ids = { id: uuidV7(), connectionId: randomUUID() };
      recorder.record({ ...ids, lines: [{ at: 1, level: 'log', message }], exceptions: [] });
    };
    for (let n = 0; n < 1_000; n += 1) record('x'.repeat(10_000));
    await recorder.settle();
    for (let n = 0; n < 1_000; n += 1) record('y'.repeat(10_000));
    isAway = false;
    await recorder.settle();
    expect(written).toHaveLength(1_628);
    expect(written.filter(({ lines }) => lines[0].message.startsWith('x'))).toHaveLength(1_000);
    await recorder.onApplicationShutdown();
  });

  verifies('log:bounded', 'have 1 Mi characters at most per connection and minute', async () => {
    const written: ConnectionCall[] = [];
    const recorder = on(written);
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now());
    const [loud, quiet] = [randomUUID(), randomUUID()];
    for (const connectionId of [...Array.from({ length: 300 }, () => loud), quiet]) {
      const message = 'x'.repeat(8_192);
      recorder.record({ id: uuidV7(), connectionId, lines: [{ at: 1, level: 'log', message }], exceptions: [] });
    }
    clock.mockRestore();
    await recorder.settle();
    const of = (id: string) => written.filter(({ connectionId }) => connectionId === id).length;
    expect([of(loud), of(quiet)]).toEqual([128, 1]);
    await recorder.onApplicationShutdown();
  });
});
