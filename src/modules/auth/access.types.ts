import type { IncomingMessage } from 'node:http';
import type { AccountLimits } from '../../config/account-limits.js';
import type { DomainError } from '../../platform/errors/domain-error.js';
import type { ClientContext } from '../../platform/pages/client-context.js';
import type { FormParts } from '../../platform/pages/page-forms.service.js';
import type { Target, TargetName, Visibility } from '../targets/target.types.js';

export const keyLevels = ['read', 'call', 'publish', 'manage'] as const;
export type KeyLevel = (typeof keyLevels)[number];

/**
 * Action on a target. `discover`: learning that it exists, and reading its public record. `administer`: what no grant opens, such as
 * deleting a server. `own`: reserved for owners, such as grants, members and deleting a namespace.
 */
export type Action = 'discover' | KeyLevel | 'administer' | 'own';

/** Roles of the members of an organization, in the form of the API. */
export const roles = ['owner', 'editor', 'member', 'guest'] as const;
export type Role = (typeof roles)[number];

export type Memberships = ReadonlyMap<string, Role>;

/** An account that joins an organization, or a user who gets a new one. */
export type Joining = { accountId: string } | { name: string; passwordHash: string };

export const NO_MEMBERSHIPS: Memberships = new Map();

/** A scope of a key: in one namespace, by name, or in all (null). */
export interface KeyScope {
  level: KeyLevel;
  namespace: string | null;
}

export interface GuardedTarget extends Pick<Target, 'ownerId' | 'namespace'> {
  /** Visibility of a server; absent or null for targets that only owners and grantees can find. */
  visibility?: Visibility | null;
  granted?: GrantLevel | null;
}

export const grantLevels = ['call', 'manage'] as const;
export type GrantLevel = (typeof grantLevels)[number];

/** The account behind a request, with its credential. */
export interface Caller {
  accountId: string;
  /**
   * Id of the API key; for an OAuth token, of the client authorization, which outlives the token; for a browser session, of the session.
   */
  keyId: string;
  /** The key that a browser session began with; set as well for OAuth tokens that were authorized in such a session. */
  rootKeyId?: string;
  /** True for a browser session, which opens only pages. */
  isSession?: true;
  /** For an OAuth token: the path of the only MCP endpoint it opens (`pathOfEndpoint`). */
  endpoint?: string;
  isOperator: boolean;
  /** Scopes of the key; null: all rights of its account. */
  scopes: readonly KeyScope[] | null;
  /** The roles by organization. An organization with members has itself as `editor`: only its owners can `own`. */
  memberships: Memberships;
  /** Limits of the account; absent for the caller without a key. */
  limits?: AccountLimits;
  /** The grant that opened the route; absent where the account owns the target, or the target is public. */
  grant?: GrantRef;
  /** `accounts.logins_epoch`; absent without a credential of the account. */
  loginsEpoch?: number;
}

/** A row of `grants`, or {@link MEMBER_GRANT}. */
export interface GrantRef {
  /** Null for a right by membership. */
  id: string | null;
  level: GrantLevel;
  /** The only granted tools; null: everything. */
  tools: readonly string[] | null;
}

/** The right of an organization's member to its connections, equal to a grant with level `call`. */
export const MEMBER_GRANT: GrantRef = { id: null, level: 'call', tools: null };

/** Returns a caller for work without a request, such as calls through connections of the account. */
export function callerFor(accountId: string): Caller {
  return { accountId, keyId: ANONYMOUS.keyId, isOperator: false, scopes: null, memberships: NO_MEMBERSHIPS };
}

/** A user acting on a page, with all rights of the account. */
export interface Person extends Caller {
  /** Rises whenever the account's sign-ins are revoked: credentials with a smaller value are invalid. */
  loginsEpoch: number;
}

/** The caller of a page (`@Page`): who is signed in at the browser. */
export interface SessionCaller extends Person {
  accountName: string;
  /** Names of the user's organizations, at most 5. */
  organizations: readonly string[];
  /** Time zone of the account's pages, as in the IANA database; null for UTC. */
  timeZone: string | null;
  isSession: true;
}

/** The caller without a key, on routes that need none. */
export const ANONYMOUS: Caller = {
  accountId: '00000000-0000-0000-0000-000000000000',
  keyId: '00000000-0000-0000-0000-000000000000',
  isOperator: false,
  scopes: null,
  memberships: NO_MEMBERSHIPS,
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
 * The permission that a route declares, as `resource:operation`. OpenAPI shows it as `x-scope`. {@link actionOf} says which scopes of a key
 * cover it.
 */
export type Scope = {
  [Resource in keyof SlipwayScopes]: `${Resource}:${SlipwayScopes[Resource]}`;
}[keyof SlipwayScopes];

/** Returns the action that a scope needs: `read`, `execute` (call) and `publish` map to their own, every other operation to `manage`. */
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

interface KeyTerms {
  /** True for a route without a key while `PUBLIC_READS=true`; the caller is then {@link ANONYMOUS}. A wrong key is still rejected. */
  anonymous?: true;
  /** True if a link signed for this exact path opens the route without a key (`SignedUrls`). */
  signed?: true;
}

interface OperatorTerms {
  operator: true;
  /** True to also allow accounts with a limit `organizations` above 0. */
  founders?: true;
}

/** Terms of a route that is open to the account itself, the owners of an organization, and the operator. */
interface AccountTerms {
  account: string;
  operator?: true;
}

/** Like {@link AccountTerms}, but without the keys of an organization with members. */
interface OwnAccountTerms {
  account: string;
  may: 'own';
  member?: true;
}

interface TargetTerms {
  /** For `qualifiedName`, the namespace is the part before the slash. */
  owner: string;
  missing?: () => DomainError;
  /** The error of `missing` by default, so that a foreign target gets the same response. */
  foreign?: () => DomainError;
}

interface GrantableTerms extends TargetTerms {
  /** Default: the action of the scope ({@link actionOf}). */
  may?: 'discover';
  /** True to accept grants of single tools. The handler restricts itself to these tools. */
  byTool?: true;
  /** True to reject requests while the namespace is suspended, like calls. */
  serves?: true;
  /** True to accept only grants of the namespace, including for a target that does not exist yet. */
  inNamespace?: true;
}

interface OwnTargetTerms extends TargetTerms {
  may: 'administer' | 'own';
}

type Terms = KeyTerms | OperatorTerms | AccountTerms | OwnAccountTerms | GrantableTerms | OwnTargetTerms;
type NamesOf<T> = T extends unknown ? keyof T : never;
type WithoutOthers<T> = T extends unknown ? T & { [Name in Exclude<NamesOf<Terms>, keyof T>]?: undefined } : never;

/** The rule of a route, in addition to a valid key whose scopes cover the action: exactly one of the shapes. */
export type AccessTerms = WithoutOthers<Terms>;

export type AccessRule = AccessTerms & {
  scope: Scope;
  /** True for a page: the browser session is the credential, and a form has a token. */
  page?: true;
  /** Parts of a form, read only after the session, the origin and the token are checked. */
  parts?: FormParts;
};

export interface RuleParameters {
  owner?: string;
  account?: string;
  connectionId?: string;
}

export interface Grant {
  caller: Caller;
  namespace?: OwnedNamespace;
  accountId?: string;
  /** True for a request with a signed link, which shows what its creator can see. */
  isSigned?: true;
}

/** Checks OAuth access tokens. The authorization server provides it; null where it is disabled. */
export abstract class TokenSource {
  /**
   * @returns a promise for a token that is not cached
   *
   * @throws UnauthenticatedError, with a challenge where the request is for an MCP endpoint
   */
  abstract verify(token: string, request: IncomingMessage): Caller | Promise<Caller>;
  /** Parameters of `WWW-Authenticate` of a 401 without a token; undefined if the request is not for an MCP endpoint. */
  abstract challenge(request: IncomingMessage): string | undefined;
  abstract validAmong(ids: string[]): Promise<Set<string>>;
}

export abstract class SessionSource {
  /** @returns null when nobody is signed in */
  abstract current(client: ClientContext): Promise<SessionCaller | null>;
  abstract validAmong(ids: string[]): Promise<Set<string>>;
}

export interface FoundGrant extends GrantRef {
  namespaceId: string;
  ownerId: string;
}

export abstract class GrantSource {
  /** @returns null without a grant or without the target. At most 5 s old. */
  abstract find(accountId: string, target: TargetName): Promise<FoundGrant | null>;
  /** Returns grants in the order of the questions. */
  abstract findAll(questions: { accountId: string; target: TargetName }[]): Promise<(FoundGrant | null)[]>;
}
