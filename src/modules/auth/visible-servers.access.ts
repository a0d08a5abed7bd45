import { ANONYMOUS, type Caller } from './access.types.js';
import { namespacesOf } from './may.js';

/**
 * The SQL condition that a caller may find a server: it is public, the caller's account owns its namespace, or the owner
 * granted it. Lists and searches use it; everything else asks `ServerAccessService.may`.
 *
 * @param server alias of the table `servers`
 * @param add stores a value of the statement and returns its placeholder
 */
export function visibleTo(server: string, caller: Caller, add: (value: unknown) => string): string {
  const isPublic = `${server}.visibility = 'public'`;
  if (caller === ANONYMOUS) return isPublic;
  const names = namespacesOf(caller);
  const inScope = names === null ? '' : ` AND home.name = ANY(${add(names)}::text[])`;
  return `(${isPublic} OR ${allowed(server, `${add(caller.accountId)}::uuid`, inScope)})`;
}

/** The same for an account, whatever its keys may do. @param account SQL of its id */
export function visibleToAccount(server: string, account: string): string {
  return `(${server}.visibility = 'public' OR ${allowed(server, account, '')})`;
}

function allowed(server: string, account: string, inScope: string): string {
  return `EXISTS (SELECT FROM namespaces home WHERE home.id = ${server}.namespace_id${inScope}
    AND (home.account_id = ${account}
      OR EXISTS (SELECT FROM grants held WHERE held.server_id = ${server}.id AND held.subject_id = ${account})))`;
}
