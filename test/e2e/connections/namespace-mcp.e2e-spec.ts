import { describe, expect } from '@jest/globals';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { NamespaceServers } from '../../../src/modules/connections/namespace/namespace-servers.js';
import type { AggregateChannel } from '../../../src/mcp/aggregate/aggregate-channel.js';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { startElicitationV2 } from '../../support/special-upstreams/elicitation-upstreams.js';
import { startRich } from '../../support/special-upstreams/rich-upstream.js';
import { mcpAccept, request, send, times, toolCall, type Answer, type Json } from '../../support/mcp/calls.js';
import { messagesOf, modern, post } from '../../support/mcp/mcp-calls.js';
import { seedConnections } from '../../support/database/connection-rows.js';
import { publishExternal } from '../../support/releases/current-releases.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { refusedPort, startFaulty } from '../../support/special-upstreams/faulty-upstreams.js';
import { startSdkV1, startSdkV2 } from '../../support/special-upstreams/sdk-upstream.js';
import { received, LoggingUpstream, WATCHED } from '../../support/special-upstreams/logging-upstream.js';
import { until } from '../../support/until.js';
import { closing, connectV1, start, textOf } from '../../support/upstream/upstream-clients.js';
import { RAW_TOOL_RESULT, textResult, type ToolDef } from '../../support/upstream/upstream.js';
import { longVerifies, verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
const other = testAccount(app);

const keyed = (): RequestInit => ({ headers: { authorization: `Bearer ${owner.key}` } });

const modernHeaders = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'old__echo' };
const modernCall = (params: object) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    ...params,
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    },
  },
});

/** Asks the endpoint of a namespace. */
function ask(namespace: string, message: object, query = ''): Promise<Answer> {
  return send(app, owner, `/connect/${namespace}/.mcp${query}`, message, { headers: mcpAccept });
}

async function list(namespace: string, query = '', cursor?: string): Promise<Json> {
  const { status, body } = await ask(
    namespace,
    request(1, 'tools/list', cursor === undefined ? {} : { cursor }),
    query,
  );
  expect(status).toBe(200);
  return body.result;
}

const namesIn = (result: Json): string[] => (result.tools as { name: string }[]).map(({ name }) => name);

/** Connects upstreams by connection id, and waits until the endpoint knows them all. */
async function namespaceWith(connections: Record<string, string>): Promise<string> {
  const namespace = await createNamespace(app, owner);
  for (const [connectionId, mcpUrl] of Object.entries(connections)) {
    await createConnection(app, owner, { mcpUrl }, { namespace, connectionId });
  }
  return namespace;
}

/** Everything of a list that ends when `isWhole`; the endpoint hears of new connections a moment later. */
function listUntil(namespace: string, isWhole: (result: Json) => boolean, query = ''): Promise<Json> {
  return until(async () => {
    const result = await list(namespace, query);
    return isWhole(result) && result;
  }, 'the endpoint lists what is connected');
}

const tool = (name: string, description = ''): ToolDef => ({ name, description, inputSchema: { type: 'object' } });
const says = (name: string, text: string): ToolDef => ({ ...tool(name), call: () => textResult(text) });

describe('one server of many', () => {
  verifies(
    'union:all-connections',
    'tools of url and registry connections are listed and called under their names',
    async () => {
      const [one, two] = [await start(), await start({ tools: [says('hello', 'from the registry')] })];
      const namespace = await namespaceWith({ first: one.url });
      const server = await createServer(app, owner);
      await publishExternal(app, server, two.url);
      expect((await app.as(owner).put(`/connect/${namespace}/second`, { server })).status).toBe(201);
      const result = await listUntil(namespace, (found) => namesIn(found).includes('second__hello'));
      expect(namesIn(result)).toEqual(expect.arrayContaining(['first__echo', 'first__repo_issues_create']));
      expect(namesIn(result)).toHaveLength(14);
      expect(result._meta).toBeUndefined();
      const echo = (result.tools as Json[]).find(({ name }: Json) => name === 'first__echo');
      expect(echo).toMatchObject({ title: 'Echo', annotations: { readOnlyHint: true } });
      expect((await ask(namespace, toolCall(5, 'first.raw'))).text).toBe(
        `{"jsonrpc":"2.0","id":5,"result":${RAW_TOOL_RESULT}}`,
      );
      expect(textOf((await ask(namespace, toolCall(6, 'second.hello'))).body.result)).toBe('from the registry');
      const deep = await ask(namespace, toolCall(7, 'first__repo_issues_create', { title: 'x' }));
      expect(textOf(deep.body.result)).toBe('Created issue: x');
      const short = await send(app, owner, `/${namespace}/.mcp`, toolCall(8, 'second.hello'), { headers: mcpAccept });
      expect(short.status).toBe(200);
      const { body } = await app.as(owner).get(`/connect/${namespace}/first/logs`);
      expect(body.invocations[0]).toMatchObject({
        tool: 'repo.issues.create',
        request: { url: expect.stringMatching(/\.mcp$/) },
      });
    },
  );

  verifies('union:all-connections', 'prompts and resources are found and read under their names', async () => {
    const namespace = await namespaceWith({ one: (await start()).url, two: (await start()).url });
    await listUntil(namespace, (found) => namesIn(found).length === 26);
    const ask1 = async (method: string, params?: object): Promise<Json> =>
      (await ask(namespace, request(1, method, params))).body;
    const { prompts } = (await ask1('prompts/list')).result;
    expect(prompts.map(({ name }: Json) => name)).toEqual(['two__review', 'one__review']);
    const prompt = { name: 'one.review', arguments: { language: 'rust' } };
    expect((await ask1('prompts/get', prompt)).result.messages).toHaveLength(1);
    const { resources } = (await ask1('resources/list')).result;
    expect(resources).toHaveLength(4);
    const uri = 'connection://two/docs://readme';
    expect(resources.map(({ uri }: Json) => uri)).toContain(uri);
    expect((await ask1('resources/read', { uri })).result.contents[0]).toMatchObject({ uri, text: '# Read me' });
    const templates = (await ask1('resources/templates/list')).result.resourceTemplates;
    expect(templates[0].uriTemplate).toBe('connection://two/docs://pages/{slug}');
    const argument = { name: 'language', value: 'p' };
    const complete = await ask1('completion/complete', { ref: { type: 'ref/prompt', name: 'one.review' }, argument });
    expect(complete.result.completion.values).toEqual(['php', 'python']);
    const ref = { type: 'ref/resource', uri: 'connection://one/docs://pages/{slug}' };
    const slug = await ask1('completion/complete', { ref, argument: { name: 'slug', value: 'pr' } });
    expect(slug.result.completion.values).toEqual(['pricing', 'privacy']);
    for (const [method, params] of [
      ['tools/call', { name: 'three.echo' }],
      ['tools/call', { name: 'echo' }],
      ['prompts/get', { name: 'review' }],
      ['resources/read', { uri: 'docs://readme' }],
      ['resources/read', { uri: 'connection://three/docs://readme' }],
    ] as const) {
      expect((await ask1(method, params)).error).toMatchObject({
        code: -32602,
        message: expect.stringMatching(/^Unknown/),
      });
    }
    expect((await ask1('no/such')).error.code).toBe(-32601);
  });

  verifies('union:all-connections', 'the published clients of both generations list and call', async () => {
    const [one, two] = [
      closing(await startSdkV1({ stateful: true, json: false })),
      closing(await startSdkV2({ legacy: 'reject' })),
    ];
    const namespace = await namespaceWith({ old: one.url, new: two.url });
    await listUntil(namespace, (found) => namesIn(found).length === 2);
    const url = `${app.url}/connect/${namespace}/.mcp`;
    const requestInit = keyed();
    const second = closing(new ClientV2({ name: 'spec', version: '1.0.0' }));
    await second.connect(new TransportV2(new URL(url), { requestInit }));
    for (const client of [await connectV1(url, {}, requestInit), second]) {
      expect(client.getServerVersion()).toMatchObject({ name: `slipway/${namespace}` });
      expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['new__echo', 'old__echo']);
      for (const name of ['new__echo', 'old__echo']) {
        expect(textOf(await client.callTool({ name, arguments: { message: name } }))).toBe(name);
      }
    }
  });
});

describe('names', () => {
  verifies('union:names', 'model APIs accept every listed name, and each is called as its tool', async () => {
    const tools = [says('repo.search', 'dotted'), says('plain', 'plain'), says('a/b', 'slashed'), says('a.b', 'other')];
    const long = says('x'.repeat(100), 'long');
    const namespace = await namespaceWith({
      'my.conn': (await start({ tools: [...tools, long] })).url,
      my: (await start({ tools: [says('conn', 'of my')] })).url,
    });
    const result = await listUntil(namespace, (found) => namesIn(found).length === 6);
    const names = namesIn(result);
    for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(names.slice(0, 3)).toEqual(['my__conn', 'my_conn__repo_search', 'my_conn__plain']);
    const answers = ['of my', 'dotted', 'plain', 'slashed', 'other', 'long'];
    for (const [i, name] of names.entries()) {
      expect(textOf((await ask(namespace, toolCall(i, name))).body.result)).toBe(answers[i]);
    }
    for (const [name, text] of [
      ['my.conn.repo.search', 'dotted'],
      [`my.conn.${long.name}`, 'long'],
      ['repo.search', 'dotted'],
      ['plain', 'plain'],
    ]) {
      expect(textOf((await ask(namespace, toolCall(7, name))).body.result)).toBe(text);
    }
    const { body } = await app.as(owner).get(`/connect/${namespace}/my.conn/logs`);
    expect(new Set(body.invocations.map(({ tool: name }: Json) => name))).toEqual(
      new Set(['repo.search', 'plain', 'a/b', 'a.b', long.name]),
    );
  });

  verifies('union:names', 'an own name that two connections have, or a failed one may have, is unknown', async () => {
    const [one, two] = [
      await start({ tools: [says('same', 'one'), says('only', 'only')] }),
      await start({ tools: [tool('same')] }),
    ];
    const namespace = await namespaceWith({ one: one.url, two: two.url });
    await listUntil(namespace, (found) => namesIn(found).length === 3);
    expect(textOf((await ask(namespace, toolCall(1, 'only'))).body.result)).toBe('only');
    expect((await ask(namespace, toolCall(2, 'same'))).body.error).toMatchObject({ code: -32602 });
    await createConnection(app, owner, { mcpUrl: await refusedPort() }, { namespace, connectionId: 'down' });
    await listUntil(namespace, (found) => found._meta?.['slipway/failed'] !== undefined);
    expect((await ask(namespace, toolCall(3, 'only'))).body.error).toMatchObject({ code: -32602 });
  });

  verifies('union:separator', 'a separator or mode it does not know is refused', async () => {
    const namespace = await createNamespace(app, owner);
    for (const query of ['?separator=-', '?separator=', '?mode=other']) {
      const { status, body } = await ask(namespace, request(1, 'tools/list'), query);
      expect([status, body.error.code]).toEqual([400, -32600]);
    }
  });
});

describe('bounds', () => {
  verifies('union:failures', 'one that is down, hangs or waits for its user fails nothing', async () => {
    const silent = closing(await startFaulty('silent'));
    const closed = await start({ requireHeaders: { authorization: 'Bearer x' } });
    const namespace = await namespaceWith({
      fine: (await start({ tools: [tool('t')] })).url,
      waits: closed.url,
      down: await refusedPort(),
    });
    await seedConnections(app, namespace, [{ connectionId: 'hangs', mcpUrl: silent.url }]);
    const seen = closed.requests.length;
    const result = await listUntil(namespace, (found) => (found._meta?.['slipway/failed'] as Json[])?.length === 3);
    expect(namesIn(result)).toEqual(['fine__t']);
    expect(result._meta['slipway/failed']).toEqual([
      { connectionId: 'hangs', state: 'error', message: expect.stringMatching(/time/) },
      { connectionId: 'down', state: 'error', message: expect.stringMatching(/Nothing listens/) },
      { connectionId: 'waits', state: 'auth_required', message: expect.stringMatching(/401/) },
    ]);
    expect(closed.requests).toHaveLength(seen);
    expect((await ask(namespace, toolCall(1, 'fine.t'))).body.result).toBeDefined();
    expect((await ask(namespace, toolCall(1, 'down.t'))).body.error.message).toMatch(/Nothing listens/);
  });

  verifies('union:pages', 'a page whose items are long ends before it grows beyond 16 MB', async () => {
    const { url } = await start({ tools: [tool('big', 'x'.repeat(7 * 1024 * 1024))] });
    const namespace = await namespaceWith({ one: url, two: url, three: url });
    const first = await listUntil(namespace, (result) => result._meta === undefined && namesIn(result).length === 2);
    expect(namesIn(first)).toEqual(['three__big', 'two__big']);
    const second = await list(namespace, '', first.nextCursor);
    expect([namesIn(second), second.nextCursor]).toEqual([['one__big'], undefined]);
  });

  longVerifies('union:pages', 'a list of more than a hundred connections continues by cursor', async () => {
    const upstream = await start({ tools: [tool('t')] });
    const namespace = await createNamespace(app, owner);
    const ids = await seedConnections(
      app,
      namespace,
      times(230, (i) => ({ connectionId: `c-${i}`, mcpUrl: upstream.url })),
    );
    const listed = async () => {
      const all: string[][] = [];
      let cursor: string | undefined;
      do {
        const result = await list(namespace, '', cursor);
        all.push(namesIn(result));
        cursor = result.nextCursor as string | undefined;
      } while (cursor !== undefined);
      return all;
    };
    // Again where some of them were not in time on a busy machine.
    const pages = await until(async () => {
      const all = await listed();
      return all.flat().length === ids.length && all;
    }, 'every connection is listed');
    expect(pages.map(({ length }) => length)).toEqual([100, 100, 30]);
    expect(pages.flat()).toEqual([...ids].reverse().map((id) => `${id}__t`));
    const wrong = await ask(namespace, request(1, 'tools/list', { cursor: 'nonsense' }));
    expect(wrong.body.error).toMatchObject({ code: -32602 });
  });
});

describe('a server with everything', () => {
  const rich = async (instructions: string) => closing(await startRich(instructions)).url;
  const capable = { capabilities: { elicitation: {} } };
  const names = ({ tools }: { tools: { name: string }[] }) => tools.map(({ name }) => name).sort();

  verifies('union:links', 'resources that results, prompts and updates name are read under these URIs', async () => {
    const namespace = await namespaceWith({ one: await rich('') });
    const client = await connectV1(`${app.url}/connect/${namespace}/.mcp`, {}, keyed());
    const updated: string[] = [];
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void updated.push(params.uri));
    const { content } = (await client.callTool({ name: 'one__links' })) as Json;
    const uris = [content[0].uri, content[1].resource.uri];
    expect(uris).toEqual(['connection://one/demo://linked', 'connection://one/demo://embedded']);
    const { messages } = await client.getPrompt({ name: 'one__any' });
    expect(messages[0]?.content).toMatchObject({ resource: { uri: uris[1], text: 'the embedded one' } });
    for (const uri of uris) {
      expect((await client.readResource({ uri })).contents).toEqual([
        { uri, text: uri.slice('connection://one/'.length) },
      ]);
    }
    expect(updated).toEqual([uris[0]]);
  });

  verifies('union:capabilities', 'a tool for clients that can be asked is listed to these alone', async () => {
    const namespace = await namespaceWith({ one: await rich('') });
    const [all, one] = [`${app.url}/connect/${namespace}/.mcp`, `${app.url}/connect/${namespace}/one/mcp`];
    const second = async (url: string, options: object) => {
      const client = closing(
        new ClientV2({ name: 'spec', version: '1.0.0' }, { ...options, versionNegotiation: { mode: 'auto' } }),
      );
      await client.connect(new TransportV2(new URL(url), { requestInit: keyed() }));
      return client;
    };
    const first = async (options: object) => {
      const client = closing(new ClientV1({ name: 'spec', version: '1.0.0' }, options));
      await client.connect(new TransportV1(new URL(all), { requestInit: keyed() }));
      return client;
    };
    for (const client of [await first(capable), await second(all, capable)]) {
      expect(names(await client.listTools())).toEqual(['one__ask', 'one__links']);
    }
    for (const client of [await first({}), await second(all, {})]) {
      expect(names(await client.listTools())).toEqual(['one__links']);
    }
    expect(names(await (await second(one, capable)).listTools())).toEqual(['ask', 'links']);
    expect(names(await (await second(one, {})).listTools())).toEqual(['links']);
  });

  verifies(
    'union:any-method',
    'a log level is set, and a method is handled by the server that supports it',
    async () => {
      const namespace = await namespaceWith({ one: await rich(''), two: (await start()).url });
      const client = await connectV1(`${app.url}/connect/${namespace}/.mcp`, {}, keyed());
      const heard: unknown[] = [];
      client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void heard.push(params.data));
      expect(client.getServerCapabilities()).toMatchObject({ logging: {}, experimental: { 'acme/ping': { v: 1 } } });
      await client.setLoggingLevel('error');
      await client.callTool({ name: 'one__links' });
      expect(heard).toEqual(['error: called']);
      expect((await ask(namespace, request(1, 'acme/ping'))).body.result).toEqual({ pong: true });
      expect((await ask(namespace, request(2, 'acme/other'))).body.error.code).toBe(-32601);
    },
  );

  verifies(
    'mcp:parked',
    'a requestState that no call waits for runs nothing at a server of an earlier revision',
    async () => {
      const upstream = closing(await start());
      const namespace = await namespaceWith({ old: upstream.url });
      const echo = { name: 'old__echo', arguments: { message: 'a' } };
      const modern = (params: object) =>
        send(app, owner, `/connect/${namespace}/.mcp`, modernCall(params), {
          headers: { ...mcpAccept, ...modernHeaders },
        });
      expect((await modern(echo)).body.result.content[0].text).toContain('a');
      const calls = upstream.requests.length;
      const { body } = await modern({ ...echo, requestState: 'sw1.pending.k1.changed' });
      expect(body.error).toEqual({ code: -32602, message: expect.stringContaining('does not wait for input') });
      expect(upstream.requests).toHaveLength(calls);
    },
  );
});

describe('search mode', () => {
  verifies('union:search', 'three tools replace a thousand', async () => {
    const many = times(500, (i) => tool(`tool_${i}`, `Does the thing number ${i} to a widget`));
    const wanted: ToolDef = {
      ...says('create_invoice', '{"big":9007199254740993}'),
      description: 'Bills a customer for work done',
      inputSchema: { type: 'object', properties: { customer: { type: 'string' } } },
      'x-own': 1.5,
    };
    const [one, two] = [await start({ tools: many }), await start({ tools: [...many, wanted] })];
    const namespace = await namespaceWith({ one: one.url, two: two.url });
    await listUntil(namespace, (found) => namesIn(found).length === 1_001);
    const { tools } = await list(namespace, '?mode=search');
    expect(tools.map(({ name }: Json) => name)).toEqual(['search_tools', 'describe_tool', 'call_tool']);
    expect(JSON.stringify(tools).length).toBeLessThan(3_000);
    const use = async (name: string, args: object, meta?: object): Promise<Json> =>
      (await ask(namespace, toolCall(1, name, args, meta), '?mode=search')).body.result;

    const found = await use('search_tools', { query: 'bill a customer' });
    expect(found.structuredContent.searched).toBe(1_001);
    expect(found.structuredContent.tools[0].name).toBe('two__create_invoice');
    expect(found.structuredContent.tools).toHaveLength(10);
    expect(JSON.parse(textOf(found))).toEqual(found.structuredContent);
    const widgets = await use('search_tools', { query: 'widget 77', limit: 3 });
    expect(widgets.structuredContent.tools.map(({ name }: Json) => name).slice(0, 2)).toEqual([
      'one__tool_77',
      'two__tool_77',
    ]);
    expect(await use('search_tools', { query: 'widget 77', limit: 3 })).toEqual(widgets);

    const described = await use('describe_tool', { name: 'two__create_invoice' });
    expect(described.structuredContent.tool).toEqual({
      name: 'two__create_invoice',
      description: wanted.description,
      inputSchema: wanted.inputSchema,
      'x-own': 1.5,
    });
    const called = await use('call_tool', { name: 'two.create_invoice', arguments: { customer: 'c' } });
    expect(textOf(called)).toBe('{"big":9007199254740993}');
    expect(await use('two.create_invoice', {})).toEqual(called);
    const sent = two.requests.map(({ body }) => body as Json).filter((body) => body?.method === 'tools/call');
    expect(sent[0].params).toMatchObject({ name: 'create_invoice', arguments: { customer: 'c' } });
    for (const [name, args] of [
      ['search_tools', {}],
      ['search_tools', { query: 'x', limit: 51 }],
      ['describe_tool', { name: 'two.none' }],
      ['describe_tool', {}],
      ['call_tool', { name: 'nowhere.none' }],
      ['call_tool', {}],
    ] as const) {
      expect(await use(name, args)).toMatchObject({
        isError: true,
        content: [{ type: 'text', text: expect.stringMatching(/\w/) }],
      });
    }
  });
});

describe('changes', () => {
  verifies(
    'mcp:own-stream',
    'log messages and updates in sessions at the connections reach the client that owns them',
    async () => {
      const talker = new LoggingUpstream();
      const upstream = closing(await startSdkV1({ stateful: true, json: false, make: talker.make }));
      const namespace = await namespaceWith({ one: upstream.url });
      await listUntil(namespace, (found) => namesIn(found).includes('one__talk'));
      // By the URI of the namespace, and by the server's own.
      for (const uri of [`connection://one/${WATCHED}`, WATCHED]) {
        const got = await received(talker, `${app.url}/connect/${namespace}/.mcp`, keyed(), { tool: 'one__talk', uri });
        expect(got).toEqual([uri, 'later', 'one', 'one', 'two', 'two'].sort());
      }
    },
  );

  verifies('mcp:own-stream', 'a client of 2026-07-28 that can be asked receives the updates of its calls', async () => {
    const talker = new LoggingUpstream();
    const upstream = closing(await startSdkV1({ stateful: true, json: false, make: talker.make }));
    const namespace = await namespaceWith({ one: upstream.url });
    await listUntil(namespace, (found) => namesIn(found).includes('one__talk'));
    const sent = (method: string, params: Record<string, unknown>) => {
      const { body, headers } = modern(method, params, { capabilities: { elicitation: {} } });
      return post(`${app.url}/connect/${namespace}/.mcp`, body, { ...headers, authorization: `Bearer ${owner.key}` });
    };
    for (const uri of [`connection://one/${WATCHED}`, WATCHED]) {
      const filter = { notifications: { resourceSubscriptions: [uri] } };
      const stream = messagesOf(await sent('subscriptions/listen', filter));
      expect((await stream.next()).value.params.notifications).toEqual({ resourceSubscriptions: [uri] });
      expect((await sent('tools/call', { name: 'one__talk' })).status).toBe(200);
      expect((await stream.next()).value.params.uri).toBe(uri);
      await stream.return();
    }
  });

  verifies('union:any-method', 'the log level of a call reaches servers of 2026-07-28 only', async () => {
    const [old, recent] = [await start(), await start({ modernOnly: true })];
    const namespace = await namespaceWith({ old: old.url, recent: recent.url });
    await listUntil(namespace, (found) => ['old__echo', 'recent__echo'].every((name) => namesIn(found).includes(name)));
    for (const [connection, upstream] of Object.entries({ old, recent })) {
      const name = `${connection}__echo`;
      const message = modernCall({ name, arguments: { message: 'm' } });
      Object.assign(message.params._meta, { 'io.modelcontextprotocol/logLevel': 'debug', own: 1 });
      const headers = { ...mcpAccept, ...modernHeaders, 'mcp-name': name };
      const { body } = await send(app, owner, `/connect/${namespace}/.mcp`, message, { headers });
      expect(textOf(body.result)).toBe('m');
      const [call] = upstream.requests.filter(({ raw }) => raw.includes('tools/call'));
      const { _meta } = (call.body as Json).params;
      expect(_meta['io.modelcontextprotocol/logLevel']).toBe(connection === 'old' ? undefined : 'debug');
      expect(_meta.own).toBe(1);
    }
  });

  verifies('union:list-changed', 'an added or removed connection causes a list change', async () => {
    const namespace = await namespaceWith({ one: (await start()).url });
    const [row] = await app.database.query<{ id: string }[]>('SELECT id FROM namespaces WHERE name = $1', [namespace]);
    const union: AggregateChannel = app
      .get(NamespaceServers)
      .find({ id: row.id, name: namespace }, { separator: '.', isSearched: false });
    const heard: string[] = [];
    const listening = await union.listen(
      { toolsListChanged: true, promptsListChanged: true },
      { onNotification: (_text, method) => heard.push(method), onEnd: () => undefined },
      {},
    );
    expect(listening.honoured).toEqual({ toolsListChanged: true, promptsListChanged: true });
    await createConnection(app, owner, { mcpUrl: (await start()).url }, { namespace, connectionId: 'two' });
    await until(() => heard.includes('notifications/tools/list_changed'), 'the listener hears of the new connection');
    expect(heard).not.toContain('notifications/resources/list_changed');
    heard.length = 0;
    await app.as(owner).delete(`/connect/${namespace}/two`);
    await until(() => heard.includes('notifications/prompts/list_changed'), 'the listener hears that it went');
    await listening.close();
  });
});

/** The published clients, told of changes and able to answer: v1 in a session, v2 in the newest revision. */
const listeners: [string, (url: string, changed: () => void) => Promise<Pick<ClientV1, 'callTool'>>][] = [
  [
    'v1',
    async (url, changed) => {
      const client = closing(new ClientV1({ name: 'spec', version: '1.0.0' }, { capabilities: { elicitation: {} } }));
      client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Nina' } }));
      client.setNotificationHandler(ToolListChangedNotificationSchema, changed);
      await client.connect(new TransportV1(new URL(url), { requestInit: keyed() }));
      return client;
    },
  ],
  [
    'v2',
    async (url, changed) => {
      const versionNegotiation = { mode: 'auto' as const };
      const client = new ClientV2(
        { name: 'spec', version: '1.0.0' },
        { capabilities: { elicitation: {} }, versionNegotiation },
      );
      client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Nina' } }));
      client.setNotificationHandler('notifications/tools/list_changed', changed);
      await closing(client).connect(new TransportV2(new URL(url), { requestInit: keyed() }));
      closing(await client.listen({ toolsListChanged: true }));
      return client as unknown as Pick<ClientV1, 'callTool'>;
    },
  ],
];

describe.each(listeners)('a listening client %s', (_, connect) => {
  verifies(
    ['union:list-changed', 'union:all-connections'],
    'receives tool changes and requests of one of many servers',
    async () => {
      const upstream = await startElicitationV2('stateless');
      const namespace = await namespaceWith({ quiet: (await start()).url, asks: closing(upstream).url });
      await listUntil(namespace, (found) => namesIn(found).includes('asks__ask'));
      let changes = 0;
      const client = await connect(`${app.url}/connect/${namespace}/.mcp`, () => void (changes += 1));
      expect(textOf(await client.callTool({ name: 'asks.ask' }))).toBe('Hello Nina');
      await until(() => {
        upstream.toolsChanged();
        return changes > 0;
      }, 'the client hears that the tools of one server changed');
    },
  );
});

describe('ownership', () => {
  verifies(
    'union:own',
    'foreign and missing namespaces have the same answer, and no name reaches another namespace',
    async () => {
      const namespace = await namespaceWith({ mine: (await start()).url });
      const theirs = await createNamespace(app, other);
      await createConnection(
        app,
        other,
        { mcpUrl: (await start()).url },
        { namespace: theirs, connectionId: 'secret' },
      );
      const foreign = await send(app, owner, `/connect/${theirs}/.mcp`, request(1, 'tools/list'), {
        headers: mcpAccept,
      });
      const missing = await send(app, owner, `/connect/${uniqueName()}/.mcp`, request(1, 'tools/list'), {
        headers: mcpAccept,
      });
      expect([foreign.status, foreign.text]).toEqual([404, missing.text]);
      expect(foreign.body).toMatchObject({ jsonrpc: '2.0', id: null });
      expect((await send(app, undefined, `/connect/${namespace}/.mcp`, request(1, 'tools/list'))).status).toBe(401);
      await listUntil(namespace, (found) => namesIn(found).length === 13);
      for (const name of ['secret.echo', `${theirs}.secret.echo`, `../${theirs}/secret.echo`]) {
        expect((await ask(namespace, toolCall(1, name))).body.error).toMatchObject({ code: -32602 });
      }
    },
  );
});
