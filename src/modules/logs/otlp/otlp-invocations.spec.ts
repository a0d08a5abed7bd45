import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { timeOfUuidV7 } from '../../../platform/database/uuid-v7.js';
import { groupRecords, TraceStartCache, type GroupedRecords } from './otlp-invocations.js';
import type { OtlpRecord } from './otlp-records.js';

const serverId = randomUUID();
const now = new Date('2026-11-20T10:15:00.000Z');
const later = (ms: number) => new Date(now.getTime() + ms);
const traceA = '5b8efff798038103d269b633813fc60c';

const record = ({
  attributes = {},
  ...given
}: { attributes?: Record<string, string> } & Partial<Omit<OtlpRecord, 'attributes'>>): OtlpRecord => ({
  at: now,
  level: 'info',
  message: 'x',
  traceId: null,
  ...given,
  attributes: new Map(Object.entries(attributes)),
});

const group = (records: OtlpRecord[], beginnings = new TraceStartCache(), server = serverId): GroupedRecords =>
  groupRecords(server, records, now, beginnings);

describe('invocations made from OTLP records', () => {
  it('have one id per trace and server, in any number of exports', () => {
    const beginnings = new TraceStartCache();
    const idOf = (at: Date, known = beginnings, server = serverId) =>
      group([record({ traceId: traceA, at })], known, server).invocations[0].id;
    const id = idOf(now);
    expect(timeOfUuidV7(id)).toEqual(now);
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(idOf(later(90))).toBe(id);
    expect(idOf(now, new TraceStartCache())).toBe(id);
    expect(idOf(now, beginnings, randomUUID())).not.toBe(id);
  });

  it('exclude records that are too old, in the future, or too many, and count them', () => {
    const day = 86_400_000;
    expect(group([record({ at: later(-day - 1) }), record({ at: later(day) }), record({})])).toMatchObject({
      rejected: 2,
      reason: 'The time of a record must not be older than 24 hours',
      invocations: [expect.anything()],
    });
    const many = Array.from({ length: 1_002 }, () => record({ traceId: traceA }));
    expect(group(many)).toMatchObject({ rejected: 2, reason: 'A trace may have 1000 records in one request' });
    const traces = Array.from({ length: 1_003 }, (_, at) => record({ traceId: String(at + 1).padStart(32, '0') }));
    const grouped = group(traces);
    expect(grouped).toMatchObject({ rejected: 3, reason: 'A request may hold 1000 traces' });
    expect(grouped.invocations).toHaveLength(1_000);
  });
});
