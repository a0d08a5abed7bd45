import { createHash } from 'node:crypto';
import type { Person } from '../auth/access.types.js';
import type { PageServer } from './setup/setup.types.js';

/** The query of a stored form. */
const HASHED_QUERY = /^\?sha256:[\w-]{43}$/;

export const ownerKinds = ['server', 'connection'] as const;

export interface CredentialOwner {
  kind: (typeof ownerKinds)[number];
  id: string;
}

/** Lookups for the owners of one kind. Implemented by the module that stores them. */
export interface CredentialOwners {
  /** False when this owner no longer needs an authorization: its links are invalid, and no token is stored. */
  isAuthorizationPending(ownerId: string): Promise<boolean>;
  /** True if the account of a link, with all its rights, can authorize this owner. */
  mayAuthorize(ownerId: string, person: Person): Promise<boolean>;
  /** Names, description and icon of an owner, for the page that requests its authorization; empty when unknown. */
  presentation(ownerId: string): Promise<Pick<PageServer, 'name' | 'title' | 'description' | 'iconUrl'>>;
  /** A step after an authorization was stored, such as the resumption of a release. */
  handleAuthorization(ownerId: string): Promise<void>;
}

export const credentialOwners = {
  server: Symbol('CredentialOwners of servers'),
  connection: Symbol('CredentialOwners of connections'),
};

/** The owner's choice for its authorizations, which replaces what the MCP server and its authorization server announce. */
export interface OAuthChoice {
  issuer?: string;
  /** A client that was registered there manually. */
  clientId?: string;
  scopes?: string[];
}

export interface BeginAuthorization {
  upstreamUrl: string;
  /** The `WWW-Authenticate` header(s) of the upstream's 401 or 403; null when there are none. */
  challenge: string[] | null;
  /** The identity of the owner, such as `acme/weather`. */
  label: string;
  /** The registry server whose code authorizes its users itself, such as `acme/weather`; absent for all others. */
  adapter?: string;
  /** The choice of the owner, with the client's secret encrypted for the owner's row; absent without one. */
  oauth?: OAuthChoice & { sealedSecret: string | null };
}

/** An OAuth client that a user registered manually. */
export interface PreregisteredClient {
  /** The authorization server at which it is registered, as its metadata spells it. */
  issuer: string;
  clientId: string;
  /** Null for a public client. */
  clientSecret: string | null;
}

/**
 * The form in which upstream URLs are stored and compared: as `URL` writes them, without fragment, and with a hash instead of the query,
 * which might contain keys. Idempotent.
 */
export function upstreamAddress(url: string): string {
  const { origin, pathname, search } = new URL(url);
  if (search === '' || HASHED_QUERY.test(search)) return origin + pathname + search;
  return `${origin}${pathname}?sha256:${createHash('sha256').update(search).digest('base64url')}`;
}
