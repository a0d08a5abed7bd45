import { describe, expect } from '@jest/globals';
import { randomBytes, randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { uuidV7 } from '../../../src/platform/database/uuid-v7.js';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { createServer } from '../../support/factories.js';
import { logWith, readLog, record, type ShownInvocation } from '../../support/logs/invocations.js';
import { answerOf, exportBytes, exportJson, type SentLog } from '../../support/logs/otlp.js';
import { pathOf, serverIdOf } from '../../support/database/server-rows.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
const stranger = testAccount(app);

const traceId = (): string => randomBytes(16).toString('hex');
const messagesOf = ({ logs }: ShownInvocation): string[] => logs.map(({ message }) => message);

interface Told {
  status: number;
  type: string | null;
  bytes: Buffer;
}

/** Posts bytes as an exporter does. */
async function post(name: string, body: Buffer, headers: Record<string, string>, account = owner): Promise<Told> {
  const response = await fetch(`${app.url}${pathOf(name, '/otlp/v1/logs')}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${account.key}`, ...headers },
    body: new Uint8Array(body),
  });
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    bytes: Buffer.from(await response.arrayBuffer()),
  };
}

const protobuf = { 'content-type': 'application/x-protobuf' };

/** The same records in every form an exporter can choose. */
const forms: Record<string, (name: string, logs: SentLog[]) => Promise<Told>> = {
  protobuf: (name, logs) => post(name, exportBytes(logs), protobuf),
  'protobuf, gzip': (name, logs) =>
    post(name, gzipSync(exportBytes(logs)), { ...protobuf, 'content-encoding': 'gzip' }),
  json: (name, logs) =>
    post(name, Buffer.from(JSON.stringify(exportJson(logs))), { 'content-type': 'application/json' }),
  'json, gzip': (name, logs) =>
    post(name, gzipSync(JSON.stringify(exportJson(logs))), {
      'content-type': 'application/json; charset=utf-8',
      'content-encoding': 'gzip',
    }),
};

describe('records that a server elsewhere sends', () => {
  verifies('runtime-log:send', 'are in its log as they were sent, in either form of the body', async () => {
    const name = await createServer(app, owner);
    const sent = {
      request: { method: 'POST', url: '/mcp?key=secret' },
      response: { status: 502, outcome: 'responseStreamDisconnected' },
      duration: { cpuMs: 3, wallMs: 44 },
      logs: [{ level: 'warn', message: 'It rains, Bearer abcdefghijklmnop' }, { message: `nul \0 and ${'\ud800'}` }],
      exceptions: [{ name: 'RangeError', message: 'too far' }],
      rpcMethod: 'tools/call',
      tool: 'forecast',
    };
    const first = await app.as(owner).post(pathOf(name, '/logs'), [sent, {}]);
    expect([first.status, first.body]).toEqual([202, { accepted: 2, ids: [expect.any(String), expect.any(String)] }]);
    const second = await app.as(owner).post(pathOf(name, '/logs'), { invocations: [sent] });
    expect(second.body).toMatchObject({ accepted: 1 });
    const { invocations } = await logWith(app, owner, name, 3);
    const ids = [...(first.body.ids as string[]), ...(second.body.ids as string[])];
    expect(invocations.map(({ id }) => id).sort()).toEqual(ids.sort());
    expect(invocations.find(({ id }) => id === second.body.ids[0])).toMatchObject({
      request: { method: 'POST', url: '/mcp' },
      response: sent.response,
      duration: sent.duration,
      logs: [
        { level: 'warn', message: 'It rains, Bearer [redacted]' },
        { level: 'info', message: 'nul \ufffd and \ufffd' },
      ],
      exceptions: [{ name: 'RangeError', message: 'too far' }],
      rpcMethod: 'tools/call',
      tool: 'forecast',
      releaseId: null,
    });
    expect((await readLog(app, owner, name, '?search=RAINS&outcome=responseStreamDisconnected')).total).toBe(2);
    expect((await readLog(app, owner, name, '?outcome=unknown')).total).toBe(1);
  });

  verifies('runtime-log:send', 'are rejected with the path of the problem, all of them', async () => {
    const name = await createServer(app, owner);
    const path = pathOf(name, '/logs');
    const faulty: [unknown, RegExp][] = [
      [
        [{}, {}, { response: { status: 'ok' } }],
        /^invocations\[2\]\.response\.status must be a number from 100 to 599$/,
      ],
      [{ invocations: [{ logs: [{ level: 'info' }] }] }, /^invocations\[0\]\.logs\[0\]\.message is missing$/],
      [[{ timestamp: '2020-01-01 00:00:00' }], /^invocations\[0\]\.timestamp must not be older than 24 hours$/],
      [{ records: [] }, /^invocations must be an array of at most 1000 objects$/],
      [Array(1_001).fill({}), /^invocations must be an array of at most 1000 objects$/],
    ];
    for (const [body, text] of faulty) {
      const answer = await app.as(owner).post(path, body as object);
      expect([answer.status, answer.body]).toEqual([400, { error: expect.stringMatching(text) }]);
    }
    expect((await app.as(owner).post(path)).status).toBe(400);
    expect((await app.as(owner).post(path, [{ logs: [{ message: 'x'.repeat(1_100_000) }] }])).status).toBe(413);
    expect((await app.as(owner).post(path, Array(1_000).fill({}))).status).toBe(202);
    expect((await logWith(app, owner, name, 1_000)).total).toBe(1_000);
  });

  verifies('runtime-log:send', 'change nothing when they are sent again, immediately or later', async () => {
    const name = await createServer(app, owner);
    const timestamp = new Date().toISOString();
    const at = Date.parse(timestamp);
    const entry = { timestamp, message: 'twice' };
    const body = [
      { id: uuidV7(at), timestamp, logs: [entry, entry], exceptions: [{ timestamp, message: 'thrown' }] },
      { id: randomUUID(), timestamp, logs: [entry] },
    ];
    const answers = [];
    for (let times = 0; times < 2; times += 1) answers.push(await app.as(owner).post(pathOf(name, '/logs'), body));
    const before = await logWith(app, owner, name, 2);
    const rows = async () =>
      app.database.query<{ jobs: number }[]>(
        'SELECT max(cardinality(jobs)) AS jobs FROM invocations WHERE server_id = $1',
        [await serverIdOf(app, name)],
      );
    const [{ jobs }] = await rows();
    answers.push(await app.as(owner).post(pathOf(name, '/logs'), body));
    await until(async () => (await rows())[0].jobs > jobs, 'it was written again');
    expect(await readLog(app, owner, name)).toEqual(before);
    expect(before.invocations.map(messagesOf).sort()).toEqual([['twice'], ['twice', 'twice']]);
    expect(new Set(answers.map((answer) => JSON.stringify(answer.body))).size).toBe(1);
    expect(answers[0].body.ids[0]).toBe(body[0].id);
  });

  verifies('runtime-log:own', 'are taken for one’s own servers only', async () => {
    const name = await createServer(app, owner);
    const bytes = exportBytes([{ body: 'x' }]);
    for (const account of [stranger, app.operator]) {
      const sent = await app.as(account).post(pathOf(name, '/logs'), [{}]);
      expect([sent.status, sent.body]).toEqual([404, expect.objectContaining({ error: 'Server not found' })]);
      const exported = await post(name, bytes, protobuf, account);
      expect([exported.status, JSON.parse(exported.bytes.toString())]).toEqual([
        404,
        expect.objectContaining({ error: 'Server not found' }),
      ]);
    }
    const none = `${name.split('/')[0]}/${uniqueName('none')}`;
    expect((await app.as(owner).post(pathOf(none, '/logs'), [{}])).status).toBe(404);
    expect((await post(none, bytes, protobuf)).status).toBe(404);
    expect((await app.as().post(pathOf(name, '/logs'), [{}])).status).toBe(401);
    // Nobody adds to somebody else's invocation by its id either.
    const mine = await createServer(app, stranger);
    const id = record(app, await serverIdOf(app, name), { messages: ['mine'] });
    const [before] = (await logWith(app, owner, name, 1)).invocations;
    await app.as(stranger).post(pathOf(mine, '/logs'), [{ id, logs: [{ message: 'foreign' }] }, {}]);
    await logWith(app, stranger, mine, 1);
    expect((await readLog(app, owner, name)).invocations).toEqual([before]);
  });
});

describe('OTLP log records', () => {
  verifies('runtime-log:otlp', 'are taken in every form, answered in it, and shown alike', async () => {
    const name = await createServer(app, owner);
    for (const [form, send] of Object.entries(forms)) {
      const trace = traceId();
      const told = await send(name, [
        { severity: 9, body: `rain by ${form}`, traceId: trace, attributes: { 'mcp.method.name': 'tools/call' } },
        {
          severity: 17,
          traceId: trace,
          body: 'it failed',
          attributes: {
            'exception.type': 'RangeError',
            'exception.message': 'too far',
            'gen_ai.tool.name': 'forecast',
            'http.response.status_code': 200,
            'url.full': 'https://example.com/mcp?key=secret',
          },
        },
      ]);
      const isJson = form.startsWith('json');
      expect([form, told.status]).toEqual([form, 200]);
      expect(told.type).toMatch(isJson ? /^application\/json/ : /^application\/x-protobuf$/);
      expect(isJson ? JSON.parse(told.bytes.toString()) : answerOf(told.bytes)).toEqual({});
      const [shown] = (
        await logWith(app, owner, name, 1, `?search=${encodeURIComponent(`rain by ${form}`)}&to=9999-01-01`)
      ).invocations;
      expect(shown).toMatchObject({
        request: { method: 'POST', url: 'https://example.com/mcp' },
        response: { status: 200, outcome: 'exception' },
        logs: [
          { level: 'info', message: `rain by ${form}` },
          { level: 'error', message: 'it failed' },
        ],
        exceptions: [{ name: 'RangeError', message: 'too far' }],
        rpcMethod: 'tools/call',
        tool: 'forecast',
      });
    }
    expect((await readLog(app, owner, name)).total).toBe(4);
  });

  verifies(
    'runtime-log:otlp',
    'become one invocation for each trace, across several exports and repeated ones',
    async () => {
      const name = await createServer(app, owner);
      const [trace, at] = [traceId(), Date.now() - 5_000];
      const first = [{ at: new Date(at), body: 'one', traceId: trace, attributes: { 'gen_ai.tool.name': 'forecast' } }];
      const later = ['two', 'three', 'four', 'five', 'six', 'seven', 'seven'];
      const second = later.map((body) => ({ at: new Date(at + 2_000), body, traceId: trace }));
      await forms.protobuf(name, first);
      await logWith(app, owner, name, 1, '?search=one');
      await forms.json(name, second);
      await logWith(app, owner, name, 1, '?search=two');
      await forms.protobuf(name, first);
      await forms.protobuf(name, second);
      await forms.json(name, [{ body: 'another', traceId: traceId() }]);
      const waiting = () => app.database.query<unknown[]>('SELECT FROM log_batches');
      await until(async () => (await waiting()).length === 0, 'all are written');
      const { invocations } = await readLog(app, owner, name, '?tool=forecast');
      expect(invocations.map(messagesOf)).toEqual([['one', ...later]]);
      expect((await readLog(app, owner, name)).total).toBe(2);
    },
  );

  verifies('runtime-log:otlp', 'are counted in the response when they are rejected', async () => {
    const name = await createServer(app, owner);
    const old = { at: new Date(Date.now() - 2 * 86_400_000), body: 'old' };
    const partialSuccess = {
      rejectedLogRecords: 2,
      errorMessage: 'The time of a record must not be older than 24 hours',
    };
    const told = await forms.protobuf(name, [old, { body: 'new' }, old]);
    expect([told.status, answerOf(told.bytes)]).toEqual([200, { partialSuccess }]);
    const json = await forms.json(name, [old, old]);
    expect([json.status, JSON.parse(json.bytes.toString())]).toEqual([200, { partialSuccess }]);
    const { invocations } = await logWith(app, owner, name, 1);
    expect(invocations.map(messagesOf)).toEqual([['new']]);
  });

  verifies('runtime-log:otlp', 'are rejected in another form, or if too large when unpacked', async () => {
    const name = await createServer(app, owner);
    const gzip = { 'content-encoding': 'gzip' };
    const json = { 'content-type': 'application/json' };
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    expect(bomb.length).toBeLessThan(100_000);
    const cases: [Buffer, Record<string, string>, number][] = [
      [Buffer.from('hello'), protobuf, 400],
      [Buffer.from('{"resourceLogs": 7}'), json, 400],
      [Buffer.from('{"resourceLogs": '), json, 400],
      [Buffer.from('x'), { 'content-type': 'text/plain' }, 400],
      [Buffer.from('no gzip'), { ...protobuf, ...gzip }, 400],
      [exportBytes([{ body: 'x' }]), { ...protobuf, 'content-encoding': 'zstd' }, 400],
      [bomb, { ...protobuf, ...gzip }, 413],
      [bomb, { ...json, ...gzip }, 413],
      [Buffer.alloc(1_048_577), protobuf, 413],
    ];
    for (const [body, headers, wanted] of cases) {
      const { status, bytes } = await post(name, body, headers);
      const what = [JSON.stringify(headers), body.length];
      expect([...what, status, Object.keys(JSON.parse(bytes.toString()) as object)]).toEqual([
        ...what,
        wanted,
        ['error'],
      ]);
    }
    // An exporter without anything to say is not wrong.
    expect((await post(name, Buffer.alloc(0), protobuf)).status).toBe(200);
    expect((await readLog(app, owner, name)).total).toBe(0);
  });
});
