import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  SubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { until } from '../until.js';
import { connectV1 } from '../upstream/upstream-clients.js';

/** Resource of a {@link LoggingUpstream}. */
export const WATCHED = 'a://watched';

/** A server that logs on the stream of a session, not on that of a call, and updates what its session subscribed to. */
export class LoggingUpstream {
  private readonly sessions: { server: McpServer; uris: Set<string>; said: () => boolean }[] = [];
  private release: () => void = () => undefined;
  private readonly held = new Promise<void>((resolve) => (this.release = resolve));

  readonly make = (): McpServer => {
    const capabilities = { tools: { listChanged: true }, logging: {}, resources: { subscribe: true } };
    const server = new McpServer({ name: 'talker', version: '1' }, { capabilities });
    const uris = new Set<string>();
    let hasCall = false;
    server.server.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: ['talk', 'hold'].map((name) => ({ name, inputSchema: { type: 'object' } })),
    }));
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
        if (uris.has(WATCHED)) await server.server.sendResourceUpdated({ uri: WATCHED });
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

  /** Sends a notification in the sessions that had calls. */
  async send(method: string): Promise<void> {
    for (const { server, said } of this.sessions) {
      if (said())
        await server.server.transport?.send({ jsonrpc: '2.0', method, params: { requestId: 1, taskId: '1' } });
    }
  }

  /** True when a session that had a call has subscribed. */
  get isWatched(): boolean {
    return this.sessions.some(({ uris, said }) => said() && uris.has(WATCHED));
  }
}

/** All that a client of the official SDK receives that sets a level and subscribes, calls, and waits. */
export async function received(
  talker: LoggingUpstream,
  url: string,
  init: RequestInit,
  { tool = 'talk', uri = WATCHED } = {},
): Promise<string[]> {
  const got: string[] = [];
  const client: Client = await connectV1(url, {}, init);
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void got.push(String(params.data)));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void got.push(params.uri));
  await client.setLoggingLevel('debug');
  await client.callTool({ name: tool });
  await until(async () => {
    await talker.say('between');
    return got.includes('between');
  }, 'a message between calls arrived');
  await client.subscribeResource({ uri });
  await until(() => talker.isWatched, 'the session of the calls has subscribed');
  await client.callTool({ name: tool });
  await until(() => got.includes(uri), 'the update arrived');
  await talker.say('later');
  await until(() => got.includes('later'), 'the message outside of calls arrived');
  return got.filter((message) => message !== 'between').sort();
}
