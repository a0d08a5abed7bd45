/**
 * The one question of access: may this caller do this with that target? Guard, fast path, run endpoint, MCP endpoints,
 * WebSockets and services ask it by `AccessService.isAllowed`; nothing else compares an account with an owner.
 *
 * Two things must hold. The account: it owns the target, it has a role in the organization that does, the owner granted it, or
 * the target is public; of a restricted one everybody may know. The key: one of its scopes covers the action in the namespace
 * of the target. `read`, `call` and `publish` are levels of their own; each includes `read`, and `manage` includes all. A key
 * without scopes may do all that its account may.
 *
 * "May" counts the caller's own account and its organizations by role ({@link decide}, {@link accountsWith}): every route of a
 * namespace, server, connection and skill; lists of namespaces and received grants; SQL of lists and searches of servers
 * (`visible-servers.access.ts`); grants to the account or its organizations (`memberships.access.ts`); consents and OAuth tokens;
 * setup links; unlisted servers in searches; the target of a transfer; prefixes of subdomains; a claim of a namespace.
 *
 * "Is mine" counts the account alone: its keys, password, sessions, logins and consents, which are a person's; limits, quotas and
 * fairness, which count whose namespace it is; leaving an organization; what the connections of a namespace reach, which is what
 * the account of the namespace may.
 */
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import { NAMESPACE_NAME } from '../../platform/http/resource-names.js';
import {
  keyLevels,
  type Action,
  type Caller,
  type KeyLevel,
  type KeyScope,
  type Role,
  type GuardedTarget,
} from './access.types.js';

/** `no`: the target must look like a missing one. `scope`: the account may, this key may not. */
export type Decision = 'yes' | 'scope' | 'no';

/** The actions of each role on what the organization owns; a guest has only what was granted. */
const ALLOWED: Record<Role, ReadonlySet<Action>> = {
  owner: new Set<Action>(['discover', ...keyLevels, 'administer', 'own']),
  editor: new Set<Action>(['discover', ...keyLevels, 'administer']),
  member: new Set<Action>(['discover', 'call']),
  guest: new Set(),
};

/** Decides without a query. */
export function decide(caller: Caller, action: Action, target: GuardedTarget): Decision {
  const isOpen = action === 'discover' || action === 'call';
  const { ownerId, visibility, granted } = target;
  const isPublic = visibility === 'public' || (visibility === 'restricted' && action === 'discover');
  const accountMay =
    accountOwns(caller, action, ownerId) ||
    (isPublic && isOpen) ||
    (granted === 'manage' && action !== 'administer' && action !== 'own') ||
    (granted === 'call' && isOpen);
  if (!accountMay) return 'no';
  if (caller.scopes === null) return 'yes';
  if (action === 'discover' && isPublic) return 'yes';
  return covers(caller.scopes, action, target.namespace) ? 'yes' : 'scope';
}

/** True if the account may do this with what `ownerId` owns, by itself or by its role, whatever the key may. */
export function accountOwns({ accountId, memberships }: Caller, action: Action, ownerId: string): boolean {
  const role = memberships.get(ownerId);
  return role === undefined ? ownerId === accountId : ALLOWED[role].has(action);
}

/** The accounts for which the caller may do this: its own and those of organizations, by its roles. */
export function accountsWith(caller: Caller, action: Action): string[] {
  const { accountId, memberships } = caller;
  const ids = memberships.has(accountId) ? [...memberships.keys()] : [accountId, ...memberships.keys()];
  return ids.filter((id) => accountOwns(caller, action, id));
}

/** A {@link KeyScope}, or what a layer that does not know levels has of it. */
type Rights = Pick<KeyScope, 'namespace'> & { level: string };

/**
 * True if one of the scopes includes the action.
 *
 * @param namespace a name; null: for something of the whole account, which only a scope for all namespaces covers
 */
export function covers(scopes: readonly Rights[], action: Action, namespace: string | null): boolean {
  for (const scope of scopes) {
    if ((scope.namespace === null || scope.namespace === namespace) && includes(scope.level, action)) return true;
  }
  return false;
}

/** True if one of the scopes includes the action in some namespace. */
export function coversSomewhere(scopes: readonly KeyScope[], action: Action): boolean {
  return scopes.some(({ level }) => includes(level, action));
}

/** True if a key of this level may do this. */
function includes(level: string, action: Action): boolean {
  return level === action || level === 'manage' || action === 'read' || action === 'discover';
}

/** The namespaces that the key of a caller is limited to, whatever it may do there; null: all. */
export function namespacesOf({ scopes }: Caller): string[] | null {
  const names = scopes?.flatMap(({ namespace }) => namespace ?? []) ?? [];
  return scopes === null || names.length < scopes.length ? null : names;
}

/** Scopes as rows store them; null: all rights of the account. A scope of a later version gives no right. */
export function readScopes(scopes: readonly string[] | null): KeyScope[] | null {
  return scopes?.flatMap((text) => parseScope(text) ?? []) ?? null;
}

/** `call` or `call:acme`. Inverse of {@link formatScope}; null for another text. */
export function parseScope(text: string): KeyScope | null {
  const [level, namespace, ...more] = text.split(':');
  if (!keyLevels.includes(level as KeyLevel) || more.length > 0) return null;
  if (namespace !== undefined && !NAMESPACE_NAME.test(namespace)) return null;
  return { level: level as KeyLevel, namespace: namespace ?? null };
}

export function formatScope({ level, namespace }: KeyScope): string {
  return namespace === null ? level : `${level}:${namespace}`;
}

/**
 * The scopes of a new key.
 *
 * @throws InvalidInputError naming the first one that is none
 */
export function parseScopes(scopes: readonly string[]): KeyScope[] {
  return scopes.map((text) => {
    const scope = parseScope(text);
    if (scope) return scope;
    throw new InvalidInputError(
      `"${text.slice(0, 80)}" is not a scope: the scopes are ${keyLevels.join(', ')}, each for all namespaces or for one, such as "call:acme"`,
    ).atField('scope');
  });
}

/** What a scope allows, as a message. */
export function scopeInWords({ level, namespace }: KeyScope): string {
  const where = namespace === null ? 'in all of its namespaces' : `in the namespace ${namespace}`;
  if (level === 'manage') {
    return namespace === null ? 'Manage everything of the account.' : `Manage what the account has ${where}.`;
  }
  const more = {
    read: '',
    call: ', and call its servers and connections',
    publish: ', and publish releases and skills',
  };
  return `Read what the account has ${where}${more[level]}.`;
}

/** True if every right of `inner` is one of `outer`; null stands for all rights. */
export function isWithin(inner: readonly KeyScope[] | null, outer: readonly KeyScope[] | null): boolean {
  if (outer === null) return true;
  return inner !== null && inner.every(({ level, namespace }) => covers(outer, level, namespace));
}
