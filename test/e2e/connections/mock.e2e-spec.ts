import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { startApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { startLanguageModel } from '../../support/language-model.js';
import { releaseServer, pathOf } from '../../support/server-rows.js';
import { tracker } from '../../support/tracker.js';
import { startUpstream, type Upstream } from '../../support/upstream.js';
import { verifies } from '../../support/verifies.js';

let app: TestApp;
let owner: TestAccount;
let upstream: Upstream;
let namespace: string;
let server: string;

beforeAll(async () => {
  [app, upstream] = await Promise.all([startApp(), startUpstream()]);
  owner = await app.account();
  namespace = await createNamespace(app, owner);
  server = await createServer(app, owner, { namespace });
  await releaseServer(app, server, { ...tracker, upstreamUrl: upstream.url });
});
afterAll(async () => {
  await app.close();
  await upstream.close();
});

type Result = {
  structuredContent?: Record<string, unknown>;
  content: { text: string }[];
  isError?: boolean;
  _meta?: object;
};

/** A simulated connection to the tracker; returns its path. */
async function mockOf(scenario?: string, connectionId = uniqueName('mock'), inside = namespace): Promise<string> {
  const mock = { enabled: true, ...(scenario === undefined ? {} : { scenario }) };
  return (await createConnection(app, owner, { server, mock }, { namespace: inside, connectionId })).path;
}

async function call(path: string, tool: string, given: object = {}, on = app): Promise<Result> {
  const { status, body } = await on.as(owner).post(`${path}/.tools/${tool}`, given);
  expect([status, body]).toEqual([200, expect.anything()]);
  return body as Result;
}

async function issues(path: string, on = app): Promise<Record<string, unknown>[]> {
  return (await call(path, 'list_issues', { limit: 100 }, on)).structuredContent?.issues as Record<string, unknown>[];
}

/** A few calls that read and write. */
async function run(path: string, on = app): Promise<Result[]> {
  const results: Result[] = [];
  for (const [tool, given] of [
    ['list_issues', {}],
    ['create_issue', { title: 'Login fails' }],
    ['get_weather', { city: 'Lisbon' }],
    ['list_users', {}],
    ['delete_issue', { issue_id: 1 }],
    ['get_issue', { issue_id: 1 }],
    ['echo', { message: 'Hello' }],
  ] as const) {
    results.push(await call(path, tool, given, on));
  }
  return results;
}

describe('a simulated connection', () => {
  verifies(
    ['connection:create:mock', 'connection:field:mock-enabled', 'connection:field:mock-scenario'],
    'says that it is one, and what its scenario is',
    async () => {
      const { body } = await createConnection(
        app,
        owner,
        { server, mock: { enabled: true, scenario: '2 open issues' } },
        { namespace },
      );
      expect(body).toMatchObject({
        mock: { enabled: true, scenario: '2 open issues' },
        status: { state: 'connected' },
        serverInfo: { name: 'tracker', version: '1.2.3' },
      });
      const plain = await createConnection(app, owner, { server, mock: { enabled: true } }, { namespace });
      expect(plain.body.mock).toEqual({ enabled: true });
      const listed = await app.as(owner).get(`/connect/${namespace}`);
      expect(listed.body.connections).toContainEqual(expect.objectContaining({ mock: { enabled: true } }));
      const posted = await app.as(owner).post(`/connect/${namespace}`, { server, mock: { enabled: true } });
      expect([posted.status, posted.body.mock]).toEqual([201, { enabled: true }]);
    },
  );

  verifies(
    ['connection:mock:simulates', 'connection:mock:scenario-seeds', 'connection:mock:never-reaches-upstream'],
    'answers calls from its scenario and the schemas, over REST and MCP, and the server hears nothing',
    async () => {
      const path = await mockOf('a user called Alice and 3 open issues, one is closed');
      const tools = await app.as(owner).get(`${path}/.tools`);
      expect(tools.body).toEqual({ tools: tracker.tools });
      expect((await issues(path)).map(({ state }) => state)).toEqual(['closed', 'open', 'open']);

      const client = new Client({ name: 'test', version: '1' });
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`${app.url}${path}/mcp`), {
          requestInit: { headers: { authorization: `Bearer ${owner.key}` } },
        }),
      );
      expect(client.getServerVersion()).toMatchObject({ name: 'tracker' });
      expect((await client.listTools()).tools).toHaveLength(tracker.tools.length);
      expect(await client.callTool({ name: 'get_user', arguments: { name: 'Alice' } })).toMatchObject({
        structuredContent: { user: { name: 'Alice' } },
      });
      expect((await client.readResource({ uri: 'tracker://readme' })).contents).toHaveLength(1);
      expect((await client.readResource({ uri: 'tracker://issues/7' })).contents).toHaveLength(1);
      await expect(client.readResource({ uri: 'tracker://other' })).rejects.toThrow(/not found/);
      expect((await client.getPrompt({ name: 'triage', arguments: { issue: '7' } })).messages).toHaveLength(1);
      await expect(client.getPrompt({ name: 'triage' })).rejects.toThrow(/issue is required/);
      await expect(client.callTool({ name: 'nothing' })).rejects.toThrow('Tool nothing not found');
      await client.close();

      expect((await app.as(owner).put(path, { name: 'Renamed' })).status).toBe(200);
      expect((await app.as(owner).delete(path)).status).toBe(200);
      expect([upstream.requests.length, upstream.connections]).toEqual([0, 0]);
    },
  );

  verifies('connection:mock:memory', 'remembers what was created, changed and deleted', async () => {
    const path = await mockOf('empty');
    const created = (await call(path, 'create_issue', { title: 'Login fails' })).structuredContent?.issue;
    expect((await call(path, 'get_issue', { issue_id: 1 })).structuredContent).toEqual(created);
    await call(path, 'close_issue', { issue_id: 1 });
    expect(await issues(path)).toEqual([{ ...(created as object), state: 'closed' }]);
    await call(path, 'delete_issue', { issue_id: 1 });
    expect(await call(path, 'get_issue', { issue_id: 1 })).toMatchObject({
      isError: true,
      content: [{ text: 'Issue 1 not found' }],
    });
  });

  verifies(
    'connection:mock:deterministic',
    'gives the same calls the same answers: in another namespace, made anew, and in another process',
    async () => {
      const id = uniqueName('mock');
      const first = await run(await mockOf('3 open issues', id));
      expect(await run(await mockOf('3 open issues', id, await createNamespace(app, owner)))).toEqual(first);
      expect((await app.as(owner).delete(`/connect/${namespace}/${id}`)).status).toBe(200);
      const again = await mockOf('3 open issues', id);
      const sibling = await app.sibling();
      try {
        expect(await run(again, sibling)).toEqual(first);
      } finally {
        await sibling.close();
      }
      expect(await run(await mockOf('3 open issues', uniqueName('mock')))).not.toEqual(first);
      expect(await run(await mockOf('4 open issues', id, await createNamespace(app, owner)))).not.toEqual(first);
    },
  );

  verifies(
    'connection:mock:one-order',
    'keeps its memory over restarts, and calls of two processes have one order',
    async () => {
      const path = await mockOf('empty');
      await call(path, 'create_issue', { title: 'before' });
      const sibling = await app.sibling();
      try {
        expect(await issues(path, sibling)).toMatchObject([{ title: 'before' }]);
        const calls = Array.from({ length: 40 }, (_none, at) =>
          call(path, 'create_issue', { title: `number ${at}` }, at % 2 === 0 ? app : sibling),
        );
        const ids = (await Promise.all(calls)).map(
          ({ structuredContent }) => (structuredContent?.issue as { id: number }).id,
        );
        expect([...ids].sort((one, other) => one - other)).toEqual(Array.from({ length: 40 }, (_none, at) => at + 2));
        expect(await issues(path, sibling)).toEqual(await issues(path));
      } finally {
        await sibling.close();
      }
      const rows = await app.database.query<{ seq: number }[]>(
        `SELECT m.seq FROM mock_calls m JOIN connections c ON c.id = m.connection_id WHERE c.connection_id = $1 ORDER BY seq`,
        [path.split('/').at(-1)],
      );
      expect(rows.map(({ seq }) => seq)).toEqual(Array.from({ length: 44 }, (_none, at) => at + 1));
    },
  );

  verifies('connection:mock:failures', 'fails as its scenario says, and refuses wrong arguments', async () => {
    const path = await mockOf("no issues, but create_issue fails with 'rate limited'");
    expect(await call(path, 'create_issue', { title: 'x' })).toEqual({
      isError: true,
      content: [{ type: 'text', text: 'rate limited' }],
    });
    expect((await call(path, 'create_issue', { title: 7 })).content[0]?.text).toMatch(/title must be string$/);
    expect(await issues(path)).toEqual([]);
    expect((await app.as(owner).post(`${path}/.tools/nothing`, {})).status).toBe(404);
  });

  verifies('connection:mock:bounded', 'keeps its newest 1,000 calls, and its memory beyond them', async () => {
    const path = await mockOf('empty');
    await call(path, 'create_issue', { title: 'old' });
    const [{ id }] = await app.database.query<[{ id: string }]>('SELECT id FROM connections WHERE connection_id = $1', [
      path.split('/').at(-1),
    ]);
    // As a thousand calls more would have left it.
    await app.database.query('UPDATE connection_mocks SET calls = 1001 WHERE connection_id = $1', [id]);
    expect(await issues(path)).toMatchObject([{ title: 'old' }]);
    const kept = await app.database.query('SELECT seq FROM mock_calls WHERE connection_id = $1', [id]);
    expect(kept).toEqual([{ seq: 1_002 }]);
  });
});

describe('what is frozen', () => {
  verifies('connection:mock:frozen', 'neither mock mode nor its scenario change with PUT', async () => {
    const path = await mockOf('2 open issues');
    for (const mock of [{ enabled: false }, { enabled: true, scenario: '9 issues' }, { enabled: true }]) {
      const { status, body } = await app.as(owner).put(path, { mock });
      expect([status, body.mock]).toEqual([200, { enabled: true, scenario: '2 open issues' }]);
    }
    expect(await issues(path)).toHaveLength(2);
    const real = await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace });
    const changed = await app.as(owner).put(real.path, { mock: { enabled: true } });
    expect([changed.status, changed.body.mock]).toEqual([200, undefined]);
  });

  verifies('connection:mock:frozen-server', 'a newer release, or the end of the server, change nothing', async () => {
    const other = await createServer(app, owner, { namespace });
    await releaseServer(app, other, tracker);
    const { path } = await createConnection(app, owner, { server: other, mock: { enabled: true } }, { namespace });
    const before = await call(path, 'list_users');
    await releaseServer(app, other, { ...tracker, tools: [] });
    expect(await call(path, 'list_users')).toEqual(before);
    expect((await app.as(owner).delete(pathOf(other))).status).toBe(200);
    const sibling = await app.sibling();
    try {
      expect(await call(path, 'list_users', {}, sibling)).toEqual(before);
    } finally {
      await sibling.close();
    }
  });

  verifies('connection:mock:needs-release', 'a server without a successful release cannot be simulated', async () => {
    const empty = await createServer(app, owner, { namespace });
    const id = uniqueName('mock');
    const { status, body } = await app
      .as(owner)
      .put(`/connect/${namespace}/${id}`, { server: empty, mock: { enabled: true } });
    expect([status, body]).toEqual([
      400,
      {
        error: 'validation_error',
        message: expect.stringMatching(/has no successful release yet.*Publish one first\.$/),
      },
    ]);
    expect((await app.as(owner).get(`/connect/${namespace}/${id}`)).status).toBe(404);
  });

  verifies('connection:mock:bounded', 'a server that offers more than 4 MB cannot be simulated', async () => {
    const huge = await createServer(app, owner, { namespace });
    await releaseServer(app, huge, { tools: [{ name: 'big', description: 'x'.repeat(4 * 1024 * 1024) }] });
    const { status, body } = await app
      .as(owner)
      .post(`/connect/${namespace}`, { server: huge, mock: { enabled: true } });
    expect([status, body.message]).toEqual([400, expect.stringMatching(/larger than 4 MB/)]);
  });
});

describe('with a language model', () => {
  verifies(
    ['connection:mock:model', 'connection:mock:model-bounded', 'connection:mock:never-reaches-upstream'],
    'it answers, as often as it may be asked; then the schemas answer, and say so',
    async () => {
      const model = await startLanguageModel();
      const sibling = await app.sibling({
        SIMULATOR_URL: `${model.origin}/v1`,
        SIMULATOR_MODEL: 'small',
        SIMULATOR_API_KEY: 'the-key',
        SIMULATOR_DAILY_CALLS_MAX: '8',
        EGRESS_ALLOW: '10.9.9.9',
      });
      try {
        model.answer = () => JSON.stringify({ result: { city: 'Lisbon', temperature: 3, conditions: 'rain' } });
        const path = await mockOf('It is winter. create_issue fails');
        const weather = () => call(path, 'get_weather', { city: 'Lisbon' }, sibling);
        expect(await weather()).toMatchObject({
          structuredContent: { temperature: 3 },
          _meta: { 'slipway/simulator': 'model' },
        });
        expect((await weather())._meta).toEqual({ 'slipway/simulator': 'model' });
        expect(model.questions[1].prompt).toContain('"temperature":3');
        expect(model.questions[1].prompt).toContain('It is winter');
        expect(await weather()).toMatchObject({
          structuredContent: { city: 'Lisbon' },
          _meta: { 'slipway/simulator': 'schema', 'slipway/reason': expect.stringMatching(/today/) },
        });
        expect((await call(path, 'create_issue', { title: 'x' }, sibling)).isError).toBe(true);
        expect((await call(path, 'get_weather', {}, sibling)).isError).toBe(true);
        expect(model.questions).toHaveLength(2);
        // A process without the setting answers from the schemas, as if that were all there is.
        expect(await call(path, 'get_weather', { city: 'Lisbon' })).not.toHaveProperty('_meta');
        expect(upstream.count('tools/call')).toBe(0);
      } finally {
        await sibling.close();
        await model.close();
      }
    },
  );
});
