import { describe, expect } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { uuidV7 } from '../../../src/platform/database/uuid-v7.js';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { createServer } from '../../support/factories.js';
import { logWith, readLog, record, type ShownInvocation } from '../../support/logs/invocations.js';
import { pathOf, serverIdOf } from '../../support/database/server-rows.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
const stranger = testAccount(app);

const messagesOf = ({ logs }: ShownInvocation): string[] => logs.map(({ message }) => message);

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
    for (const account of [stranger, app.operator]) {
      const sent = await app.as(account).post(pathOf(name, '/logs'), [{}]);
      expect([sent.status, sent.body]).toEqual([404, expect.objectContaining({ error: 'Server not found' })]);
    }
    const none = `${name.split('/')[0]}/${uniqueName('none')}`;
    expect((await app.as(owner).post(pathOf(none, '/logs'), [{}])).status).toBe(404);
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
