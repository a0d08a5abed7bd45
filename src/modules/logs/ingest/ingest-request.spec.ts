import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { timeOfUuidV7, uuidV7 } from '../../../platform/database/uuid-v7.js';
import { readIngestRequest } from './ingest-request.js';

const serverId = randomUUID();
const now = new Date('2026-11-20T10:15:00.000Z');
const timestamp = '2026-11-20 10:14:59';
const read = (body: unknown) => readIngestRequest(serverId, body, now);
const one = (record: object) => read([record])[0];

describe('ingested invocations', () => {
  it('may omit every optional member', () => {
    expect(one({})).toMatchObject({
      at: now.getTime(),
      method: 'POST',
      url: '/',
      status: 200,
      outcome: 'unknown',
      lines: [],
    });
    expect(one({ request: null, logs: null })).toMatchObject({ method: 'POST', lines: [] });
    expect(one({ logs: [{ message: 'x' }] }).lines).toEqual([{ at: now.getTime(), level: 'info', message: 'x' }]);
    expect(one({ exceptions: [{}] })).toMatchObject({ status: 500, outcome: 'exception' });
    expect(one({ response: { status: 200 } }).outcome).toBe('ok');
    expect(one({ response: { status: 503 } }).outcome).toBe('exception');
  });

  it('have a stable id: version 7 stays, any other is mapped to one', () => {
    const id = uuidV7(now.getTime());
    expect(one({ id: id.toUpperCase() }).id).toBe(id);
    const given = randomUUID();
    const derived = one({ id: given, timestamp }).id;
    expect(timeOfUuidV7(derived)).toEqual(new Date('2026-11-20T10:14:59Z'));
    expect(one({ id: given, timestamp }).id).toBe(derived);
    expect(readIngestRequest(randomUUID(), [{ id: given, timestamp }], now)[0].id).not.toBe(derived);
    // A search by time would not find it.
    const old = uuidV7(now.getTime() - 120_000);
    expect(one({ id: old, timestamp }).id).not.toBe(old);
    expect(one({ id: old })).toMatchObject({ id: old, at: now.getTime() - 120_000 });
    expect(() => one({ id: uuidV7(0) })).toThrow('invocations[0].timestamp must not be older than 24 hours');
    expect(() => one({ id: given })).toThrow(/^invocations\[0\]\.timestamp is missing: only an id of version 7/);
  });

  it.each<[unknown, string]>([
    [7, 'invocations must be an array of at most 1000 objects'],
    [[{}, 7], 'invocations[1] must be an object'],
    [[{}, { id: 'x' }], 'invocations[1].id must be a UUID'],
    [[{ timestamp: 'yesterday' }], 'invocations[0].timestamp must be a time such as 2026-11-20T10:15:00Z'],
    [[{ timestamp: '2026-11-21' }], 'invocations[0].timestamp must not be ahead of the time here'],
    [[{ request: 'GET /' }], 'invocations[0].request must be an object'],
    [[{ request: { method: 7 } }], 'invocations[0].request.method must be a text'],
    [[{ response: { status: 99 } }], 'invocations[0].response.status must be a number from 100 to 599'],
    [[{ duration: { wallMs: -1 } }], 'invocations[0].duration.wallMs must be a number from 0 to 86400000'],
    [[{ logs: {} }], 'invocations[0].logs must be an array of at most 1000 objects'],
    [[{ logs: [{ message: 'x' }, {}] }], 'invocations[0].logs[1].message is missing'],
  ])('%j are refused: %s', (body, message) => {
    expect(() => read(body)).toThrow(message);
  });

  it('are refused with the list of outcomes if theirs is unknown', () => {
    expect(() => one({ response: { outcome: 'fine' } })).toThrow(
      /^invocations\[0\]\.response\.outcome must be one of ok, toolError, rpcError, exception, .*unknown$/,
    );
  });
});
