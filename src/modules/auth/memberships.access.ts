/** Memberships in SQL. Memberships in disabled organizations are ignored. */
import { growingLru } from '../../platform/limits/growing-lru.js';
import { NO_MEMBERSHIPS, type Memberships, type Role } from './access.types.js';

/** The column `roles` of account `a`, for {@link readMemberships}; null without any. */
export const ROLES = `(SELECT string_agg(held.id || ' ' || held.role, ',' ORDER BY held.id) FROM (
    SELECT m.organization_id AS id, m.role FROM memberships m JOIN accounts o ON o.id = m.organization_id
     WHERE m.account_id = a.id AND o.disabled_at IS NULL
     UNION ALL SELECT a.id, 'editor' WHERE EXISTS (SELECT FROM memberships m WHERE m.organization_id = a.id)) held) AS roles`;

export const ORGANIZATION_NAMES = `ARRAY(SELECT o.name FROM memberships m JOIN accounts o ON o.id = m.organization_id
     WHERE m.account_id = a.id AND o.disabled_at IS NULL ORDER BY o.name LIMIT 5) AS organizations`;

/** Maps of memberships by their stored string: callers with the same memberships share a map. */
const sharedMemberships = growingLru<object>();

export function readMemberships(roles: string | null): Memberships {
  if (roles === null) return NO_MEMBERSHIPS;
  let memberships = sharedMemberships.get(roles) as Memberships | undefined;
  if (!memberships) {
    memberships = new Map(roles.split(',').map((entry) => entry.split(' ') as [string, Role]));
    sharedMemberships.set(roles, memberships);
  }
  return memberships;
}

/**
 * SQL on a row of `invitations i` into an organization: its creator can still invite, as an owner or the operator. An organization without
 * members invites accounts by its own keys.
 */
export const BY_OWNER = `EXISTS (SELECT FROM accounts o LEFT JOIN memberships m ON m.organization_id = i.account_id AND m.account_id = o.id
    WHERE o.id = i.created_by AND o.disabled_at IS NULL AND (o.is_operator OR m.role = 'owner'
      OR i.invited_id IS NOT NULL AND o.id = i.account_id
        AND NOT EXISTS (SELECT FROM memberships own WHERE own.organization_id = o.id)))`;

/**
 * Returns the SQL condition that the account $1 can revoke rights in the account of this column, which is itself or an organization that it owns. Operators
 * can revoke in every account.
 */
export const revocableBy = (column: string, isOperator: string) =>
  `(${column} = $1 OR ${isOperator} OR EXISTS (SELECT FROM memberships o
     WHERE o.organization_id = ${column} AND o.account_id = $1 AND o.role = 'owner'))`;

export const INVITATIONS_MAX = 100;
export const ACCOUNTS_MAX = 5_000;

export const MEMBERS_MAX = 5_000;
export const ORGANIZATIONS_MAX = 100;

export const OPEN_INVITATIONS = `SELECT count(*)::int AS open FROM invitations
  WHERE account_id = $1 AND used_at IS NULL AND expires_at > now()`;

/** SQL on a row of `grants g`: expired grants are ignored. */
export const IS_CURRENT = '(g.expires_at IS NULL OR g.expires_at > now())';

export const grantsWithinNamespaces = `(SELECT coalesce(g.namespace_id, s.namespace_id, c.namespace_id) AS namespace_id FROM grants g
    LEFT JOIN servers s ON s.id = g.server_id LEFT JOIN connections c ON c.id = g.connection_id WHERE ${IS_CURRENT})`;

export const namespaceGrants = `(SELECT g.namespace_id, g.subject_id FROM grants g WHERE ${IS_CURRENT})`;

/**
 * Returns a sub-select of the current grants to an account, to organizations where it is more than a guest, and to everybody; `ownLevel` is the
 * account's level: a member can only call.
 *
 * @param account SQL of its id
 */
export function grantsTo(account: string): string {
  return `(SELECT g.*, CASE WHEN m.role = 'member' THEN 'call' ELSE g.level END AS "ownLevel" FROM grants g
     LEFT JOIN (memberships m JOIN accounts o ON o.id = m.organization_id AND o.disabled_at IS NULL)
       ON m.organization_id = g.subject_id AND m.account_id = ${account}
    WHERE (g.subject_id = ${account} OR m.role <> 'guest' OR g.subject_id IS NULL) AND ${IS_CURRENT})`;
}

/** Merges the tools of grants; null stands for all tools. */
export function toolsOfAll(grants: readonly { tools: readonly string[] | null }[]): string[] | null {
  if (grants.some(({ tools }) => tools === null)) return null;
  return [...new Set(grants.flatMap(({ tools }) => tools ?? []))];
}

/**
 * Selects the account itself, and organizations where it is more than a guest.
 *
 * @param account SQL of its id
 */
export function accountsOf(account: string): string {
  return `(SELECT ${account} UNION ALL SELECT m.organization_id FROM memberships m JOIN accounts o ON o.id = m.organization_id
     WHERE m.account_id = ${account} AND m.role <> 'guest' AND o.disabled_at IS NULL)`;
}
