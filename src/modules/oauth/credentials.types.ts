/** What a credential can belong to; each kind is announced by the module that owns it. */
export const ownerKinds = ['server', 'connection'] as const;

/** Whose credential it is. */
export interface CredentialOwner {
  kind: (typeof ownerKinds)[number];
  /** The id of the row. */
  id: string;
}

/** What an authorization is begun with. */
export interface BeginAuthorization {
  upstreamUrl: string;
  /** The `WWW-Authenticate` header(s) of the upstream's 401 or 403; null when there are none. */
  challenge: string[] | null;
  /** What the person who authorizes knows it by, e.g. `acme/weather`. */
  label: string;
  /** The registry server whose code authorizes its users itself, such as `acme/weather`; absent for all others. */
  adapter?: string;
}

/** A client that somebody got by hand. */
export interface PreregisteredClient {
  /** The authorization server it was given for, as its metadata spells it. */
  issuer: string;
  clientId: string;
  /** Null for a client without one. */
  clientSecret: string | null;
}

/** The page where a person authorizes Slipway at an upstream. */
export interface AuthorizationSetup {
  /** Whoever has it may authorize: it is given to the owner only. */
  setupUrl: string;
  expiresAt: Date;
}
