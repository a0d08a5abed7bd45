/**
 * Lists, namespaces, search mode and what published clients write, from reports about MCP hubs: the official clients,
 * connected directly, are the measure. One app; half of the inputs are generated, and their seed is in the title.
 */
import { beforeEach, describe, expect } from '@jest/globals';
import fc from 'fast-check';
import { request, send } from '../../support/mcp/calls.js';
import { officialClients } from '../../support/mcp/official-clients.js';
import {
  envelope,
  hello,
  NEWEST,
  serves,
  tool,
  wireTests,
  type Wired,
  type WireRow,
} from '../../support/mcp/wire-table.js';
import { externalServer } from '../../support/releases/current-releases.js';
import { testSeed } from '../../support/seed.mjs';
import {
  answer,
  event,
  legacy,
  modern,
  modernHello,
  refuse,
  stream,
  type WireScript,
} from '../../support/special-upstreams/wire-upstream.js';
import { verifies } from '../../support/verifies.js';

const { app, owner, ask, connected, newest, restTools, rows } = wireTests();
const keyed = () => ({ authorization: `Bearer ${owner.key}` });
const done = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
const empty: WireScript = (message, res) => answer(res, message, { content: [] });

describe(`a namespace (seed ${testSeed})`, () => {
  const odd: unknown[] = [
    ...[null, undefined, 'object', {}, { type: 'string' }, { type: null }, { type: 'object', required: null }].map(
      (inputSchema) => ({ name: 'odd', inputSchema }),
    ),
    tool('odd', { inputSchema: { type: 'object', properties: { any: true, none: null } } }),
    tool('odd', { description: null, title: 5, annotations: null, outputSchema: {}, icons: 'x', _meta: [] }),
    tool('odd', { annotations: { readOnlyHint: 'yes', title: 'kept' }, execution: { taskSupport: 'sometimes' } }),
    tool('odd', { icons: [{ src: 5 }, { src: 'data:,' }], outputSchema: { type: 'array' } }),
    ...fc.sample(
      fc.record(
        {
          name: fc.constant('odd'),
          inputSchema: fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constant({ type: 'object' })),
          outputSchema: fc.jsonValue({ maxDepth: 1 }),
          description: fc.jsonValue({ maxDepth: 0 }),
          title: fc.jsonValue({ maxDepth: 0 }),
          annotations: fc.jsonValue({ maxDepth: 1 }),
          icons: fc.jsonValue({ maxDepth: 1 }),
        },
        { requiredKeys: ['name'] },
      ),
      { numRuns: 12, seed: testSeed },
    ),
  ];

  verifies(['wire:bad-item'], 'and a connection list all tools to every client despite an odd one', async () => {
    let current: unknown = null;
    const { all, paths } = await connected(
      serves(empty, [tool('sound')]),
      // Its lists are never fresh, so that no cache stands between the rows.
      modern((message, res) => answer(res, message, { ...done, tools: [current, tool('good')] })),
    );
    for (current of odd) {
      for (const [name, connect] of officialClients) {
        for (const [door, expected] of [
          [all, ['c0__sound', 'c1__good', 'c1__odd']],
          [`${paths[1]}/mcp`, ['good', 'odd']],
        ] as const) {
          const client = await connect(app.url + door, { headers: keyed() });
          const names = (await client.listTools()).tools.map((listed) => listed.name);
          expect([name, current, door, names.sort()]).toEqual([name, current, door, expected]);
          await client.close();
        }
      }
    }
  });

  verifies('wire:bad-item', 'names what it leaves out: no name, too deep, listed before', async () => {
    const deep = JSON.parse(`${'{"a":'.repeat(70)}1${'}'.repeat(70)}`) as object;
    const tools = [
      tool('a', { description: 'first' }),
      tool('a'),
      { title: 'none' },
      null,
      tool('deep', { _meta: deep }),
    ];
    const { all, path } = await connected(serves(empty, tools));
    const { body } = await ask(all, request(1, 'tools/list'));
    expect(body.result.tools).toEqual([tool('c0__a', { description: 'first' })]);
    const reason = expect.any(String);
    expect(body.result._meta['slipway/left-out']).toEqual([
      { connectionId: 'c0', name: 'a', reason },
      { connectionId: 'c0', name: null, reason },
      { connectionId: 'c0', name: null, reason },
      { connectionId: 'c0', name: 'deep', reason },
    ]);
    expect((await restTools(path)).map(({ name }: { name: string }) => name)).toEqual(['a', 'deep']);
    // A connection passes on what clients take.
    const { result } = (await ask(`${path}/mcp`, request(1, 'tools/list'))).body;
    expect(result.tools.map(({ name }: { name: string }) => name)).toEqual(['a', 'a', 'deep']);
    expect(result._meta['slipway/left-out']).toEqual([
      { name: null, reason },
      { name: null, reason },
    ]);
  });

  verifies('wire:bad-item', 'leaves out a tool of hundreds of levels, like REST and a connection', () => {
    const given: [levels: number, isStream: boolean][] = [
      [96, false],
      [200, false],
      [200, true],
      [900, false],
      [900, true],
    ];
    return rows(
      given.map(([levels, isStream]) => {
        const deep = JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`) as object;
        const result = { tools: [tool('deep', { inputSchema: { type: 'object', default: deep } }), tool('good')] };
        const _meta = expect.objectContaining({ 'slipway/left-out': [expect.objectContaining({ name: 'deep' })] });
        const seenAs = (name: string) => ({ tools: [tool(name)], result: expect.objectContaining({ _meta }) });
        return {
          given: [levels, isStream],
          server: legacy((message, res) => {
            if (!isStream) return answer(res, message, result);
            stream(res);
            event(res, { id: message.id, result });
            res.end();
          }),
          call: ['tools/list'],
          seen: { namespace: seenAs('c0__good'), connection: seenAs('good'), REST: { tools: [tool('good')] } },
        };
      }),
    );
  });

  verifies('wire:list-end', 'stops, like REST, at a list whose cursors go round, with each tool once', () => {
    const rounds: [cursors: string[], requests: number][] = [
      [['same', 'same'], 2],
      [['a', 'b', 'a'], 3],
      [['', ''], 1],
      [['1', '2', '3', ''], 4],
      [['x', 'y', 'z', 'y'], 4],
    ];
    return rows(
      rounds.flatMap(([cursors, requests]) => {
        const server = legacy((message, res, nth) =>
          answer(res, message, { tools: [tool('one')], nextCursor: cursors[(nth - 1) % cursors.length] }),
        );
        const row: Pick<WireRow, 'given' | 'server' | 'call'> = { given: cursors, server, call: ['tools/list'] };
        return [
          { ...row, seen: { REST: { tools: [tool('one')] } }, requests: { 'tools/list': requests } },
          { ...row, seen: { namespace: { tools: [tool('c0__one')] } } },
        ];
      }),
    );
  });

  const taskScript = (of: string): WireScript =>
    modern((message, res) => {
      const task = { taskId: 't/1', status: 'working', createdAt: '', lastUpdatedAt: '', ttlMs: null };
      if (message.method === 'tools/list') {
        return answer(res, message, { ...done, tools: [tool('run')] });
      }
      if (message.method === 'tools/call') return answer(res, message, { resultType: 'task', ...task });
      if (message.params?.taskId !== 't/1') return refuse(res, message.id, 200, -32602);
      answer(res, message, { resultType: 'complete', ...task, statusMessage: of });
    });

  verifies('wire:namespace-tasks', 'keeps tasks of equal ids apart', async () => {
    const { all, upstreams } = await connected(taskScript('first'), taskScript('second'));
    const extensions = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
    for (const [at, of] of ['first', 'second'].entries()) {
      const made = await newest(all, 'tools/call', { name: `c${at}__run`, arguments: {} }, extensions);
      expect(made.body.result).toMatchObject({ resultType: 'task', taskId: `c${at}/t/1` });
      for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update']) {
        const { body } = await newest(all, method, { taskId: made.body.result.taskId, inputResponses: {} }, extensions);
        expect([method, body.result?.statusMessage, body.result?.taskId]).toEqual([method, of, `c${at}/t/1`]);
      }
      expect(upstreams[at]?.count('tasks/cancel')).toBe(1);
    }
    for (const taskId of ['t/1', 'none/t/1', 't', '/t/1']) {
      expect((await newest(all, 'tasks/get', { taskId }, extensions)).body.error.code).toBe(-32602);
    }
  });

  const skillScript =
    (of: string, directory: string): WireScript =>
    (message, res) => {
      if (message.method === 'server/discover') {
        const capabilities = {
          resources: {},
          extensions: { 'io.modelcontextprotocol/skills': { directoryRead: true } },
        };
        return answer(res, message, { ...modernHello, capabilities });
      }
      const uri = `skill://${directory}/a/SKILL.md`;
      const skill = { uri, name: 'a', description: of, digest: `sha256:${of}` };
      const own = (message.params?.uri as string | undefined)?.startsWith(`skill://${directory}/a/`);
      if (message.method === 'skills/list') return answer(res, message, { ...done, skills: [skill] });
      if (!own) return refuse(res, message.id, 200, message.method === 'tools/list' ? -32601 : -32602);
      if (message.method === 'skills/get') return answer(res, message, { ...done, skill });
      if (message.method === 'resources/read') {
        return answer(res, message, { ...done, contents: [{ uri: message.params?.uri, text: of }] });
      }
      answer(res, message, { ...done, resources: [{ uri, name: of }] });
    };

  verifies(
    'wire:namespace-skills',
    'merges the skills of its members, and reads each at the one that lists it',
    async () => {
      const { all } = await connected(skillScript('x', 'u1'), skillScript('y', 'u2'), skillScript('z', 'u2'));
      const { skills } = (await newest(all, 'skills/list')).body.result;
      const uris = [
        ['skill://u1/a/SKILL.md', 'x'],
        ['connection://c1/skill://u2/a/SKILL.md', 'y'],
        ['connection://c2/skill://u2/a/SKILL.md', 'z'],
      ] as const;
      expect(skills).toHaveLength(3);
      for (const [uri, of] of uris) {
        expect(skills).toContainEqual({ uri, name: 'a', description: of, digest: `sha256:${of}` });
        const got = await newest(all, 'skills/get', { uri });
        expect([uri, got.body.error]).toEqual([uri, undefined]);
        expect(got.body.result.skill).toEqual({ uri, name: 'a', description: of, digest: `sha256:${of}` });
        for (const file of [uri, uri.replace('SKILL.md', 'scripts/run.sh')]) {
          const read = await newest(all, 'resources/read', { uri: file });
          expect([file, read.body.result?.contents]).toEqual([file, [{ uri: file, text: of }]]);
        }
        const directory = await newest(all, 'resources/directory/read', { uri: uri.replace('/SKILL.md', '/') });
        expect(directory.body.result.resources).toEqual([{ uri, name: of }]);
      }
      expect((await newest(all, 'skills/get', { uri: 'skill://u2/a/SKILL.md' })).body.error.code).toBe(-32602);
    },
  );

  verifies('wire:namespace-skills', 'gets a skill by what its server names it by', async () => {
    const skillServer =
      (of: string, member: string, code: number): WireScript =>
      (message, res) => {
        if (message.method === 'server/discover') return answer(res, message, modernHello);
        if (message.method === 'skills/get' && message.params?.[member] === of) {
          return answer(res, message, { ...done, skill: { name: of } });
        }
        refuse(res, message.id, 200, message.method === 'skills/get' ? code : -32601);
      };
    const { all } = await connected(
      skillServer('a', 'name', -32602),
      skillServer('b', 'id', -32002),
      skillServer('c', 'skill', -32601),
    );
    for (const [member, of] of [
      ['name', 'a'],
      ['id', 'b'],
      ['skill', 'c'],
    ] as const) {
      const { body } = await newest(all, 'skills/get', { [member]: of });
      expect([member, body.result?.skill]).toEqual([member, { name: of }]);
    }
    for (const params of [{}, { name: 'b' }, { name: '' }]) {
      const { body } = await newest(all, 'skills/get', params);
      expect([params, body.error.code, body.error.message]).toEqual([
        params,
        expect.any(Number),
        expect.not.stringContaining('undefined'),
      ]);
    }
  });
});

describe('a client', () => {
  let path: string;
  let all: string;
  let upstream: Wired['upstream'];
  const echo: WireScript = (message, res) => {
    if (message.params?.name !== 'progress') {
      const called = { content: [], sent: message.params };
      return answer(res, message, called);
    }
    const { progressToken } = message.params._meta as { progressToken?: unknown };
    stream(res);
    event(res, { method: 'notifications/message', params: { level: 'error', data: 'x' } });
    if (progressToken !== undefined)
      event(res, { method: 'notifications/progress', params: { progressToken, progress: 1 } });
    event(res, { id: message.id, result: { content: [] } });
    res.end();
  };

  /** A request with these params to the connection. */
  const requested = (message: string | object, headers: Record<string, string> = {}) =>
    ask(`${path}/mcp`, message, headers);

  beforeEach(async () => void ({ path, all, upstream } = await connected(serves(echo))));

  verifies(
    'wire:lost-session',
    'receives -32001 with its id for an unknown session, and may send an empty session id',
    async () => {
      for (const id of [7, 'seven', 0]) {
        for (const session of ['gone', 'x'.repeat(300), ' gone ']) {
          const { status, body } = await requested(request(id, 'tools/list'), { 'mcp-session-id': session });
          expect([status, body.id, body.error.code]).toEqual([404, id, -32001]);
        }
        expect((await requested(request(id, 'tools/list'), { 'mcp-session-id': '' })).status).toBe(200);
      }
      const stream = await send(app, owner, `${path}/mcp`, undefined, {
        method: 'GET',
        headers: { 'mcp-session-id': 'gone' },
      });
      expect([stream.status, stream.body.error.code]).toEqual([404, -32001]);
    },
  );

  verifies(
    'wire:repeated-header',
    'may send a header twice, by two lines or folded to one, if both are equal',
    async () => {
      const folded = async (name: string, value: string, message: object, more: Record<string, string> = {}) =>
        (await requested(message, { ...more, [name]: `${value}, ${value}` })).status;
      expect(await folded('mcp-protocol-version', '2025-06-18', request(1, 'tools/list'))).toBe(200);
      const message = request(1, 'tools/call', { name: 'run', arguments: {}, _meta: envelope() });
      const own = { 'mcp-protocol-version': `${NEWEST},${NEWEST}`, 'mcp-name': 'run' };
      expect(await folded('mcp-method', 'tools/call', message, own)).toBe(200);
      const other = { 'mcp-protocol-version': `${NEWEST}, 2025-06-18`, 'mcp-name': 'run', 'mcp-method': 'tools/call' };
      expect((await requested(message, other)).status).toBe(400);
      const comma = request(1, 'tools/call', { name: 'a, a', arguments: {}, _meta: envelope() });
      const named = { 'mcp-protocol-version': NEWEST, 'mcp-method': 'tools/call', 'mcp-name': 'a, a' };
      expect((await requested(comma, named)).status).toBe(200);
    },
  );

  verifies(
    'wire:null-member',
    'may write null for what it leaves out, and a byte order mark before its JSON',
    async () => {
      const sent = async (text: string, own: Record<string, string> = {}) => {
        const { status, body } = await requested(text, own);
        return [text, status, body?.id, body?.error?.code];
      };
      const bodies = [
        '{"jsonrpc":"2.0","id":"a","method":"tools/list","params":null}',
        '{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"_meta":null}}',
        '{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"_meta":null,"name":"run"}}',
        '\uFEFF{"jsonrpc":"2.0","id":"a","method":"tools/list"}',
      ];
      for (const text of bodies) expect(await sent(text)).toEqual([text, 200, 'a', undefined]);
      const calls = upstream.seen.filter(({ method }) => method === 'tools/call');
      expect(calls.at(-1)?.params).toEqual({ name: 'run' });
      const broken: [text: string, id: unknown][] = [
        ['{"jsonrpc":"2.0","id":5,"method":"tools/list","params":[1]}', 5],
        ['{"jsonrpc":"1.0","id":"five","method":"tools/list"}', 'five'],
        ['{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"_meta":7}}', 5],
        ['{"jsonrpc":"2.0","id":[5],"method":"tools/list"}', null],
      ];
      for (const [text, id] of broken) {
        const { status, body } = await requested(text);
        expect([text, status, body.id]).toEqual([text, 400, id]);
      }
      const nulls = { ...envelope({ sampling: null }), 'io.modelcontextprotocol/clientInfo': null };
      const modernNulls = JSON.stringify(request(1, 'tools/list', { _meta: nulls }));
      const own = { 'mcp-protocol-version': NEWEST, 'mcp-method': 'tools/list' };
      expect(await sent(modernNulls, own)).toEqual([modernNulls, 200, 1, undefined]);
    },
  );

  verifies('wire:accept', 'may spell the media types that it accepts in any case', async () => {
    const accepted = async (accept: string) =>
      (await send(app, owner, `${path}/mcp`, undefined, { method: 'GET', headers: { accept } })).status;
    // Without a session the GET opens a stream of HTTP+SSE.
    const exact = [
      'application/json',
      'text/event-streaming',
      'text/event-stream;q=0',
      'text/event-stream;q=0, */*',
      'image/*',
    ];
    for (const accept of [...exact, 'text/*;q=0.0, application/*', '*/*; q=0']) {
      expect([accept, await accepted(accept)]).toEqual([accept, 405]);
    }
    const wildcards = [
      '*/*',
      'application/json, text/*',
      'TEXT/* ; q=0.2',
      'application/json;q=0.9, */*;q=0.1',
      '*/*;q=1.0',
    ];
    const call = request(1, 'tools/call', { name: 'progress', arguments: {}, _meta: { progressToken: 'p' } });
    for (const accept of wildcards) {
      for (const door of [`${path}/mcp`, all]) {
        const sent = door === all ? JSON.stringify(call).replace('"progress"', '"c0__progress"') : JSON.stringify(call);
        const { text } = await send(app, owner, door, sent, { headers: { accept } });
        expect([accept, door, text]).toEqual([accept, door, expect.stringContaining('"progressToken":"p"')]);
        // Plain HTTP clients send a wildcard unasked.
        const plain = await send(app, owner, door, sent.replace('"progressToken"', '"other"'), { headers: { accept } });
        expect([accept, plain.body.id]).toEqual([accept, 1]);
      }
    }
    for (const accept of [...wildcards, 'Text/Event-Stream', 'application/json , TEXT/EVENT-STREAM ;q=0.5']) {
      const aborter = new AbortController();
      const response = await fetch(`${app.url}${path}/mcp`, {
        headers: { ...keyed(), accept },
        signal: aborter.signal,
      });
      expect([accept, response.status, response.headers.get('content-type')]).toEqual([
        accept,
        200,
        expect.stringContaining('text/event-stream'),
      ]);
      aborter.abort();
    }
  });

  verifies('wire:lost-session', 'begins a session by "initialize" whatever session id it still sends', async () => {
    const { slug } = await externalServer(app, owner, upstream.url);
    for (const door of [`${path}/mcp`, all, `${all}?mode=search`, `/run/${slug}`]) {
      let before = 'lost';
      for (const id of ['lost', 'a.b.c', '0', 'ü', 'previous']) {
        const headers = { accept: 'application/json', 'mcp-session-id': id === 'previous' ? before : encodeURI(id) };
        const opened = await send(app, owner, door, request(0, 'initialize', hello), { headers });
        const minted = opened.headers.get('mcp-session-id') ?? '';
        expect([door, id, opened.status, minted === before]).toEqual([door, id, 200, false]);
        before = minted;
        const listed = await send(app, owner, door, request(1, 'tools/list'), {
          headers: { ...headers, 'mcp-session-id': minted },
        });
        expect([door, id, listed.status]).toEqual([door, id, 200]);
      }
      const lost = await send(app, owner, door, request(1, 'tools/list'), { headers: { 'mcp-session-id': 'lost' } });
      expect([door, lost.status]).toEqual([door, 404]);
    }
  });

  verifies('wire:authorization-header', 'may write a separator after its key', async () => {
    for (const end of [',', ', ', ';', ' ,', ',,']) {
      const headers = { authorization: `Bearer ${owner.key}${end}` };
      const { status } = await send(app, undefined, `${path}/mcp`, request(1, 'tools/list'), { headers });
      expect([end, status]).toEqual([end, 200]);
    }
  });

  verifies('wire:task-ignored', 'gets the result when it asks for a task where none was declared', async () => {
    const params = { name: 'run', arguments: { a: 1 }, task: { ttl: 1000 } };
    const call = request(1, 'tools/call', params);
    const legacyAnswer = await requested(call);
    expect(legacyAnswer.body.result.sent).toEqual({ name: 'run', arguments: { a: 1 } });
    const modernAnswer = await newest(`${path}/mcp`, 'tools/call', params);
    expect(modernAnswer.body.result.sent.task).toBeUndefined();
  });
});

describe('search mode', () => {
  const searched = (all: string, name: string, args: object | string | null = {}) =>
    ask(`${all}?mode=search`, request(1, 'tools/call', { name, arguments: args }));
  const inputSchema = {
    type: 'object',
    properties: { q: { type: 'string' }, n: { type: 'integer' }, list: { type: 'array' }, on: { type: 'boolean' } },
    required: ['q'],
    additionalProperties: false,
  };

  verifies(
    'wire:search-calls',
    'calls a tool only with an object that its schema allows, and repairs what models write',
    async () => {
      const { all, upstreams } = await connected(serves(empty, [tool('run', { inputSchema }), tool('any')]));
      const big = '9007199254740993';
      const rows: [args: unknown, sent: string | null, name?: string][] = [
        [{ q: 'a' }, '{"q":"a"}'],
        ['{"q":"a"}', '{"q":"a"}'],
        [` {"q":"a","n":${big}} `, `{"q":"a","n":${big}}`],
        [{ q: 'a', n: '5', list: '[1,2]', on: 'true' }, '{"q":"a","n":5,"list":[1,2],"on":true}'],
        [{ q: 'a', n: big }, `{"q":"a","n":${big}}`],
        [{ q: '5' }, '{"q":"5"}'],
        ['', null],
        [null, null],
        ['q=a', null],
        ['[1]', null],
        [[1], null],
        [5, null],
        [{}, null],
        [{ q: 5 }, null],
        [{ q: 'a', n: 'five' }, null],
        [{ q: 'a', other: 1 }, null],
        [undefined, null],
        [undefined, '{}', 'c0__any'],
        [{ other: '5' }, '{"other":"5"}', 'c0__any'],
      ];
      let calls = 0;
      for (const [args, sent, name = 'c0__run'] of rows) {
        const { body } = await searched(all, 'call_tool', { name, arguments: args });
        const seen = upstreams[0]?.seen.filter(({ method }) => method === 'tools/call') ?? [];
        if (sent !== null) calls += 1;
        expect([args, seen.length, body.result.isError === true]).toEqual([args, calls, sent === null]);
        // Digits beyond 2^53 are those of the text, which the stub has parsed.
        if (sent !== null) expect([args, seen.at(-1)?.params?.arguments]).toEqual([args, JSON.parse(sent)]);
        else expect(body.result.content[0].text).toMatch(/was not called/);
      }
      for (const args of [
        { name: 'c0__run', q: 'a' },
        { name: 'c0__run', args: { q: 'a' } },
        { name: 'c0__run', parameters: { q: 'a' } },
        { name: 'c0__run', arguments: { q: 'a' }, timeout: 5 },
        { tool: 'c0__run', arguments: { q: 'a' } },
        '{"name":"c0__run"}',
        null,
      ]) {
        const { body } = await searched(all, 'call_tool', args);
        expect([args, body.result.isError, body.result.content[0].text]).toEqual([
          args,
          true,
          expect.stringMatching(/call_tool takes \{"name"/),
        ]);
      }
      expect(upstreams[0]?.count('tools/call')).toBe(calls);
    },
  );

  verifies(
    'wire:search-hidden',
    'neither finds, nor describes, nor calls what its server hides from models',
    async () => {
      const hidden = [
        { ui: { visibility: ['app'] } },
        { ui: { visibility: [] } },
        { ui: { visibility: 'app', resourceUri: 'ui://x' } },
        { 'ui/visibility': ['app'] },
        { 'openai/visibility': 'private' },
      ];
      const shown = [
        { ui: { visibility: ['model', 'app'] } },
        { ui: { resourceUri: 'ui://x' } },
        { visibility: 'app' },
        { 'openai/visibility': 'public' },
        { ui: null },
      ];
      const named = (prefix: string) => (_meta: object, at: number) => tool(`${prefix}_${at}`, { _meta });
      const { all, upstreams } = await connected(
        serves(empty, [...hidden.map(named('hidden')), ...shown.map(named('shown'))]),
      );
      const { body } = await searched(all, 'search_tools', { query: '', limit: 50 });
      const names = body.result.structuredContent.tools.map(({ name }: { name: string }) => name);
      expect(names.sort()).toEqual(shown.map((_, at) => `c0__shown_${at}`));
      for (const [prefix, isShown] of [
        ['hidden', false],
        ['shown', true],
      ] as const) {
        for (const at of shown.keys()) {
          for (const verb of ['describe_tool', 'call_tool']) {
            const answered = await searched(all, verb, { name: `c0__${prefix}_${at}` });
            expect([prefix, at, verb, answered.body.result.isError !== true]).toEqual([prefix, at, verb, isShown]);
          }
        }
      }
      expect(upstreams[0]?.count('tools/call')).toBe(shown.length);
      // The page of an app calls its tools by their own names.
      const page = await searched(all, 'c0__hidden_0');
      expect([page.body.result.isError, upstreams[0]?.count('tools/call')]).toEqual([undefined, shown.length + 1]);
    },
  );
});
