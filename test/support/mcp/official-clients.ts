/** The official clients of both packages, in each way of agreeing on a revision, with the methods of the v2 client. */
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { closing } from '../upstream/upstream-clients.js';

/** Answer of a client to an elicitation, null to decline it, and the messages that the client received. */
export interface Person {
  name: string | null;
  asked: string[];
  changes: number;
}

/** Headers of every request; with a person the client can be asked, and listens to changed lists. */
export interface OfficialClientOptions {
  headers: Record<string, string>;
  who?: Person;
}

const info = { name: 'spec', version: '1.0.0' };

function asked({ asked, name }: Person, message: string) {
  asked.push(message);
  return name === null ? { action: 'decline' as const } : { action: 'accept' as const, content: { name } };
}

async function connectV1(
  url: string,
  { headers, who }: OfficialClientOptions,
  Transport: typeof TransportV1 | typeof SSEClientTransport = TransportV1,
): Promise<ClientV2> {
  const client = closing(new ClientV1(info, { capabilities: who ? { elicitation: {} } : {} }));
  if (who) {
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => asked(who, params.message));
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void (who.changes += 1));
  }
  await client.connect(new Transport(new URL(url), { requestInit: { headers } }));
  return Object.assign(Object.create(client) as ClientV2, {
    callTool: ((params, options) => client.callTool(params, undefined, options)) as ClientV2['callTool'],
    getProtocolEra: () => 'legacy' as const,
  });
}

async function connectV2(
  url: string,
  { headers, who }: OfficialClientOptions,
  mode: 'legacy' | 'auto' | { pin: string } = 'legacy',
): Promise<ClientV2> {
  const capabilities = who ? { elicitation: {} } : {};
  const client = closing(new ClientV2(info, { capabilities, versionNegotiation: { mode } }));
  if (who) {
    client.setRequestHandler('elicitation/create', ({ params }) => asked(who, params.message));
    client.setNotificationHandler('notifications/tools/list_changed', () => void (who.changes += 1));
  }
  await client.connect(new TransportV2(new URL(url), { requestInit: { headers } }));
  if (who && client.getProtocolEra() === 'modern') closing(await client.listen({ toolsListChanged: true }));
  return client;
}

/** Connects a client, which is closed when the test is over. */
export type ConnectOfficial = (url: string, options: OfficialClientOptions) => Promise<ClientV2>;

export const officialClients: [name: string, connect: ConnectOfficial][] = [
  ['v1', (url, options) => connectV1(url, options)],
  ['v2', (url, options) => connectV2(url, options)],
  ['v2, which asks for the newest revision first', (url, options) => connectV2(url, options, 'auto')],
  ['v2, which speaks the newest revision alone', (url, options) => connectV2(url, options, { pin: '2026-07-28' })],
];

/** The v1 client over HTTP+SSE. */
export const connectSse: ConnectOfficial = (url, options) => connectV1(url, options, SSEClientTransport);
