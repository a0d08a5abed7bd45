import { ANONYMOUS, type Caller } from './access.types.js';
import { namespacesOf } from './may.js';
import { accountsOf, IS_CURRENT } from './memberships.access.js';

export { covers, namespacesOf } from './may.js';

/**
 * Returns the SQL condition that a caller can find a server: it is not private, the caller's account or an organization where it is more than a
 * guest owns its namespace or has a grant of the server or the namespace, or everybody has. Lists of what servers contain use it; lists of
 * servers use {@link listedFor}, everything else `ServerAccessService.isAllowed`.
 *
 * @param server alias of the table `servers`
 * @param add stores a value of the statement and returns its placeholder
 */
export function visibleTo(server: string, caller: Caller, add: (value: unknown) => string): string {
  return openTo(`${server}.visibility <> 'private'`, server, caller, add);
}

/** Works like {@link visibleTo} for lists: servers of other owners appear after their first current release. */
export function listedFor(server: string, caller: Caller, add: (value: unknown) => string): string {
  const isPublished = `${server}.visibility <> 'private' AND ${server}.current_type IS NOT NULL`;
  return openTo(isPublished, server, caller, add);
}

function openTo(everybody: string, server: string, caller: Caller, add: (value: unknown) => string): string {
  if (caller === ANONYMOUS) return `(${everybody})`;
  const names = namespacesOf(caller);
  const inScope =
    names === null
      ? ''
      : ` AND ${server}.namespace_id IN (SELECT id FROM namespaces WHERE name = ANY(${add(names)}::text[]))`;
  return `((${everybody}) OR (${allowed(server, `${add(caller.accountId)}::uuid`)}${inScope}))`;
}

/** Ignores the scopes of keys. @param account SQL of the account's id */
export function visibleToAccount(server: string, account: string): string {
  return `(${server}.visibility <> 'private' OR ${allowed(server, account)})`;
}

/** @param account SQL of its id */
export function callableByAccount(server: string, account: string): string {
  return `(${server}.visibility = 'public' OR ${allowed(server, account)})`;
}

/** Returns separate subqueries: Postgres evaluates each of them once for a list, not for each server. */
function allowed(server: string, account: string): string {
  const granted = (column: string) => `SELECT g.${column} FROM grants g WHERE g.${column} IS NOT NULL AND ${IS_CURRENT}
      AND (g.subject_id IS NULL OR g.subject_id IN ${accountsOf(account)})`;
  return `(${server}.namespace_id IN (SELECT id FROM namespaces WHERE account_id IN ${accountsOf(account)}
      UNION ALL ${granted('namespace_id')})
    OR ${server}.id IN (${granted('server_id')}))`;
}
