/**
 * The one question of access: may this caller do this with that target? Every interface asks it by `AccessService.isAllowed`; nothing else
 * compares an account with an owner.
 *
 * Two conditions must hold. The account owns the target, has a role in the organization that does, or has a grant, or the target is public.
 * One scope of the key covers the action in the target's namespace: each level includes `read`, and `manage` includes all. A key without
 * scopes has all rights of its account.
 *
 * Keys, passwords, sessions and client authorizations belong to the account alone; limits and quotas apply to the owner of a namespace.
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

/** `no`: respond as for a missing target. `scope`: the account may, but this key does not. */
export type Decision = 'yes' | 'scope' | 'no';

/** Allowed actions by role. A guest has only its grants. */
const ALLOWED: Record<Role, ReadonlySet<Action>> = {
  owner: new Set<Action>(['discover', ...keyLevels, 'administer', 'own']),
  editor: new Set<Action>(['discover', ...keyLevels, 'administer']),
  member: new Set<Action>(['discover', 'call']),
  guest: new Set(),
};

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

/**
 * Returns true if the account may do this with what `ownerId` owns, itself or by its role, whatever the scopes of the
 * key.
 */
export function accountOwns({ accountId, memberships }: Caller, action: Action, ownerId: string): boolean {
  const role = memberships.get(ownerId);
  return role === undefined ? ownerId === accountId : ALLOWED[role].has(action);
}

export function accountsWith(caller: Caller, action: Action): string[] {
  const { accountId, memberships } = caller;
  const ids = memberships.has(accountId) ? [...memberships.keys()] : [accountId, ...memberships.keys()];
  return ids.filter((id) => accountOwns(caller, action, id));
}

/** A {@link KeyScope}, or the part of it that a layer without levels knows. */
type Rights = Pick<KeyScope, 'namespace'> & { level: string };

/** @param namespace a name; null for the whole account, which only a scope for all namespaces covers */
export function covers(scopes: readonly Rights[], action: Action, namespace: string | null): boolean {
  for (const scope of scopes) {
    if ((scope.namespace === null || scope.namespace === namespace) && includes(scope.level, action)) return true;
  }
  return false;
}

export function coversSomewhere(scopes: readonly KeyScope[], action: Action): boolean {
  return scopes.some(({ level }) => includes(level, action));
}

function includes(level: string, action: Action): boolean {
  return level === action || level === 'manage' || action === 'read' || action === 'discover';
}

/** Returns the namespaces of a key; null stands for all namespaces. */
export function namespacesOf({ scopes }: Caller): string[] | null {
  const names = scopes?.flatMap(({ namespace }) => namespace ?? []) ?? [];
  return scopes === null || names.length < scopes.length ? null : names;
}

/** Parses stored scopes; null: all rights of the account. Ignores scopes of later versions. */
export function readScopes(scopes: readonly string[] | null): KeyScope[] | null {
  return scopes?.flatMap((text) => parseScope(text) ?? []) ?? null;
}

/** Parses `call` or `call:acme`, the inverse of {@link formatScope}; returns null for any other string. */
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
 * @throws InvalidInputError naming the first invalid scope
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

/** Returns true if the outer scopes include the inner ones; null stands for all rights. */
export function isWithin(inner: readonly KeyScope[] | null, outer: readonly KeyScope[] | null): boolean {
  if (outer === null) return true;
  return inner !== null && inner.every(({ level, namespace }) => covers(outer, level, namespace));
}
