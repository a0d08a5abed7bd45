import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  SubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { AddressPolicy, parseEgressAllow } from '../../../src/platform/egress/address-policy.js';
import { Egress } from '../../../src/platform/egress/egress.js';
import { channelTo } from '../../support/mcp/channels.js';
import { ask, initialize, KEY, messagesOf, post, read, type FrontAnswer } from '../../support/mcp/front-calls.js';
import { startFront } from '../../support/mcp/front.js';
import { startSdkSse, startSdkV1, type SdkUpstream } from '../../support/special-upstreams/sdk-upstream.js';
import { until } from '../../support/until.js';
import { closing, connectV1 } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';

const URI = 'a://watched';
let egress: Egress;

beforeAll(() => {
  egress = new Egress(new AddressPolicy(parseEgressAllow('loopback')));
});
afterAll(() => egress.close());

/** A server that logs on the stream of a session, not on that of a call, and updates what its session subscribed to. */
class Talker {
  private readonly sessions: { server: McpServer; uris: Set<string>; said: () => boolean }[] = [];
  private release: () => void = () => undefined;
  private readonly held = new Promise<void>((resolve) => (this.release = resolve));

  readonly make = (): McpServer => {
    const capabilities = { tools: { listChanged: true }, logging: {}, resources: { subscribe: true } };
    const server = new McpServer({ name: 'talker', version: '1' }, { capabilities });
    const uris = new Set<string>();
    let hasCall = false;
    server.server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [] }));
    server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
      uris.add(params.uri);
      return {};
    });
    server.server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
      hasCall = true;
      this.calls += 1;
      if (params.name === 'hold') await this.held;
      else {
        for (const data of ['one', 'two']) await server.server.sendLoggingMessage({ level: 'debug', data });
        if (uris.has(URI)) await server.server.sendResourceUpdated({ uri: URI });
      }
      return { content: [] };
    });
    this.sessions.push({ server, uris, said: () => hasCall });
    return server;
  };

  /** Calls so far. */
  calls = 0;

  /** Tells the sessions that had calls that the list of tools changed. */
  async change(): Promise<void> {
    for (const { server, said } of this.sessions) if (said()) await server.server.sendToolListChanged();
  }

  /** Ends the calls of `hold`. */
  endHeld(): void {
    this.release();
  }

  /** Logs in the sessions that had calls. */
  async say(data: string): Promise<void> {
    for (const { server, said } of this.sessions) {
      if (said()) await server.server.sendLoggingMessage({ level: 'info', data });
    }
  }

  /** True when a session that had a call has subscribed. */
  get isWatched(): boolean {
    return this.sessions.some(({ uris, said }) => said() && uris.has(URI));
  }
}

async function through(upstream: SdkUpstream): Promise<string> {
  return (await startFront(closing(channelTo(egress, upstream.url)))).url;
}

/** All that a client of the official SDK receives that sets a level and subscribes, calls, and waits. */
async function received(url: string, talker: Talker): Promise<string[]> {
  const got: string[] = [];
  const client: Client = await connectV1(url, {}, { headers: { authorization: KEY } });
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void got.push(String(params.data)));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void got.push(params.uri));
  await client.setLoggingLevel('debug');
  await client.callTool({ name: 'talk' });
  await client.subscribeResource({ uri: URI });
  await until(() => talker.isWatched, 'the session of the calls has subscribed');
  await client.callTool({ name: 'talk' });
  await until(() => got.includes(URI), 'the update arrived');
  await talker.say('later');
  await until(() => got.includes('later'), 'the message outside of calls arrived');
  return got.sort();
}

describe('the own stream of an upstream session', () => {
  for (const [transport, startUpstream] of [
    ['streamable HTTP', (make: () => McpServer) => startSdkV1({ stateful: true, json: false, make })],
    ['HTTP+SSE', (make: () => McpServer) => startSdkSse(make)],
  ] as const) {
    verifies('mcp:own-stream', `reaches the client whose session it is, over ${transport}`, async () => {
      const talker = new Talker();
      const upstream = closing(await startUpstream(talker.make));
      const got = await received(await through(upstream), talker);
      expect(got).toEqual([URI, 'later', 'one', 'one', 'two', 'two']);
    });

    verifies('mcp:own-stream', `of a shared session reaches the sole call in flight, over ${transport}`, async () => {
      const talker = new Talker();
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
      const got = (answer: FrontAnswer) => new Set(answer.events.map(({ params }) => params.data));
      expect(got(await read(await first))).toEqual(new Set(['of the sole call']));
      expect(got(await read(await second))).toEqual(new Set());
      await stream.return();
    });
  }

  verifies('mcp:own-stream', 'that an upstream without sessions cannot have is not announced', async () => {
    const { make } = new Talker();
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
