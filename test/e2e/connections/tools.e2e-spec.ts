import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { mcpAccept, request, send, times, type Json } from '../../support/mcp/calls.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { startFaulty } from '../../support/special-upstreams/faulty-upstreams.js';
import { startScripted, type ScriptedUpstream } from '../../support/special-upstreams/scripted-upstream.js';
import { closing, start } from '../../support/upstream/upstream-clients.js';
import type { ToolDef } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const inputSchema = {
  type: 'object',
  properties: { city: { type: 'string' }, when: { $ref: '#/$defs/when' } },
  required: ['city'],
  $defs: { when: { type: 'string', format: 'date' } },
  additionalProperties: false,
};
const outputSchema = { type: 'object', properties: { degrees: { type: 'number' } }, required: ['degrees'] };
const icons = [{ src: 'https://example.com/sun.png', mimeType: 'image/png', sizes: ['48x48', 'any'], theme: 'dark' }];
const annotations = {
  title: 'The weather',
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};

/** A tool with every field of Spec 2.4, and one with as few as possible. */
const described: ToolDef[] = [
  {
    name: 'weather',
    title: 'Weather',
    description: 'Tells the weather, "quoted" and ünïcode.',
    inputSchema,
    outputSchema,
    icons,
    annotations,
    execution: { taskSupport: 'optional' },
    _meta: { 'example.com/rank': 7, nested: { deep: [1, null] } },
    'x-vendor': { cost: 1.5 },
  },
  { name: 'bare', inputSchema: { type: 'object' } },
];

/** Names that stand in each other's way. */
const named = [
  ...['repo', 'repo.search', 'repo.issues.create', 'repo.issues.close', 'repository.search', 'slash/name'],
  ...['slash.other', 'echo', 'with space', 'ünï.cødé', 'a%2Fb', 'Repo.search'],
].map((name) => ({ name, inputSchema: { type: 'object' } }));

const app = testApp();
const owner = testAccount(app);
const other = testAccount(app);

/** Connects this upstream; gives the path of the connection. */
async function connect(mcpUrl: string): Promise<string> {
  return (await createConnection(app, owner, { mcpUrl })).path;
}

async function get(path: string, account: TestAccount | undefined = owner) {
  return send(app, account, path, undefined, { method: 'GET' });
}

async function namesAt(path: string): Promise<string[]> {
  const { status, body } = await get(path);
  expect(status).toBe(200);
  return (body as { tools: { name: string }[] }).tools.map(({ name }) => name);
}

describe('the fields of a tool', () => {
  /** The described tools, as the list gives them and as they are given one by one. */
  async function everyView(): Promise<{ full: Record<string, unknown>; bare: Record<string, unknown> }[]> {
    const upstream = await start({ tools: described });
    const path = await connect(upstream.url);
    const listed = (await get(`${path}/.tools`)).body.tools;
    const [full, bare] = [await get(`${path}/.tools/weather`), await get(`${path}/.tools/bare`)];
    const { [`${path.split('/')[3]}`]: entry } = (await get(`${path.split('/').slice(0, 3).join('/')}/.tools`)).body;
    return [
      { full: listed[0], bare: listed[1] },
      { full: full.body, bare: bare.body },
      { full: entry.tools[0], bare: entry.tools[1] },
    ];
  }

  verifies('tool:field:name', 'the name is a string in every tool of a list, and alone', async () => {
    for (const { full, bare } of await everyView()) expect([full.name, bare.name]).toEqual(['weather', 'bare']);
  });

  verifies('tool:field:input-schema', 'the input schema is there with everything the server put in', async () => {
    for (const { full, bare } of await everyView()) {
      expect(full.inputSchema).toEqual(inputSchema);
      expect(bare.inputSchema).toEqual({ type: 'object' });
    }
  });

  verifies('tool:field:title', 'a title is what the server gave, and absent when it gave none', async () => {
    for (const { full, bare } of await everyView()) {
      expect(full.title).toBe('Weather');
      expect(bare).not.toHaveProperty('title');
    }
  });

  verifies('tool:field:icons', 'icons keep src, mimeType, sizes and what else they have', async () => {
    for (const { full } of await everyView()) expect(full.icons).toEqual(icons);
  });

  verifies('tool:field:description', 'a description keeps its quotes and letters', async () => {
    for (const { full } of await everyView()) expect(full.description).toBe('Tells the weather, "quoted" and ünïcode.');
  });

  verifies(
    'tool:field:output-schema',
    'the output schema is the declared one, and absent when there is none',
    async () => {
      for (const { full, bare } of await everyView()) {
        expect(full.outputSchema).toEqual(outputSchema);
        expect(bare).not.toHaveProperty('outputSchema');
      }
    },
  );

  verifies('tool:field:annotations', 'annotations keep their title and the four hints, false ones too', async () => {
    for (const { full } of await everyView()) expect(full.annotations).toEqual(annotations);
  });

  verifies('tool:field:execution', 'execution is the object the server gave', async () => {
    for (const { full } of await everyView()) expect(full.execution).toEqual({ taskSupport: 'optional' });
  });

  verifies('tool:field:meta', '_meta is the object the server gave', async () => {
    for (const { full } of await everyView()) {
      expect(full._meta).toEqual({ 'example.com/rank': 7, nested: { deep: [1, null] } });
    }
  });

  verifies(
    'tool:field:unknown-kept',
    'a tool passes byte for byte: unknown fields, key order, big numbers',
    async () => {
      const tool =
        '{"zeta":9007199254740993,"inputSchema":{"type":"object","b":1.10,"a":[ ]}, "name":"odd\\u002ename","1":1E400,"x":"\\/"}';
      const upstream = closing(await startScripted(() => `{"nextCursor":null,"tools":[ ${tool} ],"ttlMs":0}`));
      const path = await connect(upstream.url);
      expect((await get(`${path}/.tools`)).text).toBe(`{"tools":[${tool}]}`);
      expect((await get(`${path}/.tools/odd.name`)).text).toBe(tool);
      expect((await get(`${path}/.tools/odd`)).text).toBe(`{"tools":[${tool}]}`);
    },
  );
});

describe('GET …/.tools', () => {
  verifies(
    'tools:list:all',
    'every tool of the connection is listed, in the order of the server, as JSON',
    async () => {
      const upstream = await start({ tools: named });
      const path = await connect(upstream.url);
      const { status, headers, body } = await get(`${path}/.tools`);
      expect(status).toBe(200);
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(body).toEqual({ tools: named });
    },
  );

  verifies('tools:list:all', 'a server without tools, or without the method, lists none', async () => {
    const empty = await start({ tools: [] });
    const without = closing(
      await startScripted((message, res) => {
        const error = { code: -32601, message: 'Method not found' };
        res.writeHead(200, { 'content-type': 'application/json' });
        res.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error }));
      }),
    );
    for (const { url } of [empty, without]) {
      expect(await get(`${await connect(url)}/.tools`)).toMatchObject({ status: 200, text: '{"tools":[]}' });
    }
  });

  verifies('tools:list:all', 'many concurrent readers cost the server one list', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    const answers = await Promise.all(times(20, () => get(`${path}/.tools`)));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(upstream.count('tools/list')).toBe(1);
  });

  verifies('tools:list:pages', 'pages are followed to the end by the cursors the server gave', async () => {
    const tools = times(23, (i) => ({ name: `tool-${i}`, inputSchema: { type: 'object' } }));
    const upstream = await start({ tools, pageSize: 2 });
    const path = await connect(upstream.url);
    expect(await namesAt(`${path}/.tools`)).toEqual(tools.map(({ name }) => name));
    expect(upstream.count('tools/list')).toBe(12);
    expect((await get(`${path}/.tools/tool-22`)).status).toBe(200);
  });

  verifies('tools:list:pages', 'a list whose cursors never end is read up to a bound', async () => {
    const upstream = closing(
      await startScripted((_, __, nth) =>
        JSON.stringify({ tools: [{ name: `tool-${nth}`, inputSchema: {} }], nextCursor: `page-${nth}` }),
      ),
    );
    const names = await namesAt(`${await connect(upstream.url)}/.tools`);
    expect(names.length).toBeGreaterThan(10);
    expect(names).toHaveLength(upstream.count('tools/list'));
    expect(upstream.count('tools/list')).toBeLessThanOrEqual(100);
  });

  verifies(
    'tools:get:not-found',
    'an unknown, a foreign and a deleted connection return 404, byte for byte alike',
    async () => {
      const upstream = await start();
      const path = await connect(upstream.url);
      const [, , namespace] = path.split('/');
      await get(`${path}/.tools`);
      const before = upstream.requests.length;
      const answers = [
        await get(`${path}/.tools`, other),
        await get(`${path}/.tools/echo`, other),
        await get(`/connect/${namespace}/${uniqueName()}/.tools`),
        await get(`/connect/${uniqueName()}/${uniqueName()}/.tools/echo`),
      ];
      expect(upstream.requests).toHaveLength(before);
      await app.as(owner).delete(path).expect(200);
      answers.push(await get(`${path}/.tools`), await get(`${path}/.tools/echo`));
      for (const { status, text } of answers) {
        expect([status, text]).toEqual([
          404,
          expect.stringMatching(/^\{"error":"not_found","message":"Resource not found"[,}]/),
        ]);
      }
    },
  );
});

describe('GET …/.tools/{toolPath}', () => {
  let path: string;
  let upstream: ScriptedUpstream;
  beforeAll(async () => {
    upstream = await startScripted(() => JSON.stringify({ tools: named }));
    path = await connect(upstream.url);
  });
  afterAll(() => upstream.close());

  verifies('tools:get:one', 'a tool is found by its name', async () => {
    for (const name of ['echo', 'with space', 'ünï.cødé', 'Repo.search']) {
      const answer = await get(`${path}/.tools/${encodeURIComponent(name)}`);
      expect(answer).toMatchObject({ status: 200, body: { name, inputSchema: { type: 'object' } } });
      expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    }
  });

  verifies('tools:get:slash-path', 'a path with slashes finds the tool with dots', async () => {
    expect((await get(`${path}/.tools/repo/search`)).body.name).toBe('repo.search');
    expect((await get(`${path}/.tools/repo/issues/create`)).body.name).toBe('repo.issues.create');
  });

  verifies('tools:get:path-spellings', 'every mix of the separators finds the same tool', async () => {
    const separators = ['/', '%2F', '%2f', '.', '%2E'];
    for (const a of separators) {
      for (const b of separators) {
        expect((await get(`${path}/.tools/repo${a}issues${b}create`)).body.name).toBe('repo.issues.create');
      }
    }
  });

  verifies('tools:get:path-spellings', 'a name with a slash of its own is found by slash and by dot', async () => {
    for (const spelling of ['slash/name', 'slash%2Fname', 'slash.name']) {
      expect((await get(`${path}/.tools/${spelling}`)).body.name).toBe('slash/name');
    }
  });

  verifies('tools:get:path-spellings', 'percent-encoding is undone once, never twice', async () => {
    expect((await get(`${path}/.tools/a%252Fb`)).body.name).toBe('a%2Fb');
    expect((await get(`${path}/.tools/repo%252Fsearch`)).status).toBe(404);
  });

  verifies('tools:get:category', 'a category lists what is under it, by full names, at every depth', async () => {
    expect(await namesAt(`${path}/.tools/repo/issues`)).toEqual(['repo.issues.create', 'repo.issues.close']);
    expect(await namesAt(`${path}/.tools/repo.issues`)).toEqual(['repo.issues.create', 'repo.issues.close']);
    expect(await namesAt(`${path}/.tools/slash`)).toEqual(['slash/name', 'slash.other']);
  });

  verifies('tools:get:exact-wins', 'a path that is a tool and a category answers the tool', async () => {
    expect((await get(`${path}/.tools/repo`)).body).toEqual({ name: 'repo', inputSchema: { type: 'object' } });
  });

  verifies('tools:get:category-boundary', 'a category ends at a separator, and letters count by case', async () => {
    expect(await namesAt(`${path}/.tools/repository`)).toEqual(['repository.search']);
    expect(await namesAt(`${path}/.tools/Repo`)).toEqual(['Repo.search']);
    const apart = await start({ tools: named.filter(({ name }) => name !== 'repo') });
    expect(await namesAt(`${await connect(apart.url)}/.tools/repo`)).toEqual([
      'repo.search',
      'repo.issues.create',
      'repo.issues.close',
    ]);
  });

  verifies('tools:get:not-found', 'a path that names nothing returns 404', async () => {
    for (const missing of ['nothing', 'rep', 'repo/search/deeper', 'repo.', 'search', '__proto__', 'with', '%00']) {
      const { status, text } = await get(`${path}/.tools/${missing}`);
      expect([missing, status, text]).toEqual([
        missing,
        404,
        expect.stringMatching(/^\{"error":"not_found","message":"Resource not found"[,}]/),
      ]);
    }
  });

  verifies('tools:get:one', 'a tool that the server added after the last list is found', async () => {
    const tools = [{ name: 'old', inputSchema: {} }];
    const growing = closing(await startScripted(() => JSON.stringify({ tools })));
    const fresh = await connect(growing.url);
    expect(await namesAt(`${fresh}/.tools`)).toEqual(['old']);
    tools.push({ name: 'new', inputSchema: {} });
    const deadline = Date.now() + 5_000;
    let status = 0;
    while (status !== 200 && Date.now() < deadline) ({ status } = await get(`${fresh}/.tools/new`));
    expect(status).toBe(200);
    expect(growing.count('tools/list')).toBeLessThanOrEqual(4);
  });
});

describe('GET /connect/{namespace}/.tools', () => {
  verifies(
    'tools:list:namespace',
    'every connection is listed under its id, and a failing one spoils no other',
    async () => {
      const namespace = await createNamespace(app, owner);
      const good = await start({ tools: described });
      const second = await start({ tools: [{ name: 'only', inputSchema: {} }] });
      const html = closing(await startFaulty('html'));
      const locked = closing(await startFaulty('needs-auth'));
      const add = (connectionId: string, mcpUrl: string, name?: string) =>
        createConnection(app, owner, { mcpUrl, ...(name ? { name } : {}) }, { namespace, connectionId });
      await add('10', good.url, 'A "name"');
      await add('second.one', second.url);
      await add('page', html.url);
      await add('locked', locked.url);
      const hits = locked.hits();

      const { status, headers, body } = await get(`/connect/${namespace}/.tools`);
      expect(status).toBe(200);
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
      const connected = { state: 'connected' };
      expect(body).toEqual({
        '10': { connectionId: '10', name: 'A "name"', status: connected, tools: described },
        'second.one': {
          connectionId: 'second.one',
          name: 'second.one',
          status: connected,
          tools: [{ name: 'only', inputSchema: {} }],
        },
        page: {
          connectionId: 'page',
          name: 'page',
          status: { state: 'error' },
          tools: [],
          error: expect.stringContaining('web page'),
        },
        locked: {
          connectionId: 'locked',
          name: 'locked',
          status: { state: 'auth_required' },
          tools: [],
          error: expect.stringContaining('401'),
        },
      });
      expect(locked.hits()).toBe(hits);
    },
  );

  verifies('tools:list:namespace', 'an empty namespace answers an empty object, a foreign one 404', async () => {
    const namespace = await createNamespace(app, owner);
    expect(await get(`/connect/${namespace}/.tools`)).toMatchObject({ status: 200, text: '{}' });
    const missing = await get(`/connect/${uniqueName()}/.tools`);
    const foreign = await get(`/connect/${namespace}/.tools`, other);
    expect([foreign.status, foreign.text]).toEqual([
      404,
      expect.stringMatching(/^\{"error":"not_found","message":"Resource not found"[,}]/),
    ]);
    expect(missing.text).toBe(foreign.text);
  });

  const nonsense: Record<string, string> = {
    'no list': '{"tools":{}}',
    'no tools at all': '{}',
    'a null result': 'null',
    'a text for a result': '"\\\\"',
    'a tool that is null': '{"tools":[null]}',
    'a tool without a name': '{"tools":[{"inputSchema":{}}]}',
    'its tools twice': '{"tools":[],"tools":[]}',
  };
  for (const [what, result] of Object.entries(nonsense)) {
    verifies('tools:list:namespace', `a server that lists ${what} spoils no other`, async () => {
      const namespace = await createNamespace(app, owner);
      const good = await start({ tools: described });
      const bad = closing(await startScripted(() => result));
      await createConnection(app, owner, { mcpUrl: bad.url }, { namespace, connectionId: 'bad' });
      await createConnection(app, owner, { mcpUrl: good.url }, { namespace, connectionId: 'good' });
      const { status, body } = await get(`/connect/${namespace}/.tools`);
      expect(status).toBe(200);
      expect(body.good.tools).toEqual(described);
      expect(body.bad.tools).toEqual([]);
    });

    verifies('call:upstream-down', `a list of one connection with ${what} is no failure of Slipway`, async () => {
      const bad = closing(await startScripted(() => result));
      const { status } = await get(`${await connect(bad.url)}/.tools`);
      expect(['a tool that is null', 'a tool without a name', 'its tools twice'].includes(what) ? 200 : 502).toBe(
        status,
      );
    });
  }
});

describe('the chosen tools', () => {
  const tools = ['search_docs', 'search_private', 'read', 'write'].map((name) => ({
    name,
    inputSchema: { type: 'object' },
  }));
  const choice = { allow: ['search_*', 'read'], deny: ['search_private'] };
  const mcp = async (path: string, method: string, params: object = {}) =>
    (await send(app, owner, path, request(1, method, params), { headers: mcpAccept })).body;
  const names = (body: Json): string[] => body.result.tools.map(({ name }: Json) => name);

  verifies('tools:choice', 'a hidden tool is neither listed nor called, at every endpoint', async () => {
    const upstream = await start({ tools });
    const { path, namespace, connectionId, body } = await createConnection(app, owner, {
      mcpUrl: upstream.url,
      tools: choice,
    });
    expect(body.tools).toEqual(choice);
    const union = `/connect/${namespace}/.mcp`;
    expect(await namesAt(`${path}/.tools`)).toEqual(['search_docs', 'read']);
    expect(names(await mcp(`${path}/mcp`, 'tools/list'))).toEqual(['search_docs', 'read']);
    expect(names(await mcp(union, 'tools/list'))).toEqual([`${connectionId}__search_docs`, `${connectionId}__read`]);
    const calls = upstream.count('tools/call');
    for (const hidden of ['search_private', 'write']) {
      expect((await get(`${path}/.tools/${hidden}`)).status).toBe(404);
      const [called, unknown] = await Promise.all(
        [hidden, 'nowhere'].map((name) => send(app, owner, `${path}/.tools/${name}`, {})),
      );
      expect([called?.status, called?.body.error]).toEqual([404, unknown?.body.error]);
      expect(called?.headers.get('slipway-hint')).toContain('has no such tool.');
      const error = { code: -32602, message: `Unknown tool: "${hidden}"` };
      expect((await mcp(`${path}/mcp`, 'tools/call', { name: hidden })).error).toEqual(error);
      expect((await mcp(union, 'tools/call', { name: `${connectionId}__${hidden}` })).error).toEqual(error);
      const twice = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","Name":"${hidden}"}}`;
      expect((await send(app, owner, `${path}/mcp`, twice, { headers: mcpAccept })).body.error).toMatchObject({
        code: -32602,
      });
    }
    expect(upstream.count('tools/call')).toBe(calls);
    expect((await send(app, owner, `${path}/.tools/read`, { a: 1 })).status).toBe(200);
    expect((await mcp(union, 'tools/call', { name: `${connectionId}__read` })).result).toBeDefined();
  });

  verifies('tools:choice', 'a PUT without tools keeps the choice, and an empty one removes it', async () => {
    const { path, body } = await createConnection(app, owner, { mcpUrl: (await start({ tools })).url });
    expect(body).not.toHaveProperty('tools');
    const put = async (change: object) => (await app.as(owner).put(path, change)).body;
    expect((await put({ tools: { deny: ['*'] } })).tools).toEqual({ deny: ['*'] });
    expect(await namesAt(`${path}/.tools`)).toEqual([]);
    expect((await put({ name: 'other' })).tools).toEqual({ deny: ['*'] });
    expect(await put({ tools: {} })).not.toHaveProperty('tools');
    expect(await namesAt(`${path}/.tools`)).toHaveLength(4);
    for (const wrong of [
      [],
      'read',
      null,
      { allow: 'read' },
      { allow: [''] },
      { deny: [1] },
      { allow: null },
      { only: [] },
    ]) {
      expect((await app.as(owner).put(path, { tools: wrong })).status).toBe(400);
    }
  });
});
