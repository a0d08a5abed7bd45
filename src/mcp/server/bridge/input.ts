/**
 * Input that a call needs from its client, in the forms of both eras, and Slipway's own request for it.
 *
 * Modern: a result with `resultType: input_required`, `inputRequests` by key and `requestState`; the client repeats the
 * call with `inputResponses`. Legacy (2025-11-25): requests of the server during the call, or the error -32042 with
 * `elicitations` of mode `url`. The response to Slipway's own request is handled here and never sent upstream.
 *
 * Everything is JSON text, since params and states must be forwarded byte for byte. Malformed requests of an upstream
 * are left out.
 */
import { isObject } from '../../../platform/text/json.js';
import { memberText, withoutMembers, withFirst, withMember } from '../../protocol/json-edit.js';
import { members, slice } from '../../protocol/json-text.js';
import type { ClientAnswer, RpcError } from '../../protocol/channel.js';

/** URL elicitation required: an error code only of 2025-11-25. */
const URL_ELICITATION_REQUIRED = -32042;

const SETUP_KEY = 'slipway-setup';

/** Message that the client shows to its user next to the link. */
const SETUP_MESSAGE =
  'The MCP server asks for your authorization. Open the page, sign in and allow the access; then let the call be repeated.';

export const urlCapability = { elicitation: { url: {} } };

export interface InputRequest {
  /** Key of the request in `inputRequests`, repeated in `inputResponses`. */
  key: string;
  method: string;
  params: string | undefined;
}

export interface InputRequired {
  requests: InputRequest[];
  /** `requestState` as JSON text, returned byte for byte; undefined without one. */
  requestState: string | undefined;
}

/** Methods whose results may be `input_required` (MCP 2026-07-28). */
export const mayRequireInput: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

/** Parses an `input_required` result; null for other results. */
export function inputRequired(result: string): InputRequired | null {
  if (!result.includes('"input_required"') || !result.startsWith('{')) return null;
  const parts = members(result);
  const type = parts.get('resultType');
  if (!type || slice(result, type) !== '"input_required"') return null;
  const incoming = parts.get('inputRequests');
  const state = parts.get('requestState');
  const byKey = incoming && result[incoming[0]] === '{' ? slice(result, incoming) : '{}';
  const requests = [...members(byKey)].flatMap(([key, span]) => {
    const request = slice(byKey, span);
    if (!request.startsWith('{')) return [];
    const method = memberText(request, 'method');
    const params = memberText(request, 'params');
    return method?.startsWith('"') ? [{ key, method: JSON.parse(method) as string, params }] : [];
  });
  return { requests, requestState: state && slice(result, state) };
}

export function inputResult(requests: readonly InputRequest[], requestState?: string): string {
  const incoming = requests.map(({ key, method, params }) => {
    const paramsMember = params === undefined ? '' : `,"params":${params}`;
    return `${JSON.stringify(key)}:{"method":${JSON.stringify(method)}${paramsMember}}`;
  });
  const state = requestState === undefined ? '' : `,"requestState":${JSON.stringify(requestState)}`;
  return `{"resultType":"input_required","inputRequests":{${incoming.join(',')}}${state}}`;
}

/**
 * Returns the params of the retry. Only the responses of this round are added. A response that is an error is omitted; the upstream then repeats its
 * request or fails.
 */
export function retryParams(
  params: string | undefined,
  { requestState }: InputRequired,
  answers: ReadonlyMap<string, ClientAnswer>,
): string {
  const responses = [...answers].flatMap(([key, answer]) =>
    'result' in answer ? [`${JSON.stringify(key)}:${answer.result}`] : [],
  );
  const first = [
    ...(answers.size === 0 ? [] : [`"inputResponses":{${responses.join(',')}}`]),
    ...(requestState === undefined ? [] : [`"requestState":${requestState}`]),
  ];
  const original = withoutAnswers(params ?? '{}');
  return first.length === 0 ? original : withFirst(original, first.join(','));
}

export function withoutAnswers(params: string): string {
  return withoutMembers(params, (name) => name === 'inputResponses' || name === 'requestState');
}

export function subjectOf({ method, params }: InputRequest): string {
  const value: unknown = params === undefined ? {} : JSON.parse(params);
  const { message, url } = isObject(value) ? value : {};
  if (method === 'elicitation/create') {
    const text = typeof message === 'string' ? message.slice(0, 500) : 'a reply of its user';
    return typeof url === 'string' ? `${text} (${url.slice(0, 2_000)})` : text;
  }
  return method === 'roots/list' ? 'the roots of its client' : 'a message of its client’s model';
}

export function takesUrls(capabilities: Record<string, unknown>): boolean {
  return isObject(capabilities.elicitation) && isObject(capabilities.elicitation.url);
}

/** Returns the input requests for the pages in a -32042 error; null when it contains none. */
export function inputOfUrlError({ code, data }: RpcError): string | null {
  if (code !== URL_ELICITATION_REQUIRED || !isObject(data) || !Array.isArray(data.elicitations)) return null;
  const pages = data.elicitations.filter(isObject).filter(({ url }) => typeof url === 'string');
  if (pages.length === 0) return null;
  return inputResult(pages.map(({ message, url }, i) => pageRequest(`elicitation-${i + 1}`, String(message), url)));
}

export function inputOfSetup(url: string): string {
  return inputResult([pageRequest(SETUP_KEY, SETUP_MESSAGE, url)]);
}

/**
 * Returns a -32042 error.
 *
 * @param hint message of the error; it and `setupUrl` are for clients that read no `elicitations`
 */
export function setupError(hint: string, url: string, elicitationId: string): RpcError {
  const elicitations = [{ mode: 'url', elicitationId, url, message: SETUP_MESSAGE }];
  return { code: URL_ELICITATION_REQUIRED, message: hint, data: { setupUrl: url, elicitations } };
}

/**
 * Returns true if the user declined one of the pages that a modern client was sent to; `params` are those of the
 * retry.
 */
export function isDeclined(params: unknown, isOurs = isSetupKey): boolean {
  const answers = isObject(params) ? params.inputResponses : undefined;
  if (!isObject(answers)) return false;
  return Object.entries(answers).some(([key, answer]) => isOurs(key) && isObject(answer) && answer.action !== 'accept');
}

export function withoutSetupAnswer(params: string): string {
  if (!params.includes(SETUP_KEY)) return params;
  const answers = memberText(params, 'inputResponses');
  if (!answers?.startsWith('{')) return params;
  const rest = withoutMembers(answers, isSetupKey);
  if (rest === answers) return params;
  if (!/^\{\s*\}$/.test(rest)) return withMember(params, 'inputResponses', rest);
  return withoutMembers(params, (name) => name === 'inputResponses');
}

/** Adds an elicitation id, which clients of 2025-11-25 require for pages. @param params JSON text */
export function withElicitationId(params: string, elicitationId: string): string {
  return withMember(params, 'elicitationId', JSON.stringify(elicitationId));
}

function isSetupKey(key: string): boolean {
  return key === SETUP_KEY;
}

function pageRequest(key: string, message: string, url: unknown): InputRequest {
  return { key, method: 'elicitation/create', params: JSON.stringify({ mode: 'url', message, url }) };
}
