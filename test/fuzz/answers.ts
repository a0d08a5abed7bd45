import { isObject, type ApiDocument, type NamedOperation } from '../support/documentation/api-document.js';
import type { Got } from './exchange.js';

/** Texts of internal errors, which no answer may have. */
const INTERNAL = /node_modules|\n\s+at .+:\d+:\d+|QueryFailedError|TypeError|Cannot read prop|violates .+ constraint/;

/** The schema of errors below a path (Spec 7). */
export function errorSchema(path: string, method: string): string {
  if (/^\/connect\/[^/]+\/(?:[^/]+\/mcp|\.mcp)\/?$|^\/run\/./.test(path)) return 'JsonRpcError';
  if (/^\/connect(\/|$)/.test(path)) return 'ConnectionsError';
  if (/^\/skills(\/|$)/.test(path) && (method === 'PUT' || method === 'POST')) return 'PublishingError';
  return 'RegistryError';
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString()) as unknown;
  } catch {
    return undefined;
  }
}

/**
 * The faults of an answer to a documented operation.
 *
 * @param isOdd the path holds an odd part, so that the request may be one for another route or for none
 */
export function faultsOf(
  document: ApiDocument,
  { operation, path, method }: NamedOperation,
  got: Got,
  isOdd: boolean,
): string[] {
  const { status } = got;
  const text = got.body.toString();
  if (status === 500) return ['status 500'];
  if (INTERNAL.test(text) && status >= 400) return ['the body has the text of an internal error'];
  if (isOdd && [400, 404, 405, 414].includes(status))
    return errorFaults(document, got, errorSchema(path, method), isOdd);
  const documented = operation.responses[status];
  if (documented === undefined) return isOdd && status < 400 ? [] : [`status ${status} is not documented`];
  if (documented.content === undefined) return text === '' ? [] : ['a body is not documented'];
  const type = (got.headers['content-type'] ?? '').split(';')[0];
  const schema = documented.content[type]?.schema;
  if (schema === undefined) return [`content type ${type} of ${status} is not documented`];
  if (status >= 400) return errorFaults(document, got, schema.$ref?.split('/').at(-1) ?? '', isOdd);
  if (type !== 'application/json') return [];
  const value = parse(got.body);
  if (value === undefined) return ['the body is not JSON'];
  // Results of MCP servers pass unchanged, and the servers here send nonsense too.
  return isOdd || path.includes('/.tools') ? [] : document.departures(schema, value);
}

/** The faults of the body of an error. An odd path may lead to a route below another prefix, so to the other body. */
export function errorFaults(document: ApiDocument, got: Got, schemaName: string, isOdd = false): string[] {
  if (got.headers['content-type'] === 'application/x-protobuf') return [];
  const value = parse(got.body);
  if (!isObject(value)) return [`the body of ${got.status} is not a JSON object`];
  const names = isOdd ? ['RegistryError', 'ConnectionsError', 'PublishingError', 'JsonRpcError'] : [schemaName];
  const all = names.map((name) => document.departures({ $ref: `#/components/schemas/${name}` }, value));
  return all.some((departures) => departures.length === 0) ? [] : (all[0] ?? []);
}

/** The faults of an answer of an MCP endpoint beyond {@link faultsOf}: each message is JSON-RPC, and has the id. */
export function rpcFaults(got: Got, request: unknown): string[] {
  if (got.status !== 200) return [];
  const isStream = got.headers['content-type']?.startsWith('text/event-stream');
  const messages = isStream
    ? [...got.body.toString().matchAll(/^data: ?(.+)$/gm)].map(([, data = '']) => parse(Buffer.from(data)))
    : [parse(got.body)].flat();
  const faults = messages
    .filter((message) => !isObject(message) || message.jsonrpc !== '2.0')
    .map((message) => `no JSON-RPC: ${JSON.stringify(message)?.slice(0, 200)}`);
  if (isObject(request) && request.id !== undefined && request.id !== null) {
    const answers = messages.filter((message) => isObject(message) && ('result' in message || 'error' in message));
    const ids = answers.map((message) => JSON.stringify((message as Record<string, unknown>).id));
    const isRefusal = answers.some((message) => isObject(message) && message.id === null);
    if (!isRefusal && !ids.includes(JSON.stringify(request.id))) {
      faults.push(`no answer has the id ${JSON.stringify(request.id)}: ${ids.join()}`);
    }
  }
  return faults;
}

/** The body as JSON. */
export function bodyOf(got: Got): Record<string, unknown> {
  const value = parse(got.body);
  return isObject(value) ? value : {};
}
