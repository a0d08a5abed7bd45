import { isObject } from '../../platform/text/json.js';
import type { ClientAnswer, McpReply, RpcError } from './channel.js';
import { members, slice, splice, type Span } from './json-text.js';
import { CLIENT_INFO, envelope, MODERN_VERSION, SUBSCRIPTION_ID, type Era } from './protocol.js';
import { InputNeededError, UpstreamError } from './mcp-errors.js';

/** A JSON-RPC message as far as routing it needs. */
export interface RpcHead {
  id?: unknown;
  method?: unknown;
  params?: unknown;
  result?: unknown;
  error?: unknown;
}

/** The message a text holds; null when it is not a JSON object. */
export function parseMessage(text: string): RpcHead | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** An answer to a request of the upstream; `id` and `result` are JSON text. */
export function answerText(id: string, answer: ClientAnswer): string {
  const outcome = 'result' in answer ? `"result":${answer.result}` : `"error":${JSON.stringify(answer.error)}`;
  return `{"jsonrpc":"2.0","id":${id},${outcome}}`;
}

/** A JSON-RPC request or, without an id, a notification; `params` is JSON text. */
export function requestText(id: number | null, method: string, params: string | undefined): string {
  const idPart = id === null ? '' : `"id":${id},`;
  const paramsPart = params === undefined ? '' : `,"params":${params}`;
  return `{"jsonrpc":"2.0",${idPart}"method":${JSON.stringify(method)}${paramsPart}}`;
}

/**
 * The answer in `text` if it is one to request `id`. An error without an id counts too: servers answer so when they
 * could not read the request, and the HTTP exchange it came on says whose it is.
 */
export function replyTo(id: number, text: string, head: RpcHead, era: Era): McpReply | null {
  if ('method' in head) return null;
  if ('result' in head && head.id === id) {
    const parts = members(text);
    return { text, id: parts.get('id') ?? null, result: parts.get('result') ?? null, error: null, era };
  }
  if (isRpcError(head.error) && (head.id === id || head.id === null || head.id === undefined)) {
    return { text, id: members(text).get('id') ?? null, result: null, error: toRpcError(head.error), era };
  }
  return null;
}

/** Plain HTTP APIs write `{"error": "forbidden"}`, which is no JSON-RPC error: their status says more than that. */
function isRpcError(value: unknown): boolean {
  return typeof value === 'object' && value !== null && typeof (value as RpcError).code === 'number';
}

function toRpcError(value: unknown): RpcError {
  const { code, message, data } = (typeof value === 'object' && value !== null ? value : {}) as Partial<RpcError>;
  return {
    code: typeof code === 'number' ? code : -32603,
    message: typeof message === 'string' ? message : 'The MCP server sent an error without a message.',
    ...(data === undefined ? {} : { data }),
  };
}

/** The envelope's members as JSON text, for the callers that nobody can ask anything. */
const plainEnvelope = envelopeText({});

function envelopeText(capabilities: Record<string, unknown>): string {
  const own = {
    [envelope.version]: MODERN_VERSION,
    [envelope.clientInfo]: CLIENT_INFO,
    [envelope.capabilities]: capabilities,
  };
  return JSON.stringify(own).slice(1, -1);
}

/** `params` with the envelope of a modern request in front of whatever `_meta` it has. */
export function withEnvelope(params: string | undefined, capabilities?: Record<string, unknown>): string {
  const own = capabilities ? envelopeText(capabilities) : plainEnvelope;
  if (params === undefined) return `{"_meta":{${own}}}`;
  const parts = members(params);
  const meta = parts.get('_meta');
  if (meta && params[meta[0]] === '{') {
    const isEmpty = members(params, meta[0]).size === 0;
    return splice(params, meta, `{${own}${isEmpty ? '' : ','}${slice(params, meta).trim().slice(1)}`);
  }
  if (meta) return splice(params, meta, `{${own}}`);
  return `{"_meta":{${own}}${parts.size === 0 ? '' : ','}${params.trim().slice(1)}`;
}

/** A notification without the mark of the subscription it came by, which means nothing beyond that hop. */
export function withoutSubscriptionId(text: string): string {
  if (!text.includes(SUBSCRIPTION_ID)) return text;
  const params = members(text).get('params');
  if (!params || text[params[0]] !== '{') return text;
  const parts = members(text, params[0]);
  const meta = parts.get('_meta');
  if (!meta || text[meta[0]] !== '{') return text;
  const kept = objectText(text, members(text, meta[0]), SUBSCRIPTION_ID);
  if (kept !== '{}') return splice(text, meta, kept);
  return splice(text, params, objectText(text, parts, '_meta'));
}

/** An object of these members, but one, each as it was written. */
function objectText(text: string, parts: Map<string, Span>, without: string): string {
  const kept = [...parts].filter(([name]) => name !== without);
  return `{${kept.map(([name, span]) => `${JSON.stringify(name)}:${slice(text, span)}`).join(',')}}`;
}

/** Where the progress token stands in a request's params; null when they have none. */
export function progressTokenIn(params: string): Span | null {
  if (!params.includes('progressToken')) return null;
  const meta = members(params).get('_meta');
  if (!meta || params[meta[0]] !== '{') return null;
  return members(params, meta[0]).get('progressToken') ?? null;
}

/** The value of an `Mcp-Name` or `Mcp-Param-…` header: plain where HTTP allows it, else the base64 form of MCP 2026-07-28. */
export function headerValue(text: string): string {
  const isPlain = /^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text);
  return isPlain ? text : `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;
}

/** Which member of a method's params goes into the `Mcp-Name` header. */
export const namedBy: ReadonlyMap<string, 'name' | 'uri' | 'taskId'> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
]);

/** A reply's result as a value; undefined for an error. For what we read ourselves, never for what passes through. */
export function resultOf({ text, result }: McpReply): unknown {
  return result ? JSON.parse(slice(text, result)) : undefined;
}

/** What the result of a modern upstream is: `complete` when it does not say, null for an error. */
export function resultTypeOf({ text, result, era }: McpReply): string | null {
  if (!result) return null;
  if (era === 'legacy' || !text.includes('"resultType"') || text[result[0]] !== '{') return 'complete';
  const span = members(text, result[0]).get('resultType');
  const type: unknown = span && JSON.parse(slice(text, span));
  return typeof type === 'string' ? type : 'complete';
}

/**
 * The reply, if it needs nothing more of whoever asked: for callers who cannot be asked back.
 *
 * @throws InputNeededError when the upstream asks for input, UpstreamError for a task or what MCP does not know
 */
export function completeOrRefuse(reply: McpReply): McpReply {
  const type = resultTypeOf(reply);
  if (type === null || type === 'complete') return reply;
  if (type === 'input_required') throw new InputNeededError();
  if (type === 'task') {
    throw new UpstreamError(
      'The MCP server answered with a task to be asked for later, which this way of calling does not do.',
    );
  }
  throw new UpstreamError(`The MCP server answered with a result of type "${type.slice(0, 40)}", which is not MCP.`);
}
