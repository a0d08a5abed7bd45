import type { Caller } from '../../auth/access.types.js';
import { listedFor } from '../../auth/visible-servers.access.js';
import { parseQualifiedName, type ReleaseType } from '../server.types.js';
import type { ServerQueryDto } from './server-search.dto.js';

/** Values of a statement, in the order of their `$1`, `$2`, … */
export class SqlValues {
  readonly list: unknown[] = [];

  /** @returns the placeholder */
  add(value: unknown): string {
    return `$${this.list.push(value)}`;
  }
}

export interface Lookups {
  find: (name: string) => Promise<{ id: string; ownerId: string } | null>;
  owns: (accountId: string) => boolean;
  /** The release types that the filter `remote` matches. */
  remoteTypes: readonly ReleaseType[];
}

export interface ServerScope {
  query: ServerQueryDto;
  /** Id of the namespace, from the parameter `namespace` or `qualifiedName`; null without both. */
  namespaceId: string | null;
  /** The part of `qualifiedName` after the slash, in lower case; null without one. */
  name: string | null;
  showsUnlisted: boolean;
  /** The caller; private servers that it cannot find are left out. */
  caller: Caller;
  remoteTypes: readonly ReleaseType[];
}

/**
 * Returns the scope of a search. Owners who filter by their own namespace or account also get unlisted servers.
 *
 * @returns null when nothing can match
 */
export async function scopeOf(
  query: ServerQueryDto,
  caller: Caller,
  { find, owns, remoteTypes }: Lookups,
): Promise<ServerScope | null> {
  const { namespace, qualifiedName, ownerId } = query;
  const parsedName =
    qualifiedName === undefined ? null : parseQualifiedName(qualifiedName.replace(/^@/, '').replace(/\/$/, ''));
  if (query.smitheryManaged === true) return null;
  if (parsedName && namespace !== undefined && parsedName.namespace !== namespace) return null;
  const namespaceName = parsedName?.namespace ?? namespace;
  const owner = namespaceName === undefined ? null : await find(namespaceName);
  if (namespaceName !== undefined && !owner) return null;
  // With both filters, the caller must own both.
  const owners = [ownerId, owner?.ownerId].filter((id) => id !== undefined);
  const showsUnlisted = owners.length > 0 && owners.every(owns);
  return {
    query,
    namespaceId: owner?.id ?? null,
    name: parsedName?.name.toLowerCase() ?? null,
    showsUnlisted,
    caller,
    remoteTypes,
  };
}

/** Returns the conditions on `servers s`, joined with AND. */
export function conditionsOf(
  { query, namespaceId, name, showsUnlisted, caller, remoteTypes }: ServerScope,
  values: SqlValues,
): string {
  const { ids, ownerId, repoOwner, repoName, remote, isDeployed, verified } = query;
  const conditions: string[] = [];
  if (!showsUnlisted) conditions.push('NOT s.unlisted');
  conditions.push(listedFor('s', caller, (value) => values.add(value)));
  if (namespaceId !== null) conditions.push(`s.namespace_id = ${values.add(namespaceId)}`);
  if (name !== null) conditions.push(`lower(s.name) = ${values.add(name)}`);
  if (ids !== undefined) conditions.push(`s.id = ANY(${values.add(ids)}::uuid[])`);
  if (ownerId !== undefined) {
    conditions.push(`s.namespace_id IN (SELECT id FROM namespaces WHERE account_id = ${values.add(ownerId)})`);
  }
  if (repoOwner !== undefined) conditions.push(`s.repo_owner = ${values.add(repoOwner.toLowerCase())}`);
  if (repoName !== undefined) conditions.push(`s.repo_name = ${values.add(repoName.toLowerCase())}`);
  if (remote !== undefined) {
    conditions.push(`coalesce(s.current_type = ANY(${values.add(remoteTypes)}), false) = ${values.add(remote)}`);
  }
  if (isDeployed !== undefined) conditions.push(`(s.current_type IS NOT NULL) = ${values.add(isDeployed)}`);
  if (verified !== undefined) conditions.push(verified ? 's.verified' : 'NOT s.verified');
  return conditions.join(' AND ');
}
