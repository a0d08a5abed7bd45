import { beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { publishExternal } from '../../support/releases/releases.js';
import { releaseServer } from '../../support/database/server-rows.js';
import { startEverything } from '../../support/upstream/everything.js';
import { startUpstream, textResult, type ToolDef, type Upstream } from '../../support/upstream/upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
let upstream: Upstream;
let namespace: string;
let server: string;
let counted = 0;

const count: ToolDef = {
  name: 'count',
  inputSchema: { type: 'object', required: ['by'], properties: { by: { type: 'integer' } } },
  call: ({ args }) => textResult(`${String(args.by)} makes ${(counted += Number(args.by))}`),
};
const secret: ToolDef = {
  name: 'secret',
  inputSchema: { type: 'object', properties: {} },
  call: () => ({ ...textResult('canary-of-the-answer'), isError: true }),
};

beforeAll(async () => {
  upstream = await startUpstream({ tools: [count, secret] });
  namespace = await createNamespace(app, owner);
  server = await createServer(app, owner, { namespace });
  const tools = [count, secret].map(({ name, inputSchema }) => ({ name, inputSchema }));
  await releaseServer(app, server, { tools, upstreamUrl: upstream.url });
});

async function real(target: object = { mcpUrl: upstream.url }): Promise<string> {
  return (await createConnection(app, owner, { ...target }, { namespace })).path;
}

async function record(path: string, enabled: boolean): Promise<void> {
  const { status, body } = await app.as(owner).put(`${path}/recording`, { enabled });
  expect([status, body.enabled]).toEqual([200, enabled]);
}

async function texts(path: string, tool: string, ...all: object[]): Promise<string[]> {
  const said: string[] = [];
  for (const given of all) {
    const { status, body } = await app.as(owner).post(`${path}/.tools/${tool}`, given);
    expect(status).toBe(200);
    said.push(body.content[0].text as string);
  }
  return said;
}

function replayOf(path: string): Record<string, unknown> {
  return { server, mock: { enabled: true, scenario: `replay:${path.split('/').at(-1)}` } };
}

const one = { by: 1 };
const two = { by: 2 };

describe('a recording', () => {
  verifies(
    ['connection:recording:on', 'connection:recording:shown'],
    'holds the calls made while it runs, and shows how many of which tool, never their contents',
    async () => {
      const path = await real({ server });
      await texts(path, 'count', one);
      const off = { enabled: false, calls: 0, bytes: 0, tools: [] };
      expect((await app.as(owner).get(`${path}/recording`)).body).toEqual(off);
      await record(path, true);
      await texts(path, 'count', one, two);
      await texts(path, 'secret', {});
      const { body } = await app.as(owner).get(`${path}/recording`);
      expect(body).toEqual({
        enabled: true,
        until: expect.stringMatching(/^\d{4}-/),
        calls: 3,
        bytes: expect.any(Number),
        tools: [
          { name: 'count', calls: 2 },
          { name: 'secret', calls: 1 },
        ],
      });
      const days = (Date.parse(body.until as string) - Date.now()) / 86_400_000;
      expect(days).toBeCloseTo(7, 1);
      await record(path, false);
      await texts(path, 'count', one);
      expect((await app.as(owner).get(`${path}/recording`)).body.calls).toBe(3);
      expect((await app.as(owner).delete(`${path}/recording`)).body).toEqual({ success: true });
      expect((await app.as(owner).get(`${path}/recording`)).body).toEqual(off);
    },
  );

  verifies('connection:recording:sealed', 'is stored encrypted, and so is the copy of a mock', async () => {
    const path = await real();
    await record(path, true);
    await app.as(owner).post(`${path}/.tools/secret`, { token: 'canary-of-the-arguments' });
    await createConnection(app, owner, replayOf(path), { namespace });
    for (const table of ['recorded_calls', 'mock_replies', 'connection_mocks']) {
      const [row] = await app.database.query<[{ whole: string }]>(
        `SELECT coalesce(string_agg(t::text, ' '), '') AS whole FROM ${table} t`,
      );
      expect(row.whole).not.toBe('');
      expect(row.whole).not.toContain('canary');
    }
  });

  verifies('connection:recording:shown', 'holds calls through every process', async () => {
    const path = await real();
    const sibling = await app.sibling();
    try {
      expect((await sibling.as(owner).post(`${path}/.tools/count`, one)).status).toBe(200);
      await record(path, true);
      const recorded = await until(async () => {
        await sibling.as(owner).post(`${path}/.tools/count`, one);
        return (await app.as(owner).get(`${path}/recording`)).body.calls as number;
      }, 'the other process records');
      expect(recorded).toBeGreaterThan(0);
    } finally {
      await sibling.close();
    }
  });

  verifies(
    'connection:recording:bounded',
    'holds 1,000 calls, none longer than 1 MB, and none beyond 7 days',
    async () => {
      const path = await real();
      await record(path, true);
      await app.as(owner).post(`${path}/.tools/count`, { by: 1, padding: 'x'.repeat(1024 * 1024) });
      await texts(path, 'count', one);
      expect((await app.as(owner).get(`${path}/recording`)).body.calls).toBe(1);
      await app.database.query(
        `INSERT INTO recorded_calls (connection_id, tool, sealed, bytes)
       SELECT connection_id, tool, sealed, bytes FROM recorded_calls r, generate_series(1, 998)
        WHERE connection_id = (SELECT id FROM connections WHERE connection_id = $1)`,
        [path.split('/').at(-1)],
      );
      await texts(path, 'count', one, one, one);
      expect((await app.as(owner).get(`${path}/recording`)).body.calls).toBe(1_000);
      await app.database.query("UPDATE recorded_calls SET recorded_at = now() - interval '8 days'");
      expect((await app.as(owner).get(`${path}/recording`)).body.calls).toBe(0);
      const sibling = await app.sibling();
      await sibling.close();
      expect(await app.database.query('SELECT 1 FROM recorded_calls')).toEqual([]);
    },
  );
});

describe('a mock that replays', () => {
  verifies(
    ['connection:recording:replayed', 'connection:mock:never-reaches-upstream'],
    'returns the recorded results in their order, and marks the source of other results',
    async () => {
      const path = await real();
      await record(path, true);
      const said = await texts(path, 'count', one, two, one);
      const { path: mock } = await createConnection(app, owner, replayOf(path), { namespace });
      expect((await app.as(owner).delete(`${path}/recording`)).status).toBe(200);
      const before = upstream.requests.length;
      expect(await texts(mock, 'count', one, one, one, two)).toEqual([said[0], said[2], said[2], said[1]]);
      const marked = await app.as(owner).post(`${mock}/.tools/count`, one);
      expect(marked.body._meta).toEqual({ 'slipway/simulator': 'recording' });
      const other = await app.as(owner).post(`${mock}/.tools/count`, { by: 3 });
      expect(other.body._meta).toEqual({
        'slipway/simulator': 'schema',
        'slipway/reason': 'No recorded call has these arguments.',
      });
      expect(upstream.requests.length).toBe(before);
    },
  );

  verifies('connection:recording:owner', 'is refused where nothing was recorded, also by others', async () => {
    const path = await real();
    const ask = (body: object, inside = namespace) =>
      app.as(owner).put(`/connect/${inside}/${uniqueName('mock')}`, body);
    const refused = [400, { error: 'validation_error', message: expect.stringMatching(/^Nothing is recorded of "/) }];
    const nothing = await ask(replayOf(path));
    expect([nothing.status, nothing.body]).toEqual(refused);
    await record(path, true);
    await texts(path, 'count', one);
    const elsewhere = await ask(replayOf(path), await createNamespace(app, owner));
    expect([elsewhere.status, elsewhere.body]).toEqual(refused);
    expect((await ask(replayOf(path))).status).toBe(201);
  });
});

describe('the calls of a recording', () => {
  verifies('connection:recording:exported', 'make a mock that answers each of them as the server did', async () => {
    const everything = await startEverything();
    const name = await createServer(app, owner, { namespace });
    await publishExternal(app, owner, name, { upstreamUrl: everything.url });
    const path = await real({ server: name });
    await record(path, true);
    const calls: [tool: string, args: object][] = [
      ['echo', { message: 'a' }],
      ['get-sum', { a: 1, b: 2 }],
      ['echo', { message: 'b' }],
      ['get-structured-content', { location: 'Chicago' }],
      ['echo', { message: 'a' }],
      // The first one's arguments are a part of the second one's.
      ['get-annotated-message', { messageType: 'error' }],
      ['get-annotated-message', { messageType: 'error', includeImage: true }],
    ];
    const answers = async (at: string) => {
      const bodies: unknown[] = [];
      for (const [tool, args] of calls) bodies.push((await app.as(owner).post(`${at}/.tools/${tool}`, args)).body);
      return bodies.map((body) => ({ ...(body as object), _meta: undefined }));
    };
    const said = await answers(path);
    const pages: { at: string; tool: string; arguments: object }[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const query: string = cursor === '' ? '' : `&cursor=${cursor}`;
      const { body } = await app.as(owner).get(`${path}/recording/calls?limit=3${query}`);
      expect(body.calls.length).toBeLessThanOrEqual(3);
      pages.push(...(body.calls as typeof pages));
      cursor = body.nextCursor as string | null;
    }
    expect(pages.map((call) => [call.tool, call.arguments])).toEqual(calls);
    const exported = await app.as(owner).get(`${path}/recording/fixture`);
    const scenario = JSON.stringify(exported.body);
    const { path: mock } = await createConnection(
      app,
      owner,
      { server: name, mock: { enabled: true, scenario } },
      { namespace },
    );
    expect(await answers(mock)).toEqual(said);
    expect(await answers(mock)).toEqual(said);
  });

  verifies('connection:recording:exported', 'give results in their order, the last one again', async () => {
    const path = await real();
    await record(path, true);
    const said = await texts(path, 'count', one, two, one);
    await texts(path, 'secret', {}, {});
    const { body } = await app.as(owner).get(`${path}/recording/fixture`);
    expect(body.tools.secret).toEqual([
      { arguments: {}, result: { content: [{ type: 'text', text: 'canary-of-the-answer' }], isError: true } },
    ]);
    const mock = { enabled: true, scenario: JSON.stringify(body) };
    const { path: fixed } = await createConnection(app, owner, { server, mock }, { namespace });
    expect(await texts(fixed, 'count', one, one, one, two)).toEqual([said[0], said[2], said[2], said[1]]);
  });
});

describe('who may record', () => {
  verifies('connection:recording:owner', 'only the owner, and only what makes real calls', async () => {
    const path = await real();
    const stranger = await app.account();
    const missing = `/connect/${namespace}/missing`;
    for (const [as, at] of [
      [stranger, path],
      [owner, missing],
      [owner, `/connect/${namespace}/a%00b`],
    ] as const) {
      const answers = await Promise.all([
        app.as(as).put(`${at}/recording`, { enabled: true }),
        app.as(as).get(`${at}/recording`),
        app.as(as).delete(`${at}/recording`),
      ]);
      for (const { status, body } of answers) {
        expect([status, body]).toEqual([
          404,
          expect.objectContaining({ error: 'not_found', message: 'Resource not found' }),
        ]);
      }
    }
    expect((await app.as().get(`${path}/recording`)).status).toBe(401);
    for (const body of [{}, { enabled: 'yes' }, { enabled: true, more: 1 }]) {
      expect((await app.as(owner).put(`${path}/recording`, body)).status).toBe(400);
    }
    const mock = await createConnection(app, owner, { server, mock: { enabled: true } }, { namespace });
    const refused = await app.as(owner).put(`${mock.path}/recording`, { enabled: true });
    expect([refused.status, refused.body.message]).toEqual([400, expect.stringMatching(/makes no real calls/)]);
  });
});
