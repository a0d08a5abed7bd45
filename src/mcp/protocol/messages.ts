import { isObject } from '../../platform/text/json.js';
import { jsonIn } from '../../platform/text/json-bounds.js';
import type { ClientAnswer, McpReply, RpcError } from './channel.js';
import { memberText, withMember, withoutMeta } from './json-edit.js';
import { elements, members, slice, splice, type Span } from './json-text.js';
import { CLIENT_INFO, envelope, MODERN_VERSION, SUBSCRIPTION_ID, type Era, rpcCode } from './protocol.js';
import { InputNeededError, UpstreamError } from './mcp-errors.js';

export interface RpcHead {
  id?: unknown;
  method?: unknown;
  params?: unknown;
  result?: unknown;
  error?: unknown;
}

export function parseMessage(text: string): RpcHead | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Reads the id from the beginning and end of the string; null without an id. Undefined for anything but a response. */
export function idOfOversized(text: string): number | null | undefined {
  const [head, tail] = [text.slice(0, 1_000), text.slice(-1_000)];
  if (!/"jsonrpc"/.test(head + tail)) return undefined;
  const version = String.raw`(?:"jsonrpc"\s*:\s*"2\.0"\s*)`;
  const idMember = String.raw`"id"\s*:\s*"?(\d{1,15})"?\s*`;
  const id =
    new RegExp(String.raw`^\s*\{\s*(?:${version},\s*)?${idMember},`).exec(head)?.[1] ??
    new RegExp(String.raw`,\s*${idMember}(?:,\s*${version})?\}\s*$`).exec(tail)?.[1];
  if (/^[^[]{0,200}"method"\s*:/.test(head)) return undefined;
  return id === undefined ? null : Number(id);
}

/** Returns the elements of a batch, otherwise the string itself. */
export function messagesIn(text: string): string[] {
  const spans = /^\s*\[/.test(text) && Array.isArray(jsonIn(text)) ? elements(text) : [];
  return spans.length === 0 ? [text] : spans.map((span) => slice(text, span));
}

/** Returns a response message; `id` and `result` are JSON text. */
export function answerText(id: string, answer: ClientAnswer): string {
  const outcome = 'result' in answer ? `"result":${answer.result}` : `"error":${JSON.stringify(answer.error)}`;
  return `{"jsonrpc":"2.0","id":${id},${outcome}}`;
}

export function errorAnswer(message: string, code: number = rpcCode.internalError): ClientAnswer {
  return { error: { code, message } };
}

export function unansweredRequest(method: string): ClientAnswer {
  return errorAnswer(`This client does not answer ${method}`, rpcCode.methodNotFound);
}

/** Writes a notification if `id` is null; `params` is JSON text. */
export function requestText(id: number | null, method: string, params: string | undefined): string {
  const idPart = id === null ? '' : `"id":${id},`;
  const paramsPart = params === undefined ? '' : `,"params":${params}`;
  return `{"jsonrpc":"2.0",${idPart}"method":${JSON.stringify(method)}${paramsPart}}`;
}

/** Returns the id as a number, even if the upstream sent a string. */
export function numericId(id: unknown): unknown {
  return typeof id === 'string' && id.trim() !== '' ? Number(id) : id;
}

/**
 * Returns the reply to a request. An error without an id is accepted too: servers send it when they could not read the request, and the HTTP exchange
 * identifies the request.
 */
export function replyTo(id: number, text: string, head: RpcHead, era: Era): McpReply | null {
  if ('method' in head) return null;
  const isOurs = head.id === id || numericId(head.id) === id;
  const hasError = head.error !== undefined && head.error !== null;
  if ('result' in head && isOurs && !(hasError && head.result === null)) {
    const parts = members(text);
    return { text, id: parts.get('id') ?? null, result: parts.get('result') ?? null, error: null, era };
  }
  if (!hasError || !(isOurs || head.id === null || head.id === undefined)) return null;
  // `{"error": "forbidden"}` of plain HTTP APIs is not a JSON-RPC error: the HTTP status is more specific.
  const { code, message } = head.error as Partial<RpcError>;
  if (typeof code !== 'number' && !text.includes('"jsonrpc"') && !isOurs) return null;
  const error = toRpcError(head.error);
  const isSound = code === error.code && message === error.message && !('result' in head);
  const reply = isSound ? text : JSON.stringify({ jsonrpc: '2.0', id: head.id ?? null, error });
  return { text: reply, id: members(reply).get('id') ?? null, result: null, error, era };
}

const ERROR_CHARS_MAX = 500;

/** Returns the code of an error, if it is an integer, and the message. */
export function toRpcError(
  value: unknown,
  defaultMessage = 'The MCP server sent an error without a message.',
): RpcError {
  const { code, message, data } = (typeof value === 'object' && value !== null ? value : {}) as Partial<RpcError>;
  const words = typeof value === 'string' ? value : JSON.stringify(message ?? (code === undefined ? value : undefined));
  const number = numericId(code);
  return {
    code: Number.isSafeInteger(number) ? (number as number) : rpcCode.internalError,
    message: typeof message === 'string' ? message : (words?.slice(0, ERROR_CHARS_MAX) ?? defaultMessage),
    ...(data === undefined ? {} : { data }),
  };
}

const plainEnvelope = envelopeText({});

function envelopeText(capabilities: Record<string, unknown>): string {
  const parts = {
    [envelope.version]: MODERN_VERSION,
    [envelope.clientInfo]: CLIENT_INFO,
    [envelope.capabilities]: capabilities,
  };
  return JSON.stringify(parts).slice(1, -1);
}

export function withEnvelope(params: string | undefined, capabilities?: Record<string, unknown>): string {
  const added = capabilities ? envelopeText(capabilities) : plainEnvelope;
  if (params === undefined) return `{"_meta":{${added}}}`;
  const parts = members(params);
  const meta = parts.get('_meta');
  if (meta && params[meta[0]] === '{') {
    const isEmpty = members(params, meta[0]).size === 0;
    return splice(params, meta, `{${added}${isEmpty ? '' : ','}${slice(params, meta).trim().slice(1)}`);
  }
  if (meta) return splice(params, meta, `{${added}}`);
  return `{"_meta":{${added}}${parts.size === 0 ? '' : ','}${params.trim().slice(1)}`;
}

/** Removes the subscription id, which is valid only for one hop. */
export function withoutSubscriptionId(text: string): string {
  const params = text.includes(SUBSCRIPTION_ID) ? memberText(text, 'params') : undefined;
  if (!params?.startsWith('{')) return text;
  return withMember(
    text,
    'params',
    withoutMeta(params, (name) => name === SUBSCRIPTION_ID),
  );
}

/** Returns the position of the progress token in a request's params; null without one. */
export function progressTokenIn(params: string): Span | null {
  if (!params.includes('progressToken')) return null;
  const meta = members(params).get('_meta');
  if (!meta || params[meta[0]] !== '{') return null;
  return members(params, meta[0]).get('progressToken') ?? null;
}

/**
 * Returns the value of an `Mcp-Name` or `Mcp-Param-…` header: plain if HTTP allows it, otherwise the base64 form of MCP 2026-07-28.
 */
export function headerValue(text: string): string {
  const isPlain = /^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text);
  return isPlain ? text : `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;
}

/** Member of a method's params that the `Mcp-Name` header repeats. */
export const namedBy: ReadonlyMap<string, 'name' | 'uri' | 'taskId'> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
]);

/** Returns the result of a reply as a value; undefined for an error. Not for forwarded results, which must keep their text. */
export function resultOf({ text, result }: McpReply): unknown {
  return result ? JSON.parse(slice(text, result)) : undefined;
}

/** Returns the `resultType` of a reply: `complete` by default, null for an error. */
export function resultTypeOf({ text, result, era }: McpReply): string | null {
  if (!result) return null;
  if (era === 'legacy' || !text.includes('"resultType"') || text[result[0]] !== '{') return 'complete';
  const span = members(text, result[0]).get('resultType');
  const type: unknown = span && JSON.parse(slice(text, span));
  return typeof type === 'string' ? type : 'complete';
}

/**
 * Returns a complete reply, for callers that cannot answer server requests.
 *
 * @throws InputNeededError for `input_required`, UpstreamError for a task or an unknown type
 */
export function completeOrRefuse(reply: McpReply): McpReply {
  const type = resultTypeOf(reply);
  if (type === null || type === 'complete') return reply;
  if (type === 'input_required') {
    throw new InputNeededError((resultOf(reply) as { inputRequests?: unknown }).inputRequests);
  }
  if (type === 'task') {
    throw new UpstreamError(
      'The MCP server answered with a task, which its client must poll. Tasks are not supported here.',
    );
  }
  throw new UpstreamError(`The MCP server answered with a result of type "${type.slice(0, 40)}", which is not MCP.`);
}

/** Rewrites the list of a reply. Items are JSON text; null from `rewrite` leaves the reply unchanged. */
export function withList(
  reply: McpReply,
  member: string,
  rewrite: (items: string[]) => readonly string[] | null,
): McpReply {
  const { text, result } = reply;
  const list = result && text[result[0]] === '{' ? members(text, result[0]).get(member) : undefined;
  if (!list || text[list[0]] !== '[') return reply;
  const items = rewrite(elements(text, list[0]).map((span) => slice(text, span)));
  if (items === null) return reply;
  const changed = splice(text, list, `[${items.join(',')}]`);
  const parts = members(changed);
  return { ...reply, text: changed, id: parts.get('id') ?? null, result: parts.get('result') ?? null };
}

/** Beginning of a reply whose id 0 is replaced by the caller's. */
const BEFORE_ID = '{"jsonrpc":"2.0","id":';
const HEAD = `${BEFORE_ID}0,"result":`;
const ID: Span = [BEFORE_ID.length, BEFORE_ID.length + 1];

/** @param result JSON text */
export function resultReply(result: string, era: Era = 'legacy'): McpReply {
  const text = `${HEAD}${result}}`;
  return { text, id: ID, result: [HEAD.length, text.length - 1], error: null, era };
}

export function isErrorResult({ text, result }: McpReply): boolean {
  // A search of the text rules out almost every result.
  return result !== null && /"isError"\s*:\s*true/.test(text) && memberText(slice(text, result), 'isError') === 'true';
}

export function errorReply(code: number, message: string): McpReply {
  const error = { code, message };
  const text = JSON.stringify({ jsonrpc: '2.0', id: 0, error });
  return { text, id: ID, result: null, error, era: 'legacy' };
}

/** Returns a reply with structured content, and the same as text for models. @param structured JSON text */
export function toolReply(structured: string, isError = false): McpReply {
  const content = JSON.stringify([{ type: 'text', text: structured }]);
  return resultReply(`{"content":${content},"structuredContent":${structured}${isError ? ',"isError":true' : ''}}`);
}

export function toolFailureReply(message: string): McpReply {
  return resultReply(JSON.stringify({ content: [{ type: 'text', text: message }], isError: true }));
}
