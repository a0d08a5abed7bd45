import type { PreregisteredClient } from '../../oauth/credentials.types.js';
import type { ClientRequest } from '../../oauth/setup-page.service.js';

/** The names under which the form sends a client. */
export const clientFields = { issuer: 'client.issuer', id: 'client.id', secret: 'client.secret' } as const;

const ID_CHARS_MAX = 1_000;
const SECRET_CHARS_MAX = 4_000;

/** RFC 6749 appendix A.1 and A.2. */
const VISIBLE = /^[\x20-\x7e]*$/;

/** What a person typed: a client, null where they go on with the one that was given, or what is wrong with it. */
export type TypedClient = { client: PreregisteredClient | null } | { fault: string };

/** Reads the client of a form that asked for it. */
export function typedClient(body: URLSearchParams, { state }: ClientRequest): TypedClient {
  const text = (name: string) => body.get(name)?.trim() ?? '';
  const clientId = text(clientFields.id);
  const secret = text(clientFields.secret);
  if (hasValues(body)) return { fault: 'Give a client or other values, not both at once.' };
  if (clientId === '' && secret !== '') return { fault: 'A client secret belongs to a client ID: give both.' };
  if (clientId === '') return state === 'given' ? { client: null } : { fault: 'Nothing was filled in.' };
  if (!VISIBLE.test(clientId + secret)) return { fault: 'A client ID and its secret are visible ASCII characters.' };
  if (clientId.length > ID_CHARS_MAX) return { fault: `A client ID must be at most ${ID_CHARS_MAX} characters.` };
  if (secret.length > SECRET_CHARS_MAX) {
    return { fault: `A client secret must be at most ${SECRET_CHARS_MAX} characters.` };
  }
  const issuer = text(clientFields.issuer);
  return { client: { issuer, clientId, clientSecret: secret === '' ? null : secret } };
}

/** True when a form is about a client: one was typed, or it asked for one and nothing else was filled in. */
export function isForClient(body: URLSearchParams): boolean {
  const isTyped = [clientFields.id, clientFields.secret].some((name) => (body.get(name)?.trim() ?? '') !== '');
  return isTyped || (body.has(clientFields.id) && !hasValues(body));
}

function hasValues(body: URLSearchParams): boolean {
  return [...body].some(([name, value]) => /^(headers|query)\./.test(name) && value.trim() !== '');
}
