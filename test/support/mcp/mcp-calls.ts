import { eventsOf, type Json } from './calls.js';

/** Answer to one POST, GET or DELETE, read to its end. */
export interface EndpointAnswer {
  status: number;
  headers: Headers;
  text: string;
  /** The answer: the JSON body, or the last event of a stream. */
  body: Json;
  /** The events of a stream, all but the answer. */
  events: Json[];
}

const prefix = 'io.modelcontextprotocol/';

/** The bearer all calls carry unless they name another. */
export const KEY = 'Bearer one';

/** Headers and body of a request of 2026-07-28. */
export function modern(
  method: string,
  params: Record<string, unknown> = {},
  { capabilities = {}, meta = {}, id = 1 }: { capabilities?: object; meta?: object; id?: unknown } = {},
): { body: object; headers: Record<string, string> } {
  const _meta = { [`${prefix}protocolVersion`]: '2026-07-28', [`${prefix}clientCapabilities`]: capabilities, ...meta };
  const name = params.name ?? params.uri;
  return {
    body: { jsonrpc: '2.0', id, method, params: { ...params, _meta } },
    headers: {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof name === 'string' && /get|call|read/.test(method) ? { 'mcp-name': name } : {}),
    },
  };
}

/** Posts a message. */
export function post(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: KEY,
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    signal,
  });
}

/** {@link post}, read to its end. */
export async function ask(...parameters: Parameters<typeof post>): Promise<EndpointAnswer> {
  return read(await post(...parameters));
}

/** Asks in the words of 2026-07-28. */
export function askModern(url: string, ...parameters: Parameters<typeof modern>): Promise<EndpointAnswer> {
  const { body, headers } = modern(...parameters);
  return ask(url, body, headers);
}

export async function read(response: Response): Promise<EndpointAnswer> {
  const text = await response.text();
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
  const messages = isStream ? eventsOf(text).map((event) => JSON.parse(event)) : [];
  const body: unknown = isStream ? messages.pop() : text === '' ? undefined : JSON.parse(text);
  return { status: response.status, headers: response.headers, text, body, events: messages };
}

/** Opens a session and gives the headers of what is sent in it. */
export async function initialize(
  url: string,
  capabilities: object = {},
  protocolVersion = '2025-11-25',
  authorization = KEY,
): Promise<Record<string, string>> {
  const params = { protocolVersion, capabilities, clientInfo: { name: 'spec', version: '1' } };
  const { headers } = await ask(url, { jsonrpc: '2.0', id: 0, method: 'initialize', params }, { authorization });
  const id = headers.get('mcp-session-id') ?? '';
  return { authorization, 'mcp-session-id': id, 'mcp-protocol-version': protocolVersion };
}

/** The messages of a stream as they come, each once. */
export async function* messagesOf(response: Response): AsyncGenerator<Json, void> {
  const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += part.value;
    const whole = text.lastIndexOf('\n\n') + 2;
    if (whole < 2) continue;
    for (const event of eventsOf(text.slice(0, whole))) yield JSON.parse(event);
    text = text.slice(whole);
  }
}
