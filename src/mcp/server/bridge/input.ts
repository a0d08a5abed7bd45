import { isObject } from '../../../platform/text/json.js';
import { memberText, withoutMembers, withFirst } from '../../protocol/json-edit.js';
import { members, slice } from '../../protocol/json-text.js';
import type { ClientAnswer } from '../../protocol/channel.js';

/** One thing a modern upstream wants to know before it goes on. */
export interface InputRequest {
  /** Under which the answer is given back. */
  key: string;
  method: string;
  /** JSON text. */
  params: string | undefined;
}

/** A modern upstream's question instead of an answer. */
export interface InputRequired {
  requests: InputRequest[];
  /** JSON text, given back byte for byte; undefined when the upstream gave none. */
  requestState: string | undefined;
}

/** Methods whose results may ask for input (MCP 2026-07-28). */
export const mayAsk: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

/** What a modern result asks for; null when it is one that asks nothing. */
export function inputRequired(result: string): InputRequired | null {
  if (!result.includes('"input_required"') || !result.startsWith('{')) return null;
  const parts = members(result);
  const type = parts.get('resultType');
  if (!type || slice(result, type) !== '"input_required"') return null;
  const asked = parts.get('inputRequests');
  const state = parts.get('requestState');
  return {
    requests: asked && result[asked[0]] === '{' ? toRequests(slice(result, asked)) : [],
    requestState: state && slice(result, state),
  };
}

/**
 * The params of the next try: as before, with this round's answers and nothing of earlier ones. An answer that is an error
 * is left out; the upstream asks again, or gives up.
 */
export function retryParams(
  params: string | undefined,
  { requestState }: InputRequired,
  answers: ReadonlyMap<string, ClientAnswer>,
): string {
  const given = [...answers].flatMap(([key, answer]) =>
    'result' in answer ? [`${JSON.stringify(key)}:${answer.result}`] : [],
  );
  const first = [
    ...(answers.size === 0 ? [] : [`"inputResponses":{${given.join(',')}}`]),
    ...(requestState === undefined ? [] : [`"requestState":${requestState}`]),
  ];
  const own = withoutAnswers(params ?? '{}');
  return first.length === 0 ? own : withFirst(own, first.join(','));
}

/** Params as they were before anybody asked for input. */
export function withoutAnswers(params: string): string {
  return withoutMembers(params, (name) => name === 'inputResponses' || name === 'requestState');
}

/** What a question is about, in words for the person who reads the answer. */
export function askedFor({ method, params }: InputRequest): string {
  const value: unknown = params === undefined ? {} : JSON.parse(params);
  const { message, url } = isObject(value) ? value : {};
  if (method === 'elicitation/create') {
    const text = typeof message === 'string' ? message.slice(0, 500) : 'an answer of its user';
    return typeof url === 'string' ? `${text} (${url.slice(0, 2_000)})` : text;
  }
  return method === 'roots/list' ? 'the roots of its client' : 'a message of its client’s model';
}

function toRequests(asked: string): InputRequest[] {
  return [...members(asked)].flatMap(([key, span]) => {
    const request = slice(asked, span);
    if (!request.startsWith('{')) return [];
    const method = memberText(request, 'method');
    const params = memberText(request, 'params');
    return method?.startsWith('"') ? [{ key, method: JSON.parse(method) as string, params }] : [];
  });
}
