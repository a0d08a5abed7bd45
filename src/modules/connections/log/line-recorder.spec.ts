import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { Repository } from 'typeorm';
import { verifies } from '../../../../test/support/verifies.js';
import type { ConnectionLine } from './connection-line.entity.js';
import { LineRecorder } from './line-recorder.js';

beforeAll(() => Logger.overrideLogger(false));

describe('lines of connections', () => {
  verifies('log:bounded', 'take no more than 16 Mi characters while the database is away', async () => {
    let isAway = true;
    const written: string[] = [];
    const table = {
      query: (_: string, values: string[][]) => {
        if (isAway) return Promise.reject(new Error('the database is away'));
        written.push(...values[5]);
        return Promise.resolve([]);
      },
    };
    const recorder = new LineRecorder(table as unknown as Repository<ConnectionLine>);
    const place = { connectionId: randomUUID(), invocationId: randomUUID(), at: new Date() };
    const record = (message: string) => recorder.record({ ...place, level: 'log', name: null, message });
    for (let n = 0; n < 1_500; n += 1) record('x'.repeat(10_000));
    await recorder.settle();
    for (let n = 0; n < 1_500; n += 1) record('y'.repeat(10_000));
    isAway = false;
    await recorder.settle();
    expect(written).toHaveLength(2_021);
    expect(written.slice(0, 1_500).every((message) => message.startsWith('x'))).toBe(true);
    await recorder.onApplicationShutdown();
  });
});
