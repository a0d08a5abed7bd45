import { mock } from 'node:test';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Logger as Pino } from 'pino';
import { PinoLoggerService } from './logger.js';

function recorder() {
  const records: Record<string, unknown>[] = [];
  const add = (record: object) => records.push({ ...record });
  const pino = { isLevelEnabled: () => true, warn: add, info: add } as unknown as Pino;
  return { records, logger: new PinoLoggerService(pino) };
}

describe('PinoLoggerService', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  it('logs a warning that repeats once a minute, with the number of repeats', () => {
    const { logger, records } = recorder();
    const details = ['', 'closed', 'refused'];
    for (let n = 1; n <= 5; n += 1)
      logger.warn({ msg: `${n} rows wait`, err: new Error(`${n}`), detail: details[n % 3] }, 'store');
    logger.warn({ msg: '7 rows wait' }, 'another');
    expect(records.map(({ msg, context }) => [msg, context])).toEqual([
      ['1 rows wait', 'store'],
      ['7 rows wait', 'another'],
    ]);
    mock.timers.tick(60_000);
    expect(records.slice(2)).toMatchObject([{ msg: '1 rows wait', context: 'store', repeats: 4 }]);
    mock.timers.tick(60_000);
    logger.warn({ msg: '9 rows wait' }, 'store');
    expect(records).toHaveLength(4);
    expect(records[3]).not.toHaveProperty('repeats');
  });

  it('logs warnings about different things separately', () => {
    const { logger, records } = recorder();
    for (const connection of ['acme/a', 'acme/b']) logger.warn({ msg: 'a token has ended', connection }, 'oauth');
    expect(records).toHaveLength(2);
  });
});
