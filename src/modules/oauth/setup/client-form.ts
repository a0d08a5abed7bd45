import type { PreregisteredClient } from '../credentials.types.js';
import type { ClientRequest } from './setup.types.js';

/** The names of the client's fields in the form. */
export const clientFields = { issuer: 'client.issuer', id: 'client.id', secret: 'client.secret' } as const;

const ID_CHARS_MAX = 1_000;
const SECRET_CHARS_MAX = 4_000;

/** RFC 6749 appendix A.1 and A.2. */
const VISIBLE = /^[\x20-\x7e]*$/;

/** The submitted client; null to use the stored one further; or the error of the form. */
export type SubmittedClient = { client: PreregisteredClient | null } | { fault: string };

/** Reads the client of a form that has fields for one. */
export function readClient(form: URLSearchParams, { state }: ClientRequest): SubmittedClient {
  const text = (name: string) => form.get(name)?.trim() ?? '';
  const clientId = text(clientFields.id);
  const secret = text(clientFields.secret);
  if (hasOtherValues(form)) return { fault: 'Give a client or other values, not both at once.' };
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

/** True if a client was submitted, or if the form has fields for one and nothing was filled in. */
export function isForClient(form: URLSearchParams): boolean {
  const hasClient = [clientFields.id, clientFields.secret].some((name) => (form.get(name)?.trim() ?? '') !== '');
  return hasClient || (form.has(clientFields.id) && !hasOtherValues(form));
}

function hasOtherValues(form: URLSearchParams): boolean {
  return [...form].some(([name, value]) => !name.startsWith('client.') && value.trim() !== '');
}
