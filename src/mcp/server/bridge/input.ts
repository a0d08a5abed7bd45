import { isObject } from '../../../platform/text/json.js';
import { memberText, withoutMembers, withFirst } from '../../protocol/json-edit.js';
import { members, slice } from '../../protocol/json-text.js';
import type { ClientAnswer } from '../../protocol/channel.js';

/** One input request of a modern upstream. */
export interface InputRequest {
  /** Key of the request in `inputRequests`, repeated in `inputResponses`. */
  key: string;
  method: string;
  /** Params as JSON text. */
  params: string | undefined;
}

/** An `input_required` result of a modern upstream. */
export interface InputRequired {
  requests: InputRequest[];
  /** `requestState` as JSON text, returned byte for byte; undefined without one. */
  requestState: string | undefined;
}

/** Methods whose results may be `input_required` (MCP 2026-07-28). */
export const mayAsk: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

/** Parses an `input_required` result; null for other results. */
export function inputRequired(result: string): InputRequired | null {
  if (!result.includes('"input_required"') || !result.startsWith('{')) return null;
  const parts = members(result);
  const type = parts.get('resultType');
  if (!type || slice(result, type) !== '"input_required"') return null;
  const incoming = parts.get('inputRequests');
  const state = parts.get('requestState');
  return {
    requests: incoming && result[incoming[0]] === '{' ? toRequests(slice(result, incoming)) : [],
    requestState: state && slice(result, state),
  };
}

/**
 * Params of the retry: the original ones with the answers of this round only. An answer that is an error is omitted;
 * the upstream then repeats its request or fails.
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

/** Params without `inputResponses` and `requestState`. */
export function withoutAnswers(params: string): string {
  return withoutMembers(params, (name) => name === 'inputResponses' || name === 'requestState');
}

/** Subject of an input request, as text for a person. */
export function askedFor({ method, params }: InputRequest): string {
  const value: unknown = params === undefined ? {} : JSON.parse(params);
  const { message, url } = isObject(value) ? value : {};
  if (method === 'elicitation/create') {
    const text = typeof message === 'string' ? message.slice(0, 500) : 'an answer of its user';
    return typeof url === 'string' ? `${text} (${url.slice(0, 2_000)})` : text;
  }
  return method === 'roots/list' ? 'the roots of its client' : 'a message of its client’s model';
}

function toRequests(incoming: string): InputRequest[] {
  return [...members(incoming)].flatMap(([key, span]) => {
    const request = slice(incoming, span);
    if (!request.startsWith('{')) return [];
    const method = memberText(request, 'method');
    const params = memberText(request, 'params');
    return method?.startsWith('"') ? [{ key, method: JSON.parse(method) as string, params }] : [];
  });
}
