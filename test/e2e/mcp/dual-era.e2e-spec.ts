import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { externalServer } from '../../support/releases/current-releases.js';
import { closing } from '../../support/upstream/upstream-clients.js';
import {
  referenceServers,
  startReferenceServer,
  type ReferenceName,
  type ReferenceServer,
} from '../../support/upstream/reference-servers.mjs';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
let servers: ReferenceServer[];

beforeAll(async () => {
  servers = await Promise.all(referenceServers.map((name) => startReferenceServer(name)));
}, 60_000);
afterAll(async () => {
  await Promise.all(servers.map((server) => server.kill()));
});

const capabilities = { elicitation: {}, sampling: {}, roots: {} };
const elicited = { action: 'accept' as const, content: { name: 'Bo', response: 'yes' } };
const sampled = { role: 'assistant' as const, model: 'spec', content: { type: 'text' as const, text: 'Paris' } };
const roots = { roots: [{ uri: 'file:///home/bo', name: 'home' }] };

const requestInit = (): RequestInit => ({ headers: { authorization: `Bearer ${owner.key}` } });

/** The outcome of something: its value, or the message of its error without the names that each endpoint has. */
async function outcome(work: Promise<unknown>): Promise<unknown> {
  return work.catch((error: Error) => ({ error: error.message }));
}

/** The official v1 client in an older revision: what it sees of a server that can ask it. */
async function legacyView(url: string, version: string) {
  const client = new ClientV1({ name: 'spec', version: '1.0.0' }, { capabilities });
  const asked: string[] = [];
  client.setRequestHandler(ElicitRequestSchema, ({ method }) => (asked.push(method), elicited));
  client.setRequestHandler(CreateMessageRequestSchema, ({ method }) => (asked.push(method), sampled));
  client.setRequestHandler(ListRootsRequestSchema, ({ method }) => (asked.push(method), roots));
  const messages: unknown[] = [];
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void messages.push(params.data));
  const transport = new TransportV1(new URL(url), { requestInit: requestInit() });
  const send = transport.send.bind(transport);
  transport.send = (message, options) =>
    send(
      'method' in message && message.method === 'initialize'
        ? { ...message, params: { ...message.params, protocolVersion: version } }
        : message,
      options,
    );
  await client.connect(transport);
  closing(client);
  const uri = 'test://watched-resource';
  const call = (name: string, args = {}) => outcome(client.callTool({ name, arguments: args }));
  const seen = {
    capabilities: client.getServerCapabilities(),
    tools: (await client.listTools()).tools.map(({ name }) => name),
    elicitation: await call('test_elicitation', { message: 'Who?' }),
    defaults: await call('test_elicitation_sep1034_defaults'),
    sampling: await call('test_sampling', { prompt: 'Capital?' }),
    roots: await call('test_input_required_result_list_roots'),
    level: await client.setLoggingLevel('info'),
    logging: await call('test_tool_with_logging'),
    messages: messages.filter((data) => String(data).startsWith('Tool ')),
    subscribe: await client.subscribeResource({ uri }),
    read: await client.readResource({ uri }),
    unsubscribe: await client.unsubscribeResource({ uri }),
    asked,
  };
  return { seen, protocolVersion: transport.protocolVersion };
}

/** The official v2 client in the newest revision: what it sees of a server that needs its input. */
async function modernView(url: string) {
  const client = new ClientV2(
    { name: 'spec', version: '1.0.0' },
    { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  client.setRequestHandler('elicitation/create', () => elicited);
  client.setRequestHandler('sampling/createMessage', () => sampled);
  client.setRequestHandler('roots/list', () => roots);
  await client.connect(new TransportV2(new URL(url), { requestInit: requestInit() }));
  closing(client);
  const call = (name: string) => outcome(client.callTool({ name, arguments: {} }));
  return {
    tools: (await client.listTools()).tools.map(({ name }) => name),
    elicitation: await call('test_input_required_result_elicitation'),
    sampling: await call('test_input_required_result_sampling'),
    roots: await call('test_input_required_result_list_roots'),
    resource: await outcome(client.readResource({ uri: 'test://static-text' })),
  };
}

/** The endpoints of Slipway before a server: of a connection, and of a server of the registry. */
async function endpoints(server: ReferenceServer): Promise<string[]> {
  const { path } = await createConnection(app, owner, { mcpUrl: server.url });
  const { slug } = await externalServer(app, owner, server.url);
  return [`${app.url}${path}/mcp`, `${app.url}/run/${slug}`];
}

const serverOf = (name: ReferenceName) => servers[referenceServers.indexOf(name)];

describe.each(referenceServers)('the reference server %s', (name) => {
  for (const version of ['2025-06-18', '2025-11-25']) {
    verifies(
      ['mcp:both-eras', 'mcp:input'],
      `asks a client of ${version}, takes its log level and its subscriptions, as directly`,
      async () => {
        const direct = await legacyView(serverOf(name).url, version);
        expect(direct.protocolVersion).toBe(version);
        expect(direct.seen.messages).toHaveLength(3);
        expect(JSON.stringify(direct.seen.elicitation)).toContain('action=accept');
        expect(direct.seen.asked).toEqual(
          expect.arrayContaining(['elicitation/create', 'elicitation/create', 'sampling/createMessage']),
        );
        for (const url of await endpoints(serverOf(name))) expect(await legacyView(url, version)).toEqual(direct);
      },
    );
  }

  verifies('mcp:both-eras', 'serves a client of 2026-07-28 as directly', async () => {
    const direct = await modernView(serverOf(name).url);
    for (const url of await endpoints(serverOf(name))) expect(await modernView(url)).toEqual(direct);
  });

  verifies('mcp:both-eras', 'takes the log level of a client that answers nothing, and its subscription', async () => {
    for (const url of await endpoints(serverOf(name))) {
      const client = new ClientV1({ name: 'spec', version: '1.0.0' });
      await client.connect(new TransportV1(new URL(url), { requestInit: requestInit() }));
      closing(client);
      expect(await client.subscribeResource({ uri: 'test://watched-resource' })).toEqual({});
      const messages: unknown[] = [];
      client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void messages.push(params.data));
      await client.setLoggingLevel('info');
      await client.callTool({ name: 'test_tool_with_logging' });
      // The servers also log on the stream of the session: the new level, and the subscription.
      await until(() => messages.filter((data) => String(data).startsWith('Tool')).length === 3, 'the tool logged');
      const levels = () => messages.filter((data) => data === 'Log level set to: info').length;
      await until(() => levels() > 0, 'the level was logged');
      expect(levels()).toBe(1);
    }
  });
});
