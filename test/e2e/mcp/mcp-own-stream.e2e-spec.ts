import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { AddressPolicy, parseEgressAllow } from '../../../src/platform/egress/address-policy.js';
import { Egress } from '../../../src/platform/egress/egress.js';
import { channelTo } from '../../support/mcp/channels.js';
import {
  ask,
  initialize,
  KEY,
  messagesOf,
  modern,
  post,
  read,
  type EndpointAnswer,
} from '../../support/mcp/mcp-calls.js';
import { startMcpEndpoint } from '../../support/mcp/mcp-endpoint.js';
import { startSdkSse, startSdkV1, type SdkUpstream } from '../../support/special-upstreams/sdk-upstream.js';
import { received, LoggingUpstream, WATCHED } from '../../support/special-upstreams/logging-upstream.js';
import { until } from '../../support/until.js';
import { closing } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';

let egress: Egress;

beforeAll(() => {
  egress = new Egress(new AddressPolicy(parseEgressAllow('loopback')));
});
afterAll(() => egress.close());

async function through(upstream: SdkUpstream): Promise<string> {
  return (await startMcpEndpoint(closing(channelTo(egress, upstream.url)))).url;
}

const transports = [
  ['streamable HTTP', (make: () => McpServer) => startSdkV1({ stateful: true, json: false, make })],
  ['HTTP+SSE', (make: () => McpServer) => startSdkSse(make)],
] as const;

describe('the own stream of an upstream session', () => {
  for (const [transport, startUpstream] of transports) {
    verifies('mcp:own-stream', `reaches the client whose session it is, over ${transport}`, async () => {
      const talker = new LoggingUpstream();
      const upstream = closing(await startUpstream(talker.make));
      const got = await received(talker, await through(upstream), { headers: { authorization: KEY } });
      expect(got).toEqual([WATCHED, 'later', 'one', 'one', 'two', 'two']);
    });

    verifies('mcp:own-stream', `reaches the sole call in flight of a shared session, over ${transport}`, async () => {
      const talker = new LoggingUpstream();
      const upstream = closing(await startUpstream(talker.make));
      const url = await through(upstream);
      const session = await initialize(url);
      const stream = messagesOf(await fetch(url, { headers: { ...session, accept: 'text/event-stream' } }));
      const call = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'hold' } });
      let isAnswering = false;
      const first = post(url, call(1), session).finally(() => (isAnswering = true));
      await until(async () => {
        await talker.say('of the sole call');
        return isAnswering;
      }, 'the sole call receives a message');
      const second = post(url, call(2), session);
      await until(() => talker.calls === 2, 'both calls run');
      await talker.say('of either call');
      // Arrives on the same stream, after the message.
      await talker.change();
      expect((await stream.next()).value.method).toBe('notifications/tools/list_changed');
      talker.endHeld();
      const got = (answer: EndpointAnswer) => new Set(answer.events.map(({ params }) => params.data));
      expect(got(await read(await first))).toEqual(new Set(['of the sole call']));
      expect(got(await read(await second))).toEqual(new Set());
      await stream.return();
    });
  }

  for (const [transport, startUpstream] of transports) {
    verifies('mcp:own-stream', `sends custom notifications, not those about requests, over ${transport}`, async () => {
      const talker = new LoggingUpstream();
      const url = await through(closing(await startUpstream(talker.make)));
      const session = await initialize(url, { elicitation: {} });
      const stream = messagesOf(await fetch(url, { headers: { ...session, accept: 'text/event-stream' } }));
      await ask(url, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'talk' } }, session);
      const methods = new Set<string>();
      let isHeard = false;
      const heard = (async () => {
        for await (const { method } of stream) {
          if (method !== 'notifications/message') methods.add(method);
          if (method === 'notifications/custom') return void (isHeard = true);
        }
      })();
      await until(async () => {
        for (const name of ['cancelled', 'tasks/status', 'custom']) await talker.send(`notifications/${name}`);
        return isHeard;
      }, 'the custom notification arrived');
      await heard;
      expect(methods).toEqual(new Set(['notifications/custom']));
    });
  }

  verifies(
    ['mcp:own-stream', 'mcp:subscriptions'],
    'sends updates to the subscription and messages to the call of a client of 2026-07-28 that can be asked',
    async () => {
      const talker = new LoggingUpstream();
      const url = await through(closing(await startSdkV1({ stateful: true, json: false, make: talker.make })));
      const send = (method: string, params: Record<string, unknown>, id: number) => {
        const meta = { 'io.modelcontextprotocol/logLevel': 'debug' };
        const { body, headers } = modern(method, params, { capabilities: { elicitation: {} }, meta, id });
        return post(url, body, headers);
      };
      const notifications = { resourceSubscriptions: [WATCHED] };
      const stream = messagesOf(await send('subscriptions/listen', { notifications }, 1));
      expect((await stream.next()).value.params.notifications).toEqual(notifications);
      expect((await read(await send('tools/call', { name: 'talk' }, 2))).body.result.content).toEqual([]);
      // The subscription is on the stream of the session that the call used.
      expect(talker.isWatched).toBe(true);
      expect((await stream.next()).value.params.uri).toBe(WATCHED);
      let isAnswering = false;
      const held = send('tools/call', { name: 'hold' }, 3).finally(() => (isAnswering = true));
      await until(async () => {
        await talker.say('of the call');
        return isAnswering;
      }, 'the call receives a message');
      talker.endHeld();
      const { events } = await read(await held);
      expect(new Set(events.map(({ params }) => params.data))).toEqual(new Set(['of the call']));
      await stream.return();
    },
  );

  verifies('mcp:own-stream', 'is not announced where an upstream without sessions cannot have it', async () => {
    const { make } = new LoggingUpstream();
    const capabilities = async (stateful: boolean) => {
      const url = await through(closing(await startSdkV1({ stateful, json: false, make })));
      const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'spec', version: '1' } };
      return (await ask(url, { jsonrpc: '2.0', id: 0, method: 'initialize', params })).body.result.capabilities;
    };
    expect(await capabilities(true)).toEqual({
      tools: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      logging: {},
    });
    expect(await capabilities(false)).toEqual({ tools: {}, resources: {}, logging: {} });
  });
});
