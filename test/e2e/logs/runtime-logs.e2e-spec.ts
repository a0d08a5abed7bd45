import { describe, expect } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { InvocationStore } from '../../../src/modules/logs/store/invocation-store.js';
import { DAY_MS, dayOf, HOUR_MS, leastIdAt, partitionOf } from '../../../src/modules/logs/store/invocation-days.js';
import type { InvocationQuery } from '../../../src/modules/logs/search/invocation-query.js';
import { InvocationSearchRepository } from '../../../src/modules/logs/search/invocation-search.repository.js';
import { PartitionsRepository } from '../../../src/modules/logs/store/partitions.repository.js';
import { uuidV7 } from '../../../src/platform/database/uuid-v7.js';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { createServer } from '../../support/factories.js';
import { append, invocationOf, logWith, readLog, record, type ShownLog } from '../../support/logs/invocations.js';
import { pathOf, serverIdOf } from '../../support/database/server-rows.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const TIMESTAMP = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const app = testApp();
const owner = testAccount(app);
const stranger = testAccount(app);

/** A server of the owner's without a log: its name and id. */
async function server(): Promise<{ name: string; id: string }> {
  const name = await createServer(app, owner);
  return { name, id: await serverIdOf(app, name) };
}

const messagesOf = ({ invocations }: ShownLog): string[] => invocations.map(({ logs }) => logs[0]?.message ?? '');
const timeText = (at: number): string => new Date(at).toISOString().slice(0, 19).replace('T', ' ');

/** Counts milliseconds up from a moment ago. */
function clock(): () => number {
  let time = Date.now() - 1_000;
  return () => (time += 1);
}

/** Writes invocations past the queue, each a millisecond after the other unless told when. */
async function write(serverId: string, messages: (string | null)[], at = clock()): Promise<void> {
  const rows = messages.map((message) => {
    const time = at();
    const lines = message === null ? [] : [{ at: time, level: 'info', message }];
    const made = invocationOf(serverId, { id: uuidV7(time), at: time });
    return { ...made, lines, exceptions: [], payload: null, leftOut: 0 };
  });
  for (let first = 0; first < rows.length; first += 1_000) {
    await app.get(InvocationStore).store(rows.slice(first, first + 1_000), first + 1);
  }
}

/** Makes the index of search over a part of a day, as the keeper does. */
async function makeIndex(from: number, to: number): Promise<void> {
  const day = dayOf(from);
  await app.database.query(
    `CREATE INDEX ${partitionOf(day)}_search_${from}_${to} ON ${partitionOf(day)}
       USING gin (server_id, search_text gin_trgm_ops) WHERE id >= '${leastIdAt(from)}' AND id < '${leastIdAt(to)}'`,
  );
}

describe('the log of a server', () => {
  verifies(
    [
      'logs:list:shape',
      'invocation:field:id',
      'invocation:field:timestamp',
      'invocation:field:request',
      'invocation:field:response',
      'invocation:field:duration',
      'invocation:field:logs',
      'invocation:field:exceptions',
    ],
    'shows each invocation in the specified form, newest first',
    async () => {
      const { name, id } = await server();
      expect(await readLog(app, owner, name)).toEqual({ invocations: [], total: 0, totalIsExact: true, leftOut: 0 });
      const at = Date.now() - 1_500;
      const thrown = { at: at + 10, name: 'RangeError', message: 'too far' };
      const releaseId = randomUUID();
      const first = record(app, id, {
        at,
        releaseId,
        messages: ['one'],
        exceptions: [thrown],
        outcome: 'exception',
        status: 500,
        cpuMs: 1.4,
        wallMs: 31.6,
        payload: { arguments: '{"city":"Ulm"}', result: null },
      });
      const second = record(app, id, { rpcMethod: null, toolName: null });
      const log = await logWith(app, owner, name, 2);
      expect(log).toEqual({
        invocations: [
          {
            id: second,
            timestamp: expect.stringMatching(TIMESTAMP),
            at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.+\.\d{3}Z$/),
            request: { method: 'POST', url: '/run/acme--weather' },
            response: { status: 200, outcome: 'ok' },
            duration: { cpuMs: 2, wallMs: 12 },
            logs: [],
            exceptions: [],
            rpcMethod: null,
            tool: null,
            caller: null,
            releaseId: null,
            leftOut: 0,
          },
          {
            id: first,
            timestamp: timeText(at),
            at: new Date(at).toISOString(),
            request: { method: 'POST', url: '/run/acme--weather' },
            response: { status: 500, outcome: 'exception' },
            duration: { cpuMs: 1, wallMs: 32 },
            logs: [{ timestamp: timeText(at), at: new Date(at).toISOString(), level: 'info', message: 'one' }],
            exceptions: [
              {
                timestamp: timeText(thrown.at),
                at: new Date(thrown.at).toISOString(),
                name: 'RangeError',
                message: 'too far',
              },
            ],
            rpcMethod: 'tools/call',
            tool: 'forecast',
            caller: null,
            releaseId,
            leftOut: 0,
            payload: { arguments: '{"city":"Ulm"}', result: null },
          },
        ],
        total: 2,
        totalIsExact: true,
        leftOut: 0,
      });
      for (const { id: shown } of log.invocations) expect(shown).toMatch(UUID);
    },
  );

  verifies(
    ['logs:list:grouped', 'log-ingestion:merge'],
    'shows all lines and exceptions of an invocation in it, whichever part came first',
    async () => {
      const { name, id: serverId } = await server();
      const at = Date.now();
      const [early, late] = [uuidV7(at - 2), uuidV7(at - 1)];
      const line = (after: number, message: string) => ({ at: at + after, level: 'warn', message });
      append(app, { id: early, serverId, lines: [line(1, 'before its record')] });
      // Nothing but this is known yet, as of a request whose process was killed.
      const [alone] = (await logWith(app, owner, name, 1)).invocations;
      expect(alone).toMatchObject({
        id: early,
        request: { method: '', url: '' },
        response: { status: 0, outcome: 'unknown' },
        logs: [{ level: 'warn', message: 'before its record' }],
      });
      record(app, serverId, { id: early, at, messages: ['with it'] });
      record(app, serverId, { id: late, messages: ['other'] });
      append(app, {
        id: early,
        serverId,
        lines: [line(2, 'after it')],
        exceptions: [{ at, name: 'Error', message: 'late' }],
        outcome: 'exceededCpu',
      });
      const whole = await until(async () => {
        const { invocations } = await readLog(app, owner, name);
        return invocations.find(({ id, exceptions }) => id === early && exceptions.length === 1);
      }, 'all of it is there');
      expect(whole.logs.map(({ message }) => message)).toEqual(['with it', 'before its record', 'after it']);
      expect(whole.response).toEqual({ status: 200, outcome: 'exceededCpu' });
      expect((await readLog(app, owner, name)).total).toBe(2);
    },
  );

  verifies(['logs:list:limit', 'logs:list:total'], 'shows 20 of them by default, and counts all matches', async () => {
    const { name, id } = await server();
    await write(
      id,
      Array.from({ length: 130 }, (_, at) => `line ${at}`),
    );
    for (const [query, shown] of [
      ['', 20],
      ['?limit=1', 1],
      ['?limit=100', 100],
    ] as const) {
      const log = await readLog(app, owner, name, query);
      expect([log.invocations.length, log.total, log.totalIsExact]).toEqual([shown, 130, true]);
    }
    const ids = (await readLog(app, owner, name, '?limit=100')).invocations.map((one) => one.id);
    expect(ids).toEqual([...ids].sort().reverse());
    for (const limit of ['0', '101', '-1', '1.5', 'many', '']) {
      const { status, body } = await app.as(owner).get(`${pathOf(name, '/logs')}?limit=${limit}`);
      expect([limit, status, Object.keys(body as object)]).toEqual([limit, 400, ['error']]);
    }
  });

  verifies(['logs:list:from', 'logs:list:to'], 'shows what came from a moment on and before another', async () => {
    const { name, id } = await server();
    const base = Math.floor(Date.now() / 1_000) * 1_000 - 90_000;
    const times = [0, 1_000, 2_000, 3_000].map((after) => base + after);
    for (const at of times) record(app, id, { at, messages: [timeText(at)] });
    await logWith(app, owner, name, 4);
    const [first, second, third, fourth] = times.map((at) => new Date(at).toISOString());
    const forms = (iso: string) => [iso, timeText(Date.parse(iso)), iso.replace('Z', '+00:00')].map(encodeURIComponent);
    for (const form of forms(second)) {
      expect(messagesOf(await readLog(app, owner, name, `?from=${form}`))).toHaveLength(3);
      expect(messagesOf(await readLog(app, owner, name, `?to=${form}`))).toEqual([timeText(times[0])]);
      const both = await readLog(app, owner, name, `?from=${form}&to=${encodeURIComponent(fourth)}`);
      expect(messagesOf(both)).toEqual([times[2], times[1]].map(timeText));
      expect(both.total).toBe(2);
    }
    for (const query of [
      `?from=${third}&to=${second}`,
      `?to=${first}`,
      '?to=1960-01-01',
      '?from=9999-12-31',
      `?from=${new Date(base + HOUR_MS).toISOString()}`,
    ]) {
      expect([query, await readLog(app, owner, name, query)]).toEqual([
        query,
        { invocations: [], total: 0, totalIsExact: true, leftOut: 0 },
      ]);
    }
    expect((await readLog(app, owner, name, '?from=0001-01-01&to=9999-12-31')).total).toBe(4);
  });

  verifies('logs:list:time-invalid', 'rejects an invalid time', async () => {
    const { name } = await server();
    for (const query of ['from=yesterday', 'to=2026-13-01', 'from=', 'to=1', 'from=a&from=b']) {
      const { status, body } = await app.as(owner).get(`${pathOf(name, '/logs')}?${query}`);
      expect([query, status, body]).toEqual([
        query,
        400,
        { error: expect.stringMatching(/^(from|to) must be a time/) },
      ]);
    }
  });

  verifies(
    ['logs:list:search', 'runtime-log:search'],
    'finds a text in messages and exceptions, in any case, every character as it is',
    async () => {
      const { name, id } = await server();
      const texts = [
        '100% sure',
        'a_b',
        'C:\\temp',
        'Größe ÄÖÜ',
        `it's "quoted"`,
        'tab\there',
        '日本語',
        'plain',
        '😀 smile',
      ];
      for (const message of texts) record(app, id, { messages: ['noise', message] });
      record(app, id, { exceptions: [{ at: Date.now(), name: 'TypeError', message: 'cannot read x' }] });
      await logWith(app, owner, name, texts.length + 1);
      const found = async (word: string) => {
        const log = await readLog(app, owner, name, `?search=${encodeURIComponent(word)}`);
        expect(log.total).toBe(log.invocations.length);
        return log.invocations.map(({ logs, exceptions }) => logs[1]?.message ?? exceptions[0]?.message);
      };
      for (const text of texts) expect([text, await found(text)]).toEqual([text, [text]]);
      expect(await found('%')).toEqual(['100% sure']);
      expect(await found('_')).toEqual(['a_b']);
      expect(await found('\\')).toEqual(['C:\\temp']);
      expect(await found('0%s')).toEqual([]);
      expect(await found('größe äöü')).toEqual(['Größe ÄÖÜ']);
      expect(await found('PLAIN')).toEqual(['plain']);
      expect(await found('typeERROR')).toEqual(['cannot read x']);
      expect(await found('CANNOT READ')).toEqual(['cannot read x']);
      expect(await found(`' OR 1=1 --`)).toEqual([]);
      expect(await found('noise')).toHaveLength(texts.length);
      for (const word of ['x'.repeat(1_001), '%00']) {
        const raw = word === '%00' ? word : encodeURIComponent(word);
        const { status, body } = await app.as(owner).get(`${pathOf(name, '/logs')}?search=${raw}`);
        expect([status, Object.keys(body as object)]).toEqual([400, ['error']]);
      }
    },
  );

  verifies('runtime-log:search', 'shows only what matches every filter, and pages by the last id', async () => {
    const { name, id } = await server();
    record(app, id, { messages: ['a'], outcome: 'exceededCpu', wallMs: 1_000 });
    record(app, id, { messages: ['b'], toolName: 'other', wallMs: 500 });
    record(app, id, { messages: ['c'], rpcMethod: 'tools/list', toolName: null, wallMs: 20.4 });
    await logWith(app, owner, name, 3);
    const shown = async (query: string) => messagesOf(await readLog(app, owner, name, query)).sort();
    expect(await shown('?outcome=exceededCpu')).toEqual(['a']);
    expect(await shown('?outcome=canceled')).toEqual([]);
    expect(await shown('?tool=other')).toEqual(['b']);
    expect(await shown('?method=tools%2Fcall')).toEqual(['a', 'b']);
    expect(await shown('?minDurationMs=500')).toEqual(['a', 'b']);
    expect(await shown('?minDurationMs=0')).toEqual(['a', 'b', 'c']);
    expect(await shown('?method=tools%2Fcall&tool=forecast&search=A&minDurationMs=999')).toEqual(['a']);
    const paged: string[] = [];
    let before = '';
    for (;;) {
      const { invocations } = await readLog(app, owner, name, `?limit=2${before}`);
      if (invocations.length === 0) break;
      paged.push(...invocations.map((one) => one.id));
      before = `&before=${paged.at(-1)}`;
    }
    expect(paged).toEqual((await readLog(app, owner, name)).invocations.map((one) => one.id));
    for (const query of ['outcome=fine', 'minDurationMs=-1', 'before=x', `tool=${'x'.repeat(201)}`]) {
      expect([query, (await app.as(owner).get(`${pathOf(name, '/logs')}?${query}`)).status]).toEqual([query, 400]);
    }
  });

  verifies(
    'runtime-log:search',
    'counts whole hours while invocations are stored, each once whatever comes of it later',
    async () => {
      const { name, id } = await server();
      const start = Math.floor((Date.now() - 5 * HOUR_MS) / HOUR_MS) * HOUR_MS;
      await Promise.all([start, Date.now()].map((time) => app.get(PartitionsRepository).make(dayOf(time))));
      const rows = Array.from({ length: 240 }, (_, minute) => {
        const time = start + minute * 60_000;
        return {
          ...invocationOf(id, { id: uuidV7(time), at: time }),
          lines: [],
          exceptions: [],
          payload: null,
          leftOut: 0,
        };
      });
      // A job that runs again, a later part of each invocation, and two jobs at once.
      await app.get(InvocationStore).store(rows, 1);
      await app.get(InvocationStore).store(rows, 1);
      await Promise.all([2, 3].map((job) => app.get(InvocationStore).store(rows, job)));
      const stored = await app.database.query(
        'SELECT hour, invocations FROM invocation_hours WHERE server_id = $1 ORDER BY 1',
        [id],
      );
      expect(stored).toEqual([0, 1, 2, 3].map((hour) => ({ hour: start / HOUR_MS + hour, invocations: 60 })));
      const totalOf = async (parameters: string) => (await readLog(app, owner, name, `?limit=1${parameters}`)).total;
      const timeOf = (minute: number) => new Date(start + minute * 60_000).toISOString();
      for (const [from, to] of [
        [0, 240],
        [60, 180],
        [30, 210],
        [59, 181],
        [61, 179],
        [10, 20],
        [100, 140],
        [0, 61],
      ]) {
        const total = await totalOf(`&from=${timeOf(from)}&to=${timeOf(to)}`);
        expect([from, to, total]).toEqual([from, to, to - from]);
      }
      // The counts are read: rows are not counted again, but at the ends of a range and for other filters.
      await app.database.query('UPDATE invocation_hours SET invocations = 5000060 WHERE server_id = $1 AND hour = $2', [
        id,
        start / HOUR_MS + 1,
      ]);
      expect(await totalOf('')).toBe(5_000_240);
      expect(await totalOf(`&from=${timeOf(70)}`)).toBe(170);
      expect(await totalOf('&minDurationMs=0')).toBe(240);
    },
  );

  verifies(
    'runtime-log:search',
    'counts and shows what is older than the newest 4,000 in the order of time',
    async () => {
      const { name, id } = await server();
      const start = Date.parse(new Date(Date.now() - DAY_MS).toISOString().slice(0, 10));
      let time = start + HOUR_MS;
      const word = (at: number) => {
        if ([100, 1_800, 4_000, 5_000].includes(at)) return 'sleet';
        return at < 1_200 || [3_000, 6_000].includes(at) ? 'hail' : 'sun';
      };
      await write(
        id,
        Array.from({ length: 6_300 }, (_, at) => `${word(at)} ${at}`),
        () => (time += 4_000),
      );
      // Two parts of what is older: one with an index, one without.
      await makeIndex(start, start + HOUR_MS + 800 * 4_000);
      const partitions = app.get(PartitionsRepository);
      const search = new InvocationSearchRepository(app.database, partitions, app.env);
      const find = async (query: InvocationQuery, limit: number) => {
        const { invocations, ...totals } = await search.find(id, query, limit);
        return { ...totals, messages: invocations.map(({ lines }) => lines[0].message), last: invocations.at(-1)?.id };
      };
      const hail = await find({ search: 'HAIL' }, 5);
      expect(hail).toMatchObject({ total: 1_201, totalIsExact: true });
      expect(hail.messages).toEqual(['hail 6000', 'hail 3000', 'hail 1199', 'hail 1198', 'hail 1197']);
      const older = await find({ search: 'hail', before: hail.last }, 1);
      expect(older).toMatchObject({ total: 1_196, totalIsExact: true, messages: ['hail 1196'] });
      const sleet = [5_000, 4_000, 1_800, 100].map((at) => `sleet ${at}`);
      for (const limit of [1, 3, 9]) {
        const found = await find({ search: 'sleet' }, limit);
        expect(found).toMatchObject({ total: 4, totalIsExact: true, messages: sleet.slice(0, limit) });
      }
      expect(messagesOf(await readLog(app, owner, name, '?search=sleet&limit=1'))).toEqual(['sleet 5000']);
    },
  );
});

describe('access to a log', () => {
  verifies(
    ['logs:list:not-found', 'runtime-log:own'],
    'is for its owner only; a foreign server looks like a missing one',
    async () => {
      const { name, id } = await server();
      record(app, id, { messages: ['secret'] });
      await logWith(app, owner, name, 1);
      const [namespace] = name.split('/');
      for (const path of [
        pathOf(`${uniqueName('none')}/server`, '/logs'),
        pathOf(`${namespace}/${uniqueName('none')}`, '/logs'),
        pathOf(namespace, '/logs'),
      ]) {
        const { status, body } = await app.as(owner).get(path);
        expect([path, status, body]).toEqual([path, 404, expect.objectContaining({ error: 'Server not found' })]);
      }
      for (const account of [stranger, app.operator]) {
        const { status, body } = await app.as(account).get(pathOf(name, '/logs'));
        expect([status, body]).toEqual([404, expect.objectContaining({ error: 'Server not found' })]);
      }
      expect((await app.as().get(pathOf(name, '/logs'))).status).toBe(401);
    },
  );

  verifies('runtime-log:own', 'two servers never see each other’s lines, also of the same day and word', async () => {
    const [one, two] = [await server(), await server()];
    record(app, one.id, { messages: ['shared word one'] });
    record(app, two.id, { messages: ['shared word two'] });
    await Promise.all([logWith(app, owner, one.name, 1), logWith(app, owner, two.name, 1)]);
    expect(messagesOf(await readLog(app, owner, one.name, '?search=shared'))).toEqual(['shared word one']);
    expect(messagesOf(await readLog(app, owner, two.name, '?search=shared'))).toEqual(['shared word two']);
  });
});
