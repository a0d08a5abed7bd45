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
  /** The name that the page shows, such as `acme/weather`. */
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
  /** Gives access to whoever has it, so only the owner may read it. */
  setupUrl: string;
  expiresAt: Date;
}

/** The normalized form in which upstream URLs are stored and compared: as `URL` writes them, without fragment. */
export function upstreamAddress(url: string): string {
  const { href, hash } = new URL(url);
  return hash === '' ? href : href.slice(0, -hash.length);
}
