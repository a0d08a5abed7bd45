import { isObject } from '../../../platform/text/json.js';
import { memberText, withMember, withoutMembers } from '../../protocol/json-edit.js';
import type { RpcError } from '../../protocol/channel.js';
import { withoutAnswers } from './input.js';

/** Sending a user to a web page before a call can go on, in the words of each revision. */

/** "The user must visit a page first", in 2025-11-25 alone. */
const URL_ELICITATION_REQUIRED = -32042;

/** The name of our own question among a call's input requests. */
const SETUP_KEY = 'slipway-setup';

/** What a client must have declared to be sent to a page. */
export const urlCapability = { elicitation: { url: {} } };

/** Whether these client capabilities take questions that lead to a page. */
export function takesUrls(capabilities: Record<string, unknown>): boolean {
  return isObject(capabilities.elicitation) && isObject(capabilities.elicitation.url);
}

/** The pages a -32042 error names, as the input a modern call asks for; null when it names none. */
export function inputOfUrlError({ code, data }: RpcError): string | null {
  if (code !== URL_ELICITATION_REQUIRED || !isObject(data) || !Array.isArray(data.elicitations)) return null;
  const pages = data.elicitations.filter(isObject).filter(({ url }) => typeof url === 'string');
  if (pages.length === 0) return null;
  return inputResult(
    Object.fromEntries(pages.map(({ message, url }, i) => [`elicitation-${i + 1}`, question(String(message), url)])),
  );
}

/** Our own page as the input a modern call asks for. */
export function inputOfSetup(message: string, url: string): string {
  return inputResult({ [SETUP_KEY]: question(message, url) });
}

/** The same for a client of 2025-11-25, which gets it as an error. */
export function setupError(message: string, url: string, elicitationId: string): RpcError {
  const elicitations = [{ mode: 'url', elicitationId, url, message }];
  return { code: URL_ELICITATION_REQUIRED, message, data: { elicitations } };
}

/** Whether the user refused one of the pages a modern client was led to; `params` are the retry's. */
export function isDeclined(params: unknown, isOurs = isSetupKey): boolean {
  const answers = isObject(params) ? params.inputResponses : undefined;
  if (!isObject(answers)) return false;
  return Object.entries(answers).some(([key, answer]) => isOurs(key) && isObject(answer) && answer.action !== 'accept');
}

/**
 * The params of a retry for a legacy upstream, which never asked: the original call. Every answer in it is about a page
 * the user was led to.
 */
export function originalParams(params: string): string {
  return withoutAnswers(params);
}

/** The params of a retry for a modern upstream, without the answer to our own question. */
export function withoutSetupAnswer(params: string): string {
  if (!params.includes(SETUP_KEY)) return params;
  const answers = memberText(params, 'inputResponses');
  if (!answers?.startsWith('{')) return params;
  const rest = withoutMembers(answers, isSetupKey);
  if (rest === answers) return params;
  if (!/^\{\s*\}$/.test(rest)) return withMember(params, 'inputResponses', rest);
  return withoutMembers(params, (name) => name === 'inputResponses');
}

/** A question for a client of 2025-11-25, which wants an id on pages. `params` is JSON text. */
export function withElicitationId(params: string, elicitationId: string): string {
  return withMember(params, 'elicitationId', JSON.stringify(elicitationId));
}

function isSetupKey(key: string): boolean {
  return key === SETUP_KEY;
}

function question(message: string, url: unknown): object {
  return { method: 'elicitation/create', params: { mode: 'url', message, url } };
}

function inputResult(inputRequests: object): string {
  return JSON.stringify({ resultType: 'input_required', inputRequests });
}
