import type { TestAccount, TestApp } from '../app.js';

/** Type of the result of `JSON.parse`. */
export type Json = ReturnType<typeof JSON.parse>;

/** An answer of the service, read to its end. */
export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** The parsed text; undefined when it is not JSON. */
  body: Json;
}

export interface CallOptions {
  method?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** The headers an MCP client sends. */
export const mcpAccept = { accept: 'application/json, text/event-stream' };

/** Responses that were not read to their end: `fetch` closes the connection of one that is collected as garbage. */
const unread = new Set<Response>();

/**
 * Opens a request with plain fetch, which sends paths and bodies as they are written. A string is sent as it is, an
 * object as JSON.
 */
export async function open(
  app: TestApp,
  account: TestAccount | undefined,
  path: string,
  body?: string | object,
  { method = 'POST', headers = {}, signal }: CallOptions = {},
): Promise<Response> {
  const key: Record<string, string> = account ? { authorization: `Bearer ${account.key}` } : {};
  const response = await fetch(`${app.url}${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...key, ...headers },
    body: typeof body === 'object' ? JSON.stringify(body) : body,
    signal,
  });
  unread.add(response);
  return response;
}

/** {@link open}, read to its end. */
export async function send(...parameters: Parameters<typeof open>): Promise<Answer> {
  const response = await open(...parameters);
  const text = await response.text();
  unread.delete(response);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    // Not every answer is JSON.
  }
  return { status: response.status, headers: response.headers, text, body };
}

/**
 * Posts one JSON-RPC message to the MCP endpoint of the connection at `path`, as an MCP client does. The body is the
 * response, also when it came as the last event of a stream, as it does when the call takes long.
 */
export async function mcp(
  app: TestApp,
  account: TestAccount | undefined,
  path: string,
  message: string | object,
  { headers = {}, ...options }: CallOptions = {},
): Promise<Answer> {
  const answer = await send(app, account, `${path}/mcp`, message, {
    headers: { ...mcpAccept, ...headers },
    ...options,
  });
  const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream') === true;
  const last = isStream ? eventsOf(answer.text).at(-1) : undefined;
  return last === undefined ? answer : { ...answer, body: JSON.parse(last) as unknown };
}

/** A JSON-RPC request. */
export function request(id: string | number, method: string, params?: object): object {
  return { jsonrpc: '2.0', id, method, ...(params ? { params } : {}) };
}

/** A `tools/call` request. */
export function toolCall(id: string | number, name: string, args: object = {}, meta?: object): object {
  return request(id, 'tools/call', { name, arguments: args, ...(meta ? { _meta: meta } : {}) });
}

/** The data of each event of a whole event stream. */
export function eventsOf(stream: string): string[] {
  return stream
    .split('\n\n')
    .map((event) => event.split('\n').filter((line) => line.startsWith('data: ')))
    .filter(([first = 'data: ']) => first !== 'data: ')
    .map((lines) => lines.map((line) => line.slice(6)).join('\n'));
}

/** A list of `count` values, each made from its index. */
export function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
