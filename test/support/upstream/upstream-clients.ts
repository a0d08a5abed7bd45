import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { endAfterTest } from '../jest/leftovers.mjs';
import { startUpstream, type Upstream, type UpstreamOptions } from './upstream.js';

/** Closes this when the test is over, last opened first. */
export function closing<T extends { close(): Promise<unknown> }>(one: T): T {
  endAfterTest(() => one.close());
  return one;
}

/** An upstream that is closed when the test is over. */
export async function start(options: UpstreamOptions = {}): Promise<Upstream> {
  return closing(await startUpstream(options));
}

/** The official v1 client, connected, closed when the test is over. */
export async function connectV1(url: string, capabilities = {}, requestInit: RequestInit = {}): Promise<ClientV1> {
  const client = new ClientV1({ name: 'spec', version: '1.0.0' }, { capabilities });
  await client.connect(new TransportV1(new URL(url), { requestInit }));
  return closing(client);
}

/** The official v2 client pinned to 2026-07-28, connected, closed when the test is over. */
export async function connectV2(url: string, capabilities = {}): Promise<ClientV2> {
  const client = new ClientV2(
    { name: 'spec', version: '1.0.0' },
    { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  await client.connect(new TransportV2(new URL(url)));
  return closing(client);
}

/** Posts one JSON-RPC request of id 7 with plain fetch. */
export function post(
  url: string,
  method: string,
  params: object = {},
  { headers = {}, signal }: { headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Response> {
  const usual = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method, params });
  return fetch(url, { method: 'POST', headers: { ...usual, ...headers }, body, signal });
}

/** The text of a result's first content block. */
export function textOf(result: unknown): string {
  return (result as { content: { text: string }[] }).content[0].text;
}
