import { randomUUID } from 'node:crypto';
import { describe, expect, jest } from '@jest/globals';
import { verifies } from '../../../test/support/verifies.js';
import { uuidV7 } from '../../platform/database/uuid-v7.js';
import type { Metrics } from '../../platform/telemetry/metrics.js';
import type { CallMetricsService } from './call-metrics.service.js';
import { ConnectionCallsService } from './connection-calls.service.js';
import type { InvocationsService } from './ingest/invocations.service.js';
import type { ConnectionCall } from './invocation.types.js';
import type { InvocationSearchRepository } from './search/invocation-search.repository.js';

/** A service whose rows go to an array. */
function on(written: ConnectionCall[]): ConnectionCallsService {
  const invocations = { recordCall: (call: ConnectionCall) => written.push(call) } as unknown as InvocationsService;
  const metrics = { counter: () => undefined } as unknown as Metrics;
  return new ConnectionCallsService(invocations, {} as InvocationSearchRepository, {} as CallMetricsService, metrics);
}

describe('the log of a connection', () => {
  verifies('log:bounded', 'has 1 Mi characters at most in a minute', () => {
    const written: ConnectionCall[] = [];
    const calls = on(written);
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now());
    const [loud, quiet] = [randomUUID(), randomUUID()];
    for (const connectionId of [...Array.from({ length: 300 }, () => loud), quiet]) {
      const message = 'x'.repeat(8_192);
      calls.record({ id: uuidV7(), connectionId, lines: [{ at: 1, level: 'log', message }], exceptions: [] });
    }
    clock.mockRestore();
    const of = (id: string) => written.filter(({ connectionId }) => connectionId === id).length;
    expect([of(loud), of(quiet)]).toEqual([121, 1]);
  });

  verifies('log:bounded', 'keeps calls that failed beyond a thousand that did not', () => {
    const written: ConnectionCall[] = [];
    const calls = on(written);
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now());
    const call = { connectionId: randomUUID(), method: 'POST', lines: [], exceptions: [] };
    for (let n = 0; n < 5_000; n += 1) calls.record({ ...call, id: uuidV7(), outcome: 'ok' });
    for (let n = 0; n < 10; n += 1) calls.record({ ...call, id: uuidV7(), outcome: 'exception' });
    clock.mockRestore();
    const of = (wanted: string) => written.filter(({ outcome }) => outcome === wanted).length;
    expect([of('ok'), of('exception')]).toEqual([1_000, 10]);
  });

  verifies(
    'log:bounded',
    'samples the calls beyond a thousand, and each row says how many were left out before it',
    () => {
      const written: ConnectionCall[] = [];
      const calls = on(written);
      const start = 1_800_000_000_000;
      const clock = jest.spyOn(Date, 'now');
      const call = { connectionId: randomUUID(), method: 'POST', lines: [], exceptions: [] };
      const send = (ms: number, outcome: 'ok' | 'exception' = 'ok') => {
        clock.mockReturnValue(start + ms);
        calls.record({ ...call, id: uuidV7(), outcome });
      };
      for (let ms = 0; ms < 2_000; ms += 1) send(ms);
      send(2_000, 'exception');
      for (let ms = 2_001; ms < 60_000; ms += 1) send(ms);
      send(60_000);
      clock.mockRestore();
      const left = written.flatMap(({ leftOut }) => leftOut ?? []);
      expect(written).toHaveLength(1_000 + 590 + 2);
      expect(left.slice(0, 3)).toEqual([99, 99, 99]);
      expect(written.length + left.reduce((sum, count) => sum + count, 0)).toBe(60_001);
    },
  );
});
