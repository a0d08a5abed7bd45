import { createHash } from 'node:crypto';
import type { Person } from '../auth/access.types.js';
import type { PageServer } from './setup/setup.types.js';

const HASHED_QUERY = /^\?sha256:[\w-]{43}$/;

export const ownerKinds = ['server', 'connection'] as const;

export interface CredentialOwner {
  kind: (typeof ownerKinds)[number];
  id: string;
}

/** Owners of credentials, provided by the module that stores them. */
export interface CredentialOwners {
  /** Returns false when this owner no longer needs an authorization: its links are invalid, and no token is stored. */
  isAuthorizationPending(ownerId: string): Promise<boolean>;
  /** Returns true if the account of a link, with all its rights, can authorize this owner. */
  mayAuthorize(ownerId: string, person: Person): Promise<boolean>;
  /** Returns names for the page that requests the authorization; an empty object when unknown. */
  presentation(ownerId: string): Promise<Pick<PageServer, 'name' | 'title' | 'description' | 'iconUrl'>>;
  /** Handles a completed authorization: resumes a release, for example. */
  handleAuthorization(ownerId: string): Promise<void>;
}

export const credentialOwners = {
  server: Symbol('CredentialOwners of servers'),
  connection: Symbol('CredentialOwners of connections'),
};

/** The owner's choice for its authorizations, which replaces what the MCP server and its authorization server announce. */
export interface OAuthChoice {
  issuer?: string;
  clientId?: string;
  scopes?: string[];
}

export interface BeginAuthorization {
  upstreamUrl: string;
  /** The `WWW-Authenticate` headers of a 401 or 403; null without any. */
  challenge: string[] | null;
  /** Name of the owner, such as `acme/weather`. */
  label: string;
  /** The registry server whose code authorizes its users itself, such as `acme/weather`; absent for all others. */
  adapter?: string;
  /** The owner's choice; the client's secret is encrypted for the owner's row. */
  oauth?: OAuthChoice & { sealedSecret: string | null };
}

export interface PreregisteredClient {
  /** Issuer, spelt as in the metadata of the authorization server. */
  issuer: string;
  clientId: string;
  /** Null for a public client. */
  clientSecret: string | null;
}

/**
 * Returns the stored form of a URL. Upstream URLs are stored and compared as `URL` writes them, without fragment, and with a hash instead of the query, which might contain
 * keys. Idempotent.
 */
export function upstreamAddress(url: string): string {
  const { origin, pathname, search } = new URL(url);
  if (search === '' || HASHED_QUERY.test(search)) return origin + pathname + search;
  return `${origin}${pathname}?sha256:${createHash('sha256').update(search).digest('base64url')}`;
}
