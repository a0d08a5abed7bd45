import { beforeAll, describe, expect } from '@jest/globals';
import { Vault } from '../../../src/platform/vault/vault.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { startLanguageModel } from '../../support/mcp/language-model.js';
import { releaseServer } from '../../support/database/server-rows.js';
import { tracker } from '../../support/special-upstreams/tracker.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
let upstream: Upstream;
let namespace: string;
let server: string;

beforeAll(async () => {
  upstream = await startUpstream();
  namespace = await createNamespace(app, owner);
  server = await createServer(app, owner, { namespace });
  await releaseServer(app, server, { ...tracker, upstreamUrl: upstream.url });
});

type Result = {
  structuredContent?: Record<string, unknown>;
  content: { text: string }[];
  isError?: boolean;
  _meta?: Record<string, unknown>;
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

/** A scenario that answers `echo` as these rules say. */
function echoing(...rules: object[]): string {
  return JSON.stringify({ tools: { echo: rules } });
}

async function echoed(path: string, given: object = {}, on = app): Promise<string | undefined> {
  return (await call(path, 'echo', given, on)).content[0]?.text;
}

/** A few calls with different answers. */
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
    'has `mock` with its scenario',
    async () => {
      const { body } = await createConnection(
        app,
        owner,
        { server, mock: { enabled: true, scenario: 'A full inbox' } },
        { namespace },
      );
      expect(body).toMatchObject({
        mock: { enabled: true, scenario: 'A full inbox' },
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
    'answers calls from its fixture and the schemas, over REST and MCP, and sends nothing to the server',
    async () => {
      const alice = { user: { id: '5b1d7a52-0c3e-4b57-8a39-1f3a4e2b8d11', name: 'Alice', email: 'a@example.com' } };
      const path = await mockOf(
        JSON.stringify({
          tools: { get_user: [{ arguments: { name: 'Alice' }, result: { structuredContent: alice } }] },
        }),
      );
      const tools = await app.as(owner).get(`${path}/.tools`);
      expect(tools.body).toEqual({ tools: tracker.tools });
      expect(await call(path, 'get_user', { name: 'Alice' })).toEqual({
        content: [{ type: 'text', text: JSON.stringify(alice) }],
        structuredContent: alice,
        _meta: { 'slipway/simulator': 'fixture' },
      });

      const client = new Client({ name: 'test', version: '1' });
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`${app.url}${path}/mcp`), {
          requestInit: { headers: { authorization: `Bearer ${owner.key}` } },
        }),
      );
      expect(client.getServerVersion()).toMatchObject({ name: 'tracker' });
      expect((await client.listTools()).tools).toHaveLength(tracker.tools.length);
      expect(await client.callTool({ name: 'get_user', arguments: { name: 'Alice' } })).toMatchObject({
        structuredContent: alice,
      });
      expect(await client.callTool({ name: 'get_user', arguments: { name: 'Bob' } })).toMatchObject({
        structuredContent: { user: { name: expect.any(String) } },
        _meta: { 'slipway/simulator': 'schema', 'slipway/reason': 'No rule of the fixture matches this call.' },
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

  verifies(
    'connection:mock:scenario-prose',
    'with a prose scenario and without a language model marks each result as not interpreted',
    async () => {
      const scenario = 'A user called Alice and 3 open issues. create_issue fails.';
      const path = await mockOf(scenario);
      expect((await app.as(owner).get(path)).body.mock).toEqual({ enabled: true, scenario });
      const mark = {
        'slipway/simulator': 'schema',
        'slipway/reason': expect.stringMatching(/^The scenario was not interpreted/),
      };
      expect(await call(path, 'create_issue', { title: 'x' })).toMatchObject({
        structuredContent: { issue: { title: expect.any(String) } },
        _meta: mark,
      });
      expect(await call(path, 'create_issue', { title: 7 })).toMatchObject({ isError: true, _meta: mark });
      expect(await call(await mockOf(), 'echo', { message: 'Hello' })).toEqual({
        content: [{ type: 'text', text: 'Hello' }],
      });
    },
  );

  verifies('connection:mock:scenario-seeds', 'with a broken fixture is refused, with the path', async () => {
    for (const [scenario, message] of [
      [echoing({ times: 0 }), /^mock\.scenario: \$\.tools\.echo\[0\]\.times must be a whole number/],
      ['{"tools": {"ecko": []}}', /^mock\.scenario: \$\.tools\.ecko names a tool the server does not have$/],
      ['{"tools": {"echo": [}}', /^mock\.scenario: \$ is not JSON: /],
    ] as const) {
      const id = uniqueName('mock');
      const body = { server, mock: { enabled: true, scenario } };
      const refused = await app.as(owner).put(`/connect/${namespace}/${id}`, body);
      expect([refused.status, refused.body]).toEqual([
        400,
        { error: 'validation_error', message: expect.stringMatching(message) },
      ]);
      expect((await app.as(owner).get(`/connect/${namespace}/${id}`)).status).toBe(404);
    }
  });

  verifies(
    'connection:mock:deterministic',
    'gives the same calls the same results: in another namespace, created again, and in another process',
    async () => {
      const id = uniqueName('mock');
      const scenario = echoing({ result: 'one', times: 1 }, { arguments: { message: 'Hello' }, error: 'two' });
      const first = await run(await mockOf(scenario, id));
      expect(await run(await mockOf(scenario, id, await createNamespace(app, owner)))).toEqual(first);
      expect((await app.as(owner).delete(`/connect/${namespace}/${id}`)).status).toBe(200);
      const again = await mockOf(scenario, id);
      const sibling = await app.sibling();
      try {
        expect(await run(again, sibling)).toEqual(first);
      } finally {
        await sibling.close();
      }
    },
  );

  verifies(
    'connection:mock:bounded',
    'counts the uses of a rule over restarts, and calls of two processes have one order',
    async () => {
      const path = await mockOf(
        echoing({ result: 'first', times: 1 }, { result: 'some', times: 20 }, { error: 'end' }),
      );
      expect(await echoed(path)).toBe('first');
      const sibling = await app.sibling();
      try {
        const calls = Array.from({ length: 40 }, (_none, at) => echoed(path, {}, at % 2 === 0 ? app : sibling));
        const texts = await Promise.all(calls);
        expect(texts.filter((text) => text === 'some')).toHaveLength(20);
        expect(texts.filter((text) => text === 'end')).toHaveLength(20);
        expect(await echoed(path, {}, sibling)).toBe('end');
      } finally {
        await sibling.close();
      }
      const rows = await app.database.query<{ id: string; seq: number; sealed: string }[]>(
        `SELECT c.id, m.seq, m.sealed FROM mock_calls m JOIN connections c ON c.id = m.connection_id
          WHERE c.connection_id = $1 ORDER BY seq`,
        [path.split('/').at(-1)],
      );
      expect(rows.map(({ seq }) => seq)).toEqual(Array.from({ length: 42 }, (_none, at) => at + 1));
      const vault = app.get(Vault);
      const answers = rows.map(({ id, sealed }) => (JSON.parse(vault.open(sealed, id)) as { answer: string }).answer);
      expect(answers.map((answer) => (JSON.parse(answer) as Result).content[0].text)).toEqual([
        'first',
        ...Array.from({ length: 20 }, () => 'some'),
        ...Array.from({ length: 21 }, () => 'end'),
      ]);
    },
  );

  verifies(
    'connection:mock:failures',
    'fails and delays as its fixture defines, and refuses invalid arguments',
    async () => {
      const rules = [{ times: 1 }, { error: 'rate limited', times: 1, delayMs: 200 }];
      const path = await mockOf(JSON.stringify({ tools: { create_issue: rules } }));
      expect((await call(path, 'create_issue', { title: 7 })).content[0]?.text).toMatch(/title must be string$/);
      expect((await call(path, 'create_issue', { title: 'x' })).structuredContent).toMatchObject({
        issue: { title: expect.any(String) },
      });
      const before = performance.now();
      expect(await call(path, 'create_issue', { title: 'x' })).toEqual({
        isError: true,
        content: [{ type: 'text', text: 'rate limited' }],
        _meta: { 'slipway/simulator': 'fixture' },
      });
      expect(performance.now() - before).toBeGreaterThan(195);
      expect((await call(path, 'create_issue', { title: 'x' })).isError).toBeUndefined();
      expect((await app.as(owner).post(`${path}/.tools/nothing`, {})).status).toBe(404);
      const deep = `{"message":${'['.repeat(5_000)}${']'.repeat(5_000)}}`;
      const headers = { authorization: `Bearer ${owner.key}`, 'content-type': 'application/json' };
      const refused = await fetch(`${app.url}${path}/.tools/echo`, { method: 'POST', headers, body: deep });
      expect([refused.status, await refused.text()]).toEqual([
        400,
        expect.stringContaining('more than 100 nested levels'),
      ]);
    },
  );
});

describe('what is frozen', () => {
  verifies('connection:mock:frozen', 'neither mock mode nor its scenario change with PUT', async () => {
    const scenario = echoing({ result: 'one' });
    const path = await mockOf(scenario);
    for (const mock of [{ enabled: false }, { enabled: true, scenario: echoing() }, { enabled: true }]) {
      const { status, body } = await app.as(owner).put(path, { mock });
      expect([status, body.mock]).toEqual([200, { enabled: true, scenario }]);
    }
    expect(await echoed(path)).toBe('one');
    const real = await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace });
    const changed = await app.as(owner).put(real.path, { mock: { enabled: true } });
    expect([changed.status, changed.body.mock]).toEqual([200, undefined]);
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
    'it answers, up to its daily quota; then the schemas answer, and say so',
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
        const path = await mockOf('It is winter.');
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
          _meta: { 'slipway/simulator': 'schema', 'slipway/reason': expect.stringMatching(/daily quota/) },
        });
        expect((await call(path, 'get_weather', {}, sibling)).isError).toBe(true);
        expect(model.questions).toHaveLength(2);
        // A fixture answers without the model.
        expect(await echoed(await mockOf(echoing({ result: 'one' })), {}, sibling)).toBe('one');
        expect(model.questions).toHaveLength(2);
        // A process without the setting answers from the schemas.
        expect((await call(path, 'get_weather', { city: 'Lisbon' }))._meta).toMatchObject({
          'slipway/reason': expect.stringMatching(/^The scenario was not interpreted/),
        });
        expect(upstream.count('tools/call')).toBe(0);
      } finally {
        await sibling.close();
        await model.close();
      }
    },
  );
});
