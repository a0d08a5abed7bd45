import { createHash } from 'node:crypto';
import type { Person } from '../auth/access.types.js';
import type { PageServer } from './setup/setup.types.js';

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

/** The owners of one kind, for their authorizations. Implemented by the module that has them. */
export interface CredentialOwners {
  /** False when nothing waits for an authorization of this owner: its links are over, and no token is stored. */
  isAuthorizationPending(ownerId: string): Promise<boolean>;
  /** True if the account of a link, with all its rights, can authorize this owner. */
  mayAuthorize(ownerId: string, person: Person): Promise<boolean>;
  /** Names, description and icon of an owner, for the page that asks for its authorization; empty when unknown. */
  presentation(ownerId: string): Promise<Pick<PageServer, 'name' | 'title' | 'description' | 'iconUrl'>>;
  /** A step after an authorization was stored, such as the resumption of a release. */
  handleAuthorization(ownerId: string): Promise<void>;
}

/** Tokens of the {@link CredentialOwners}. */
export const credentialOwners = {
  server: Symbol('CredentialOwners of servers'),
  connection: Symbol('CredentialOwners of connections'),
};

/** What an owner chose for its authorizations, instead of what the MCP server and its authorization server announce. */
export interface OAuthChoice {
  /** The authorization server. */
  issuer?: string;
  /** A client that was registered there by hand. */
  clientId?: string;
  scopes?: string[];
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
  /** The choice of the owner, with the client's secret sealed for the owner's row; absent without one. */
  oauth?: OAuthChoice & { sealedSecret: string | null };
}

/** An OAuth client that a person registered by hand. */
export interface PreregisteredClient {
  /** The authorization server that it is registered at, as its metadata spells it. */
  issuer: string;
  clientId: string;
  /** Null for a public client. */
  clientSecret: string | null;
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
