import type { IncomingMessage } from 'node:http';
import type { AccountLimits } from '../../config/account-limits.js';
import type { DomainError } from '../../platform/errors/domain-error.js';

/** Levels of keys, in the form of the API. */
export const keyLevels = ['read', 'call', 'publish', 'manage'] as const;
export type KeyLevel = (typeof keyLevels)[number];

/**
 * Action on a target. `discover`: learning that it exists, and its public record. `own`: what stays with the owner, such as
 * grants and the deletion.
 */
export type Action = 'discover' | KeyLevel | 'own';

/** A right of a key: in one namespace, by name, or in all. */
export interface KeyScope {
  level: KeyLevel;
  namespace: string | null;
}

/** A namespace, or a server or connection in it. */
export interface Target {
  /** The account that owns the namespace. */
  ownerId: string;
  /** The namespace's name. */
  namespace: string;
  /** A public server, which every caller may find and call. */
  isPublic?: boolean;
  /** What the owner granted to the caller's account. */
  granted?: GrantLevel | null;
}

export const grantLevels = ['call', 'manage'] as const;
export type GrantLevel = (typeof grantLevels)[number];

/** The account and the credential of a request. */
export interface Caller {
  accountId: string;
  /** Id of the API key; of an OAuth token the id of what its person allowed, which outlives the token. */
  keyId: string;
  /** Of an OAuth token whose login a session of a key made: the id of that key. */
  rootKeyId?: string;
  /** For an OAuth token: the path of the only MCP endpoint that it opens (`pathOfEndpoint`). */
  endpoint?: string;
  isOperator: boolean;
  /** Rights of the key; null: all of its account. */
  scopes: readonly KeyScope[] | null;
  /** Limits of the account; absent for the caller without a key. */
  limits?: AccountLimits;
  /** The grant that opened the route to it; absent where the account owns the target, or the target is public. */
  grant?: GrantRef;
}

/** A row of `grants`. */
export interface GrantRef {
  id: string;
  level: GrantLevel;
}

/** The caller of what is done for an account without a request of it, such as calls through its connections. */
export function callerFor(accountId: string): Caller {
  return { accountId, keyId: ANONYMOUS.keyId, isOperator: false, scopes: null };
}

/** The caller of what a person does on a page, as an account and with all its rights. */
export interface Person extends Caller {
  /** Counts what ended the logins of the account: what was made with a smaller one is over. */
  loginsEpoch: number;
}

/** The caller without a key on routes that need none: owns nothing. */
export const ANONYMOUS: Caller = {
  accountId: '00000000-0000-0000-0000-000000000000',
  keyId: '00000000-0000-0000-0000-000000000000',
  isOperator: false,
  scopes: null,
};

declare global {
  /**
   * Resources and the operations on them. Each module adds its own here, so that a misspelt scope does not compile:
   * `declare global { interface SlipwayScopes { stars: 'read' | 'write' } }`.
   */
  interface SlipwayScopes {
    accounts: 'read' | 'write';
  }
}

/**
 * The permission that a route declares, as `resource:operation`. OpenAPI shows it as `x-scope`. The operation says which
 * scopes of a key cover it: {@link actionOf}.
 */
export type Scope = {
  [Resource in keyof SlipwayScopes]: `${Resource}:${SlipwayScopes[Resource]}`;
}[keyof SlipwayScopes];

/** What a scope asks of a key: `read`, `execute` (call) and `publish` as they are, every other operation `manage`. */
export function actionOf(scope: Scope): Action {
  const operation = scope.slice(scope.lastIndexOf(':') + 1);
  if (operation === 'execute') return 'call';
  return operation === 'read' || operation === 'publish' ? operation : 'manage';
}

/** A namespace that the caller owns. */
export interface OwnedNamespace {
  id: string;
  name: string;
}

/**
 * Who may use a route beyond holding a valid key. One of:
 * - nothing more: any key;
 * - `owner`: the route parameter that holds a namespace the caller must own; `qualifiedName` holds it before the slash;
 * - `account`: the route parameter that holds an account id (or `me`), which must be the caller's, or the caller the
 *   operator;
 * - `operator`: the operator only.
 */
export interface AccessRule {
  scope: Scope;
  owner?: string;
  account?: string;
  operator?: true;
  /** With `owner`: grants do not count. */
  own?: true;
  /** With `owner`: also open to accounts that were granted only calls. */
  discover?: true;
  /** Needs no key while `PUBLIC_READS=true`; the caller is then {@link ANONYMOUS}. A wrong key stays refused. */
  anonymous?: true;
  /** A link signed for this very path opens it without a key (`SignedUrls`). */
  signed?: true;
  /** The answer when the owned thing does not exist. */
  missing?: () => DomainError;
  /** The answer when it belongs to somebody else. Default: the same as `missing`, so the two look alike. */
  foreign?: () => DomainError;
}

/** The values of the route parameters that a rule names. */
export interface AccessTarget {
  owner?: string;
  account?: string;
  /** The connection of a route below one, which may be granted. */
  connectionId?: string;
}

/** The result of an {@link AccessRule} that allowed a request. */
export interface Grant {
  caller: Caller;
  /** Set for `owner` rules. */
  namespace?: OwnedNamespace;
  /** Set for `account` rules, with `me` resolved. */
  accountId?: string;
  /** True for a request with a signed link, which shows what its maker may see. */
  isSigned?: true;
}

/** Checks OAuth access tokens. The authorization server passes its implementation to {@link AccessService}. */
export interface TokenSource {
  /**
   * The caller of a request with a bearer that is no API key; a promise for a token that is not cached.
   *
   * @throws UnauthenticatedError, with a challenge where the request is for an MCP endpoint
   */
  verify(token: string, request: IncomingMessage): Caller | Promise<Caller>;
  /** Parameters of `WWW-Authenticate` of a 401 without a token; undefined where the request is for no MCP endpoint. */
  challenge(request: IncomingMessage): string | undefined;
  /** Those of these ids ({@link Caller.keyId}) whose tokens are good. */
  validAmong(ids: string[]): Promise<Set<string>>;
}

/** Finds the owners of namespaces. The namespaces module passes its implementation to {@link AccessService}. */
export interface NamespaceOwners {
  /** The answer of {@link find} if it needs no query; otherwise null. */
  peek(name: string): { id: string; accountId: string } | null;
  /** @returns null when there is no such namespace. At most 5 s old. */
  find(name: string): Promise<{ id: string; accountId: string } | null>;
  /** Names of an account's namespaces, newest first, 1,000 at most. */
  namesOf(accountId: string): Promise<string[]>;
}

/** What may be granted: a server or a connection in a namespace, by its names. */
export interface GrantedThing {
  /** The name of the namespace. */
  namespace: string;
  kind: 'server' | 'connection';
  /** The part of a qualified name behind the slash, or the id of a connection. */
  name: string;
}

/** A grant, and the namespace that holds its target. */
export interface FoundGrant extends GrantRef {
  namespaceId: string;
  ownerId: string;
}

/** A server or a connection, with the account that owns its namespace. */
export type OwnedThing = GrantedThing & { ownerId: string };

/** Finds grants. The grants module passes its implementation to {@link AccessService}. */
export interface GrantSource {
  /** @returns null when nothing was granted, or the thing does not exist. At most 5 s old. */
  find(accountId: string, thing: GrantedThing): Promise<FoundGrant | null>;
}
