import { Injectable, Module, Scope } from '@nestjs/common';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  AfterCall,
  asSystem,
  BeforeCall,
  defineModule,
  ForbiddenError,
  type HookedCall,
  Tools,
} from '../../../src/extension.js';
import { until } from '../../support/until.js';
import { startApp, testAccount, testApp } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { mcp, request, send, toolCall, type Answer } from '../../support/mcp/calls.js';
import { publishExternal } from '../../support/releases/releases.js';
import { answer, legacy, startWire, type WireUpstream } from '../../support/special-upstreams/wire-upstream.js';

type Values = Record<string, unknown>;
let before: (call: HookedCall) => unknown;
let after: (call: HookedCall, result: Values) => unknown;
let earlier: (call: HookedCall) => unknown;
let later: (call: HookedCall) => unknown;

@Injectable()
class Office {
  constructor(readonly tools: Tools) {}

  @BeforeCall({ timeoutMs: 100 })
  check(call: HookedCall) {
    return before(call);
  }

  @BeforeCall({ order: 1, timeoutMs: 100, onFailure: 'ignore' })
  last(call: HookedCall) {
    return later(call);
  }

  @BeforeCall({ order: -1, timeoutMs: 30_000 })
  first(call: HookedCall) {
    return earlier(call);
  }

  @AfterCall({ timeoutMs: 100 })
  look(call: HookedCall, result: Values) {
    return after(call, result);
  }
}

@Module({ providers: [Office] })
class OfficeModule {}

const app = testApp({}, {}, [defineModule({ name: 'office', module: () => OfficeModule })]);
const owner = testAccount(app);
let upstream: WireUpstream;
let namespace: string;
let server: string;
let connection: string;
let run: string;

beforeAll(async () => {
  upstream = await startWire(
    legacy((message, res) => {
      if (message.method === 'tools/list')
        return answer(res, message, { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] });
      const text = JSON.stringify(message.params?.arguments ?? {});
      answer(res, message, { content: [{ type: 'text', text }] });
    }),
  );
  namespace = await createNamespace(app, owner);
  server = await createServer(app, owner, { namespace });
  run = new URL(String((await publishExternal(app, owner, server, { upstreamUrl: upstream.url })).mcpUrl)).pathname;
  const url = encodeURIComponent(server);
  await app.as(owner).patch(`/servers/${url}/runtime`, { logPayloads: true });
  connection = (await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace, connectionId: 'c' })).path;
  await createConnection(app, owner, { server }, { namespace, connectionId: 'registered' });
});

afterAll(() => upstream.close());

beforeEach(() => {
  earlier = before = later = () => undefined;
  after = () => undefined;
});

const args = { text: 'hello' };
const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'echo' };
const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'spec', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** The result of a call, or the sentence of its rejection. */
function outcomeOf({ body }: Answer): { text?: string; rejected?: string } {
  const result = body.result ?? body;
  const message: unknown = body.error?.message ?? body.message;
  if (message) return { rejected: String(message) };
  const { text } = result.content[0];
  return result.isError ? { rejected: text } : { text };
}

const ways: [way: string, call: () => Promise<Answer>, target: () => string][] = [
  ['REST', () => send(app, owner, `${connection}/.tools/echo`, args), () => `${namespace}/c`],
  ['MCP', () => mcp(app, owner, connection, toolCall(1, 'echo', args)), () => `${namespace}/c`],
  [
    'MCP 2026-07-28',
    () => mcp(app, owner, connection, toolCall(1, 'echo', args, meta), { headers: modern }),
    () => `${namespace}/c`,
  ],
  [
    'a namespace',
    () => send(app, owner, `/connect/${namespace}/.mcp`, toolCall(1, 'c__echo', args)),
    () => `${namespace}/c`,
  ],
  [
    'a namespace in search mode',
    () =>
      send(
        app,
        owner,
        `/connect/${namespace}/.mcp?mode=search`,
        toolCall(1, 'call_tool', { name: 'c__echo', arguments: args }),
      ),
    () => `${namespace}/c`,
  ],
  [
    'a connection to a server of the registry',
    () => send(app, owner, `/connect/${namespace}/registered/.tools/echo`, args),
    () => `${namespace}/registered`,
  ],
  ['the run endpoint', () => mcp(app, owner, run, toolCall(1, 'echo', args)), () => server],
];

describe.each(ways)('a call by %s', (_way, call, target) => {
  const calls = () => upstream.count('tools/call');

  it('is described to its hooks, and goes on if they return nothing', async () => {
    const seen: unknown[] = [];
    before = (hooked) => void seen.push(hooked);
    after = (hooked, result) => void seen.push(result);
    expect(outcomeOf(await call())).toEqual({ text: JSON.stringify(args) });
    expect(seen).toMatchObject([
      { tool: 'echo', arguments: args, target: { name: target() }, caller: { account: owner.id, kind: 'key' } },
      { content: [{ text: JSON.stringify(args) }] },
    ]);
  });

  it('is rejected with a sentence, and does not reach the server', async () => {
    const count = calls();
    before = () => {
      throw new ForbiddenError('Not outside working hours');
    };
    expect(outcomeOf(await call())).toEqual({ rejected: 'Not outside working hours' });
    expect(calls()).toBe(count);
  });

  it('sends replaced arguments, and returns a replaced result', async () => {
    before = ({ arguments: { text } }) => ({ text: `${String(text)} world` });
    later = ({ arguments: all }) => ({ ...all, more: 1 });
    after = (hooked, { content }) => ({ content, structuredContent: { sent: hooked.arguments } });
    const replaced = { text: 'hello world', more: 1 };
    const answered = await call();
    expect(outcomeOf(answered)).toEqual({ text: JSON.stringify(replaced) });
    expect((answered.body.result ?? answered.body).structuredContent).toEqual({ sent: replaced });
  });

  it.each<[fault: string, hook: () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('a secret');
      },
    ],
    ['hangs', () => new Promise(() => undefined)],
    ['returns nonsense', () => 'nonsense'],
  ])('is rejected by a hook that %s, unless the hook may fail', async (_fault, hook) => {
    const count = calls();
    before = hook;
    expect(outcomeOf(await call())).toEqual({ rejected: expect.stringContaining('The module OfficeModule') });
    expect(calls()).toBe(count);
    before = () => undefined;
    later = hook;
    expect(outcomeOf(await call())).toEqual({ text: JSON.stringify(args) });
    after = hook;
    expect(outcomeOf(await call())).toEqual({ rejected: expect.stringContaining('The module OfficeModule') });
  });
});

it('does not send a call whose names differ for other readers', async () => {
  before = ({ tool }) => {
    if (tool !== 'echo') throw new ForbiddenError('Only echo');
  };
  const count = upstream.count('tools/call');
  const withParams = (params: string) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`;
  const twice = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete","name":"echo"}}';
  const otherCase = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","Name":"delete"}}';
  const args = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1,"a":2}}}';
  for (const message of [twice, otherCase, args, ...['{"name":7}', '{"name":"echo","arguments":[]}'].map(withParams)]) {
    expect((await mcp(app, owner, connection, message)).body).toMatchObject({ error: { code: -32602 } });
  }
  expect(upstream.count('tools/call')).toBe(count);
});

it.each([Scope.REQUEST, Scope.TRANSIENT])('fails the start in a provider of the scope %s', async (scope) => {
  @Injectable({ scope })
  class Scoped {
    @BeforeCall()
    check() {
      return undefined;
    }
  }
  @Module({ providers: [Scoped] })
  class ScopedModule {}
  const scoped = defineModule({ name: 'scoped', module: () => ScopedModule });
  await expect(startApp({}, {}, [scoped])).rejects.toThrow('ScopedModule.Scoped.check is never called');
});

it('runs no hook of a module for calls that the module makes', async () => {
  const { tools } = app.get(Office);
  const made: unknown[] = [];
  earlier = async ({ arguments: sent }) => {
    const result = await tools.call(asSystem, { connection: connection.slice('/connect/'.length) }, 'echo', {
      inner: sent,
    });
    made.push(result.content);
  };
  expect(outcomeOf(await send(app, owner, `${connection}/.tools/echo`, args))).toEqual({ text: JSON.stringify(args) });
  expect(made).toEqual([[{ type: 'text', text: JSON.stringify({ inner: args }) }]]);
});

const returned = () => ({ content: [{ type: 'text', text: 'returned' }] });

it.each<[way: string, send: () => Promise<unknown>, after: () => unknown]>([
  ['its caller gets', () => mcp(app, owner, run, toolCall(1, 'echo', { text: 'secret' })), returned],
  [
    'nobody gets',
    () => mcp(app, owner, run, toolCall(1, 'echo', { text: 'secret' })),
    () => {
      throw new ForbiddenError('Withheld');
    },
  ],
  ['a module gets', () => app.get(Office).tools.call(asSystem, { server }, 'echo', { text: 'secret' }), returned],
])('logs the arguments that are sent, if %s the result', async (way, call, hook) => {
  const sent = `sent: ${way}`;
  before = () => ({ text: sent });
  after = hook;
  await call();
  const log = await until(async () => {
    const { body } = await app.as(owner).get(`/servers/${encodeURIComponent(server)}/logs?tool=echo&limit=1`);
    const [found] = (body as { invocations: { payload?: { arguments: string; result: string } }[] }).invocations;
    return found?.payload?.arguments.includes(sent) && found;
  }, 'the call is logged');
  expect(JSON.stringify(log).includes('returned')).toBe(hook === returned);
  expect(JSON.stringify(log)).not.toContain('secret');
});

it('lists and other requests have no hooks', async () => {
  before = () => {
    throw new ForbiddenError('No');
  };
  expect((await mcp(app, owner, connection, request(1, 'tools/list'))).body.result.tools).toHaveLength(1);
});
