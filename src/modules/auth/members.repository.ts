import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { setActor, transactionOf, type Actor } from '../../platform/database/actor.js';
import { isImitation, storeSkeletons } from './names/account-names.repository.js';
import type { MemberInvitationRow, MemberRow, MembershipRow } from './member.dto.js';
import { toSkeletons } from './names/name-skeletons.js';
import { roles, type Joining, type Role } from './access.types.js';
import { REFUSALS, type MemberRefusal } from './members.errors.js';
import {
  ACCOUNTS_MAX,
  BY_OWNER,
  INVITATIONS_MAX,
  MEMBERS_MAX,
  OPEN_INVITATIONS,
  ORGANIZATIONS_MAX,
  revocableBy,
} from './memberships.access.js';

export interface RemovedMember {
  keys: { id: string; name: string }[];
}

const SELECT = `SELECT m.account_id AS "accountId", a.name AS "accountName", m.role, m.created_by AS "createdBy",
    m.created_at AS "createdAt" FROM memberships m JOIN accounts a ON a.id = m.account_id WHERE m.organization_id = $1`;

const INVITED = `FROM invitations i LEFT JOIN accounts o ON o.id = i.account_id AND i.role IS NOT NULL
    LEFT JOIN accounts a ON a.id = CASE WHEN i.role IS NULL THEN i.account_id ELSE i.invited_id END`;
const INVITATION = `SELECT i.id, o.id AS "organizationId", o.name AS "organizationName", a.id AS "accountId", a.name AS "accountName",
    i.role, i.created_by AS "createdBy", i.made_by_key AS "madeByKey", i.expires_at AS "expiresAt" ${INVITED}`;
const IS_WAITING = `i.used_at IS NULL AND i.expires_at > now() AND (i.role IS NULL OR o.disabled_at IS NULL AND ${BY_OWNER})`;
const OF_ACCOUNT = `$1 IN (i.account_id, i.invited_id) AND ($2 OR i.role IS NOT NULL) AND ${IS_WAITING}`;

/** Members of organizations. Every change locks the organization first, then the account. */
@Injectable()
export class MembersRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  async find(nameOrId: string): Promise<{ id: string; name: string } | null> {
    const [row] = await this.database.query<{ id: string; name: string }[]>(
      `SELECT id, name FROM accounts WHERE kind = 'organization' AND (name = $1 OR id::text = $1)
        ORDER BY name = $1 DESC LIMIT 1`,
      [nameOrId],
    );
    return row ?? null;
  }

  async count(organizationId: string): Promise<number> {
    const [row] = await this.database.query<[{ count: number }]>(
      'SELECT count(*)::int AS count FROM memberships WHERE organization_id = $1',
      [organizationId],
    );
    return row.count;
  }

  list(organizationId: string, { offset, limit }: { offset: number; limit: number }): Promise<MemberRow[]> {
    return this.database.query(`${SELECT} ORDER BY a.name, a.id LIMIT $2 OFFSET $3`, [organizationId, limit, offset]);
  }

  /** Lists the account's organizations that are not disabled. */
  organizationsOf(accountId: string): Promise<MembershipRow[]> {
    return this.database.query(
      `SELECT o.id AS "organizationId", o.name AS "organizationName", m.role, m.created_at AS "createdAt"
         FROM memberships m JOIN accounts o ON o.id = m.organization_id
        WHERE m.account_id = $1 AND o.disabled_at IS NULL ORDER BY o.name`,
      [accountId],
    );
  }

  async rolesFrom(source: string, accountId: string): Promise<Map<string, Role>> {
    const rows = await this.database.query<{ id: string; role: Role }[]>(
      'SELECT organization_id AS id, role FROM memberships WHERE account_id = $1 AND source = $2',
      [accountId, source],
    );
    return new Map(rows.map(({ id, role }) => [id, role]));
  }

  /** @param passwords counts links to choose a password as well */
  async countInvitations(accountId: string, passwords: boolean): Promise<number> {
    const [row] = await this.database.query<[{ count: number }]>(
      `SELECT count(*)::int AS count ${INVITED} WHERE ${OF_ACCOUNT}`,
      [accountId, passwords],
    );
    return row.count;
  }

  invitations(
    accountId: string,
    passwords: boolean,
    { offset, limit }: { offset: number; limit: number },
  ): Promise<MemberInvitationRow[]> {
    return this.database.query(
      `${INVITATION} WHERE ${OF_ACCOUNT} ORDER BY i.expires_at DESC, i.id LIMIT $3 OFFSET $4`,
      [accountId, passwords, limit, offset],
    );
  }

  /** @returns null without a pending invitation with this id */
  async findInvitation(accountId: string, id: string): Promise<{ hash: Buffer; organizationId: string } | null> {
    const [row] = await this.database.query<{ hash: Buffer; organizationId: string }[]>(
      `SELECT i.hash, o.id AS "organizationId" ${INVITED} WHERE i.id = $2 AND i.invited_id = $1 AND ${IS_WAITING}`,
      [accountId, id],
    );
    return row ?? null;
  }

  /** @returns false without an unused invitation */
  async deleteInvitation(actor: Actor, accountId: string, id: string): Promise<boolean> {
    const sql =
      'DELETE FROM invitations WHERE id = $2 AND used_at IS NULL AND $1 IN (account_id, invited_id) RETURNING id';
    const [deleted] = await transactionOf(this.database, actor, (tx) => tx.query<[unknown[]]>(sql, [accountId, id]));
    return deleted.length > 0;
  }

  /**
   * Sets a role. The first member revokes the organization's sessions and client authorizations: from now on members act as themselves.
   *
   * @param actor of a joining account: with the key that created the invitation
   * @param invites creates an invitation for an account that is not a member, replacing its older one
   * @param within the surrounding transaction
   * @param source changes only a membership that this source set; null: any, which counts as set by a person afterwards
   */
  set(
    actor: Actor,
    {
      organizationId,
      accountId,
      role,
      createdBy,
    }: Record<'organizationId' | 'accountId' | 'createdBy', string> & { role: Role },
    invites: boolean,
    within = this.database.manager,
    source: string | null = null,
  ): Promise<{ member: MemberRow; isFirst: boolean } | { invitation: MemberInvitationRow } | MemberRefusal> {
    return transactionOf(within, actor, async (tx) => {
      const members = await lock(tx, organizationId, accountId);
      if (typeof members === 'string') return members;
      const { total, otherOwners, before } = members;
      if (source !== null && before !== null && members.source !== source) return 'a member';
      if (before === null) {
        const [account] = await tx.query<{ kind: string; organizations: number }[]>(
          `SELECT kind, (SELECT count(*)::int FROM memberships WHERE account_id = $1) AS organizations
             FROM accounts WHERE id = $1 FOR NO KEY UPDATE`,
          [accountId],
        );
        if (account?.kind !== 'user') return 'no account';
        if (total >= MEMBERS_MAX) return 'full';
        if (account.organizations >= ORGANIZATIONS_MAX) return 'too many';
      }
      if (role !== 'owner' && otherOwners === 0) return 'last owner';
      await tx.query('DELETE FROM invitations WHERE account_id = $1 AND invited_id = $2', [organizationId, accountId]);
      if (before === null && invites) {
        const [{ open }] = await tx.query<[{ open: number }]>(OPEN_INVITATIONS, [organizationId]);
        if (open >= INVITATIONS_MAX) return 'invitations';
        const [{ id }] = await tx.query<[{ id: string }]>(
          `INSERT INTO invitations (hash, account_id, invited_id, role, created_by, expires_at)
           VALUES ($1, $2, $3, $4, $5, now() + interval '72 hours') RETURNING id`,
          [randomBytes(32), organizationId, accountId, role, createdBy],
        );
        const [invitation] = await tx.query<[MemberInvitationRow]>(`${INVITATION} WHERE i.id = $1`, [id]);
        return { invitation };
      }
      await tx.query(
        `INSERT INTO memberships AS m (organization_id, account_id, role, created_by, source) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (organization_id, account_id) DO UPDATE SET role = $3, created_by = $4, source = $5
           WHERE m.role <> $3 OR m.source IS DISTINCT FROM $5`,
        [organizationId, accountId, role, createdBy, source],
      );
      if (total === 0) {
        await tx.query('UPDATE accounts SET logins_epoch = logins_epoch + 1 WHERE id = $1', [organizationId]);
        for (const table of ['sessions', 'invitations', 'people', 'as_grants']) {
          await tx.query(`DELETE FROM ${table} WHERE account_id = $1`, [organizationId]);
        }
      }
      const isLess = before !== null && roles.indexOf(role) > roles.indexOf(before);
      if (isLess) await endRights(tx, organizationId, accountId);
      const [member] = await tx.query<[MemberRow]>(`${SELECT} AND m.account_id = $2`, [organizationId, accountId]);
      return { member, isFirst: total === 0 };
    });
  }

  /**
   * @returns null for an expired, used or revoked invitation
   * @throws NotFoundError, ConflictError; QueryFailedError (23505) for a new account whose name is taken
   */
  async join(
    { hash, organizationId }: { hash: Buffer; organizationId: string },
    joiner: Joining,
  ): Promise<{ accountId: string; isFirst: boolean } | null> {
    const skeletons = 'name' in joiner ? toSkeletons(joiner.name) : null;
    if (skeletons) await storeSkeletons(this.database);
    return this.database.transaction(async (tx) => {
      // A new account is not yet a member, just as an organization is never a member of itself.
      let accountId = 'accountId' in joiner ? joiner.accountId : organizationId;
      if ('accountId' in joiner) await setActor(tx, joiner);
      const members = await lock(tx, organizationId, accountId);
      if (typeof members === 'string') return null;
      if (members.before !== null) throw REFUSALS['a member']();
      const [[used]] = await tx.query<[{ role: Role; createdBy: string; keyId: string | null }[]]>(
        `UPDATE invitations i SET used_at = now()
          WHERE hash = $1 AND account_id = $2 AND role IS NOT NULL AND used_at IS NULL AND expires_at > now() AND ${BY_OWNER}
         RETURNING role, created_by AS "createdBy", made_by_key AS "keyId"`,
        [hash, organizationId],
      );
      if (!used) return null;
      if (!('accountId' in joiner)) {
        const [{ made }] = await tx.query<[{ made: number }]>(
          'SELECT count(*)::int AS made FROM accounts WHERE made_for = $1',
          [organizationId],
        );
        if (made >= ACCOUNTS_MAX) throw REFUSALS.accounts();
        if (await isImitation(tx, joiner.name, skeletons)) throw REFUSALS.imitation();
        const [newAccount] = await tx.query<[{ id: string }]>(
          `WITH made AS (INSERT INTO accounts (name, name_skeletons, kind, made_for) VALUES ($1, $4, 'user', $3) RETURNING id),
                person AS (INSERT INTO people (account_id, password_hash, password_at) SELECT id, $2, now() FROM made)
           SELECT id FROM made`,
          [joiner.name, joiner.passwordHash, organizationId, skeletons],
        );
        accountId = newAccount.id;
      }
      const actor = { accountId, keyId: used.keyId };
      const stored = await this.set(actor, { organizationId, accountId, ...used }, false, tx);
      if (typeof stored === 'string') throw REFUSALS[stored]();
      return { accountId, isFirst: 'member' in stored && stored.isFirst };
    });
  }

  /** Searches the organizations that the account owns, and all of them for the operator. */
  addedBy(
    accountId: string,
    keyIds: string[],
    isOperator: boolean,
  ): Promise<Record<'organizationId' | 'accountId', string>[]> {
    return this.database.query(
      `SELECT DISTINCT c.account_id AS "organizationId", c.target_id AS "accountId" FROM changes c
        WHERE c.credential_id = ANY($2::uuid[]) AND c.action = 'member.created' AND ${revocableBy('c.account_id', '$3')}`,
      [accountId, keyIds, isOperator],
    );
  }

  /**
   * @param revokeKeys deletes the keys of the organization that the member created
   * @param source only a membership that this source set
   */
  remove(
    actor: Actor,
    organizationId: string,
    accountId: string,
    revokeKeys: boolean,
    source: string | null = null,
  ): Promise<RemovedMember | MemberRefusal> {
    return transactionOf(this.database, actor, async (tx) => {
      const members = await lock(tx, organizationId, accountId);
      if (typeof members === 'string') return members;
      if (source !== null && members.source !== source) return 'no member';
      if (members.before === null) {
        const [ended] = await tx.query<[unknown[]]>(
          'DELETE FROM invitations WHERE account_id = $1 AND invited_id = $2 RETURNING id',
          [organizationId, accountId],
        );
        return ended.length > 0 ? { keys: [] } : 'no member';
      }
      if (members.before === 'owner' && members.otherOwners === 0) return 'last owner';
      await tx.query('DELETE FROM memberships WHERE organization_id = $1 AND account_id = $2', [
        organizationId,
        accountId,
      ]);
      // Skips rows that an owner is changing: waiting could be a deadlock. Editors wait for the membership.
      await tx.query(
        `DELETE FROM grants WHERE id IN (SELECT g.id FROM grants g LEFT JOIN servers s ON s.id = g.server_id
           LEFT JOIN connections c ON c.id = g.connection_id
           JOIN namespaces n ON n.id = coalesce(g.namespace_id, s.namespace_id, c.namespace_id)
          WHERE n.account_id = $1 AND g.subject_id = $2 FOR UPDATE OF g SKIP LOCKED)`,
        [organizationId, accountId],
      );
      await endRights(tx, organizationId, accountId);
      const keys = await tx.query<RemovedMember['keys']>(
        `SELECT id, name FROM api_keys WHERE account_id = $1
            AND (maker_id = $2 OR made_by && ARRAY(SELECT own.id FROM api_keys own WHERE own.account_id = $2))
          ORDER BY created_at DESC, id`,
        [organizationId, accountId],
      );
      if (revokeKeys) {
        await tx.query(
          `DELETE FROM api_keys WHERE id IN (SELECT id FROM api_keys WHERE id = ANY($1::uuid[]) ORDER BY id FOR UPDATE)`,
          [keys.map(({ id }) => id)],
        );
      }
      return { keys };
    });
  }
}

interface CurrentMembers {
  total: number;
  otherOwners: number;
  before: Role | null;
  source: string | null;
}

async function lock(
  tx: EntityManager,
  organizationId: string,
  accountId: string,
): Promise<CurrentMembers | 'no organization'> {
  const [organization] = await tx.query<{ kind: string }[]>(
    'SELECT kind FROM accounts WHERE id = $1 FOR NO KEY UPDATE',
    [organizationId],
  );
  if (organization?.kind !== 'organization') return 'no organization';
  // A separate statement sees rows that were committed before the lock.
  const [row] = await tx.query<[CurrentMembers]>(
    `SELECT count(*)::int AS total, count(*) FILTER (WHERE role = 'owner' AND account_id <> $2)::int AS "otherOwners",
            max(role) FILTER (WHERE account_id = $2) AS before, max(source) FILTER (WHERE account_id = $2) AS source
       FROM memberships WHERE organization_id = $1`,
    [organizationId, accountId],
  );
  return row;
}

/** Revokes the client authorizations that a membership opened for an account, so that a later membership restores none. */
async function endRights(tx: EntityManager, organizationId: string, accountId: string): Promise<void> {
  await tx.query(
    `DELETE FROM as_grants g WHERE g.account_id = $2 AND (
       g.right_id IN (SELECT id FROM grants WHERE subject_id = $1)
       OR g.right_id IS NULL AND EXISTS (
         SELECT FROM namespaces n LEFT JOIN servers s ON s.id = g.server_id LEFT JOIN connections c ON c.id = g.connection_id
          WHERE n.account_id = $1 AND n.id = coalesce(g.namespace_id, c.namespace_id, s.namespace_id)
            AND s.visibility IS DISTINCT FROM 'public'))`,
    [organizationId, accountId],
  );
}
