import { createHash } from 'node:crypto';

/** The query of a stored form. */
const HASHED_QUERY = /^\?sha256:[\w-]{43}$/;

/** The kinds of owners of credentials. */
export const ownerKinds = ['server', 'connection'] as const;

/** The owner of a credential. */
export interface CredentialOwner {
  kind: (typeof ownerKinds)[number];
  /** The id of the owner's row. */
  id: string;
}

/** The input of an authorization. */
export interface BeginAuthorization {
  upstreamUrl: string;
  /** The `WWW-Authenticate` header(s) of the upstream's 401 or 403; null when there are none. */
  challenge: string[] | null;
  /** The identity of the owner, such as `acme/weather`. */
  label: string;
  /** The registry server whose code authorizes its users itself, such as `acme/weather`; absent for all others. */
  adapter?: string;
}

/** An OAuth client that a person registered by hand. */
export interface PreregisteredClient {
  /** The authorization server that it is registered at, as its metadata spells it. */
  issuer: string;
  clientId: string;
  /** Null for a public client. */
  clientSecret: string | null;
}

/** The page where a person authorizes Slipway at an upstream. */
export interface AuthorizationSetup {
  /** Gives access to anyone who has it, so only the owner may read it. */
  setupUrl: string;
  expiresAt: Date;
}

/**
 * The form in which upstream URLs are stored and compared: as `URL` writes them, without fragment, and with a hash instead
 * of the query, which may hold keys. A stored form stays as it is.
 */
export function upstreamAddress(url: string): string {
  const { origin, pathname, search } = new URL(url);
  if (search === '' || HASHED_QUERY.test(search)) return origin + pathname + search;
  return `${origin}${pathname}?sha256:${createHash('sha256').update(search).digest('base64url')}`;
}
