import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, expect } from '@jest/globals';
import { AddressPolicy, parseEgressAllow } from '../../../src/platform/egress/address-policy.js';
import { Egress } from '../../../src/platform/egress/egress.js';
import { channelTo } from '../../support/mcp/channels.js';
import { ask, initialize, messagesOf } from '../../support/mcp/mcp-calls.js';
import { startMcpEndpoint, TestPubSub } from '../../support/mcp/mcp-endpoint.js';
import { startSdkSse, startSdkV1 } from '../../support/special-upstreams/sdk-upstream.js';
import { until } from '../../support/until.js';
import { closing } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';

let egress: Egress;

beforeAll(() => {
  egress = new Egress(new AddressPolicy(parseEgressAllow('loopback')));
});
afterAll(() => egress.close());

type Server = McpServer['server'];

/** Servers of an upstream: each session has one, which remembers the notifications of its client. */
class Askers {
  /** The server of the session that ran the last call. */
  caller: Server | null = null;
  readonly notified: { method: string; isOfCaller: boolean }[] = [];

  readonly make = (): McpServer => {
    const made = new McpServer({ name: 'asker', version: '1' }, { capabilities: { tools: {} } });
    const { server } = made;
    server.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: [{ name: 'x', inputSchema: { type: 'object' as const } }],
    }));
    server.setRequestHandler(CallToolRequestSchema, () => {
      this.caller = server;
      return { content: [] };
    });
    server.fallbackNotificationHandler = async ({ method }) =>
      void this.notified.push({ method, isOfCaller: server === this.caller });
    return made;
  };
}

const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } };
const stream = async (url: string, session: Record<string, string>) =>
  messagesOf(await fetch(url, { headers: { ...session, accept: 'text/event-stream' } }));

for (const [transport, start] of [
  ['streamable HTTP', (make: () => McpServer) => startSdkV1({ stateful: true, json: false, make })],
  ['HTTP+SSE', (make: () => McpServer) => startSdkSse(make)],
] as const) {
  for (const held of ['the process of the call', 'another process']) {
    verifies(
      'mcp:server-requests',
      `a request outside of calls over ${transport} reaches the GET stream in ${held}`,
      async () => {
        const askers = new Askers();
        const { url } = closing(await start(askers.make));
        const relay = new TestPubSub();
        const [one, two] = [
          await startMcpEndpoint(closing(channelTo(egress, url)), relay),
          await startMcpEndpoint(closing(channelTo(egress, url)), relay),
        ];
        const session = await initialize(one.url, { roots: {} });
        const messages = await stream(held === 'another process' ? two.url : one.url, session);
        expect((await ask(one.url, call, session)).body.result).toEqual({ content: [] });
        const asked = askers.caller?.listRoots();
        const { id, method } = (await messages.next()).value;
        expect(method).toBe('roots/list');
        const roots = [{ uri: 'file:///home/bo' }];
        expect((await ask(two.url, { jsonrpc: '2.0', id, result: { roots } }, session)).status).toBe(202);
        expect(await asked).toEqual({ roots });
        await messages.return();
      },
    );
  }

  verifies('mcp:server-requests', `over ${transport} without a stream of the client are refused`, async () => {
    const askers = new Askers();
    const { url } = closing(await start(askers.make));
    const front = await startMcpEndpoint(closing(channelTo(egress, url)));
    const session = await initialize(front.url, { roots: {} });
    await ask(front.url, call, session);
    await expect(askers.caller?.listRoots()).rejects.toMatchObject({ code: -32601 });
  });

  verifies('mcp:server-requests', `reach the sessions of their client over ${transport}`, async () => {
    const askers = new Askers();
    const { url } = closing(await start(askers.make));
    const relay = new TestPubSub();
    const [one, two] = [
      await startMcpEndpoint(closing(channelTo(egress, url)), relay),
      await startMcpEndpoint(closing(channelTo(egress, url)), relay),
    ];
    const notify = async (to: string, method: string, session: Record<string, string>) =>
      expect((await ask(to, { jsonrpc: '2.0', method, params: {} }, session)).status).toBe(202);
    const plain = await initialize(one.url);
    await ask(one.url, call, plain);
    await notify(one.url, 'notifications/acme/plain', plain);
    const session = await initialize(one.url, { roots: { listChanged: true } });
    await ask(one.url, call, session);
    for (const method of ['initialized', 'cancelled', 'progress', 'roots/list_changed', 'acme/here']) {
      await notify(one.url, `notifications/${method}`, session);
    }
    await notify(two.url, 'notifications/acme/there', session);
    await until(() => askers.notified.length >= 3, 'the notifications have arrived');
    const sent = ['roots/list_changed', 'acme/here', 'acme/there'];
    expect(new Set(askers.notified.map(({ method }) => method))).toEqual(
      new Set(sent.map((name) => `notifications/${name}`)),
    );
    expect(askers.notified.every(({ isOfCaller }) => isOfCaller)).toBe(true);
  });
}
