import type { IncomingMessage } from 'node:http';
import type { AccountLimits } from '../../config/account-limits.js';
import type { DomainError } from '../../platform/errors/domain-error.js';
import type { ClientContext } from '../../platform/pages/client-context.js';
import type { FormParts } from '../../platform/pages/page-forms.service.js';
import type { Target, TargetName, Visibility } from '../targets/target.types.js';

/** Levels of keys, in the form of the API. */
export const keyLevels = ['read', 'call', 'publish', 'manage'] as const;
export type KeyLevel = (typeof keyLevels)[number];

/**
 * Action on a target. `discover`: learning that it exists, and its public record. `administer`: what no grant opens, such as
 * the deletion of a server. `own`: what stays with the owners, such as grants, members and the deletion of namespaces.
 */
export type Action = 'discover' | KeyLevel | 'administer' | 'own';

/** Roles of the members of an organization, in the form of the API. */
export const roles = ['owner', 'editor', 'member', 'guest'] as const;
export type Role = (typeof roles)[number];

/** The roles of an account, by the id of the organization. */
export type Memberships = ReadonlyMap<string, Role>;

/** An account that joins an organization, or a person without one, who gets it. */
export type Joining = { accountId: string } | { name: string; passwordHash: string };

/** Of an account without organizations. */
export const NO_MEMBERSHIPS: Memberships = new Map();

/** A right of a key: in one namespace, by name, or in all. */
export interface KeyScope {
  level: KeyLevel;
  namespace: string | null;
}

/** What a decision needs of a target. */
export interface GuardedTarget extends Pick<Target, 'ownerId' | 'namespace'> {
  /** Of a server; absent or null for what only its owner and those with a grant may find. */
  visibility?: Visibility | null;
  /** What the owner granted to the caller's account. */
  granted?: GrantLevel | null;
}

export const grantLevels = ['call', 'manage'] as const;
export type GrantLevel = (typeof grantLevels)[number];

/** The account and the credential of a request. */
export interface Caller {
  accountId: string;
  /** Id of the API key; of an OAuth token the id of what its person allowed, which outlives the token; of a session its id. */
  keyId: string;
  /** Of a session that began with a key, and of an OAuth token whose login such a session made: the id of that key. */
  rootKeyId?: string;
  /** True for the session of a browser, which opens pages only. */
  isSession?: true;
  /** For an OAuth token: the path of the only MCP endpoint that it opens (`pathOfEndpoint`). */
  endpoint?: string;
  isOperator: boolean;
  /** Rights of the key; null: all of its account. */
  scopes: readonly KeyScope[] | null;
  /** Its roles in organizations. An organization with members has itself as `editor`: only its owners own. */
  memberships: Memberships;
  /** Limits of the account; absent for the caller without a key. */
  limits?: AccountLimits;
  /** The grant that opened the route to it; absent where the account owns the target, or the target is public. */
  grant?: GrantRef;
  /** `accounts.logins_epoch`, which counts what ended the logins of the account; absent without a credential of it. */
  loginsEpoch?: number;
}

/** A row of `grants`, or {@link MEMBER_GRANT}. */
export interface GrantRef {
  /** Null for a right by membership. */
  id: string | null;
  level: GrantLevel;
  /** The only tools that it opens; null: all, and all else. */
  tools: readonly string[] | null;
}

/** The right of an organization's member to its connections, as much as a grant of calls. It ends when memberships change. */
export const MEMBER_GRANT: GrantRef = { id: null, level: 'call', tools: null };

/** The caller of what is done for an account without a request of it, such as calls through its connections. */
export function callerFor(accountId: string): Caller {
  return { accountId, keyId: ANONYMOUS.keyId, isOperator: false, scopes: null, memberships: NO_MEMBERSHIPS };
}

/** The caller of what a person does on a page, as an account and with all its rights. */
export interface Person extends Caller {
  /** Counts what ended the logins of the account: what was made with a smaller one is over. */
  loginsEpoch: number;
}

/** The caller of a page (`@Page`): who is signed in at the browser. */
export interface SessionCaller extends Person {
  accountName: string;
  /** Names of organizations of the person, at most 5. */
  organizations: readonly string[];
  /** The zone of the times in its pages, of the IANA database; null for UTC. */
  timeZone: string | null;
  isSession: true;
}

/** The caller without a key on routes that need none: owns nothing. */
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

/** Any caller with a valid key. */
interface KeyTerms {
  /** Needs no key while `PUBLIC_READS=true`; the caller is then {@link ANONYMOUS}. A wrong key is rejected nevertheless. */
  anonymous?: true;
  /** A link signed for this very path opens the route without a key (`SignedUrls`). */
  signed?: true;
}

/** Only the operator. */
interface OperatorTerms {
  operator: true;
  /** Also accounts with a limit `organizations` above 0. */
  founders?: true;
}

/** The account of a route parameter (`me` is the caller's): itself, the owners of an organization, and the operator. */
interface AccountTerms {
  /** The route parameter with the account's id. */
  account: string;
  /** Only the operator. */
  operator?: true;
}

/** An account as in {@link AccountTerms}, but not by the keys of an organization with members. */
interface OwnAccountTerms {
  account: string;
  may: 'own';
  /** All members of the organization. */
  member?: true;
}

/** A namespace, or a server or connection in it, for its owner and others that may do the action. */
interface TargetTerms {
  /** The route parameter with the name of the namespace, which `qualifiedName` has before the slash. */
  owner: string;
  /** The error for a missing target. */
  missing?: () => DomainError;
  /** The error for a target of another account. Default: that of `missing`, so that the two look alike. */
  foreign?: () => DomainError;
}

/** A target for grantees too. */
interface GrantableTerms extends TargetTerms {
  /** The action; by default that of the scope ({@link actionOf}). */
  may?: 'discover';
  /** Grants of some tools count. The handler keeps to these tools. */
  byTool?: true;
  /** Rejected, as a call is, while the namespace is suspended. */
  serves?: true;
  /** Only grants of the namespace count, even for a target that does not exist yet. */
  inNamespace?: true;
}

/** A target for its owner alone. */
interface OwnTargetTerms extends TargetTerms {
  may: 'administer' | 'own';
}

type Terms = KeyTerms | OperatorTerms | AccountTerms | OwnAccountTerms | GrantableTerms | OwnTargetTerms;
type NamesOf<T> = T extends unknown ? keyof T : never;
type WithoutOthers<T> = T extends unknown ? T & { [Name in Exclude<NamesOf<Terms>, keyof T>]?: undefined } : never;

/** Who may use a route, beyond holding a valid key whose scopes cover the action: exactly one of the shapes. */
export type AccessTerms = WithoutOthers<Terms>;

/** The rule of a route. */
export type AccessRule = AccessTerms & {
  scope: Scope;
  /** A page: the session of the browser is the credential, and a form has a token ({@link SessionCaller}). */
  page?: true;
  /** The parts of a form with files, which are read after the session, the origin and the token are checked. */
  parts?: FormParts;
};

/** The values of the route parameters that a rule names. */
export interface RuleParameters {
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

/** Checks OAuth access tokens. The authorization server provides it; null where logins are off. */
export abstract class TokenSource {
  /**
   * The caller of a request with a bearer that is no API key; a promise for a token that is not cached.
   *
   * @throws UnauthenticatedError, with a challenge where the request is for an MCP endpoint
   */
  abstract verify(token: string, request: IncomingMessage): Caller | Promise<Caller>;
  /** Parameters of `WWW-Authenticate` of a 401 without a token; undefined where the request is for no MCP endpoint. */
  abstract challenge(request: IncomingMessage): string | undefined;
  /** Those of these ids ({@link Caller.keyId}) whose tokens are good. */
  abstract validAmong(ids: string[]): Promise<Set<string>>;
}

/** Finds the sessions of browsers. The people module provides it. */
export abstract class SessionSource {
  /** The caller at a browser; null when nobody is signed in there. */
  abstract current(client: ClientContext): Promise<SessionCaller | null>;
  /** The ids among these ({@link Caller.keyId}) of sessions that have not ended. */
  abstract validAmong(ids: string[]): Promise<Set<string>>;
}

/** A grant, and the namespace that holds its target. */
export interface FoundGrant extends GrantRef {
  namespaceId: string;
  ownerId: string;
}

/** Finds grants. The grants module provides it. */
export abstract class GrantSource {
  /** @returns null when nothing was granted, or the target does not exist. At most 5 s old. */
  abstract find(accountId: string, target: TargetName): Promise<FoundGrant | null>;
  /** What is granted now, in the order of what was asked. */
  abstract findAll(questions: { accountId: string; target: TargetName }[]): Promise<(FoundGrant | null)[]>;
}
