import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { transactionOf, type Actor } from '../../platform/database/actor.js';
import type { AccountLimits } from '../../config/account-limits.js';
import { PreparedStatement } from '../../platform/database/prepared-statement.js';
import type { Role } from '../auth/access.types.js';
import { OVERRIDES } from '../auth/account-limits.access.js';
import { BY_OWNER, INVITATIONS_MAX, OPEN_INVITATIONS, ORGANIZATION_NAMES, ROLES } from '../auth/memberships.access.js';
import type { SessionCaller } from '../auth/access.types.js';
import type { Session } from './people.entity.js';

export interface NewSession extends Pick<Session, 'hash' | 'accountId' | 'keyId' | 'address' | 'agent'> {
  /** The hash as stored when the password was checked; null for a key. */
  passwordHash: string | null;
  /** Lifetime of a session that another service began; absent for a password and a key. */
  hours?: number;
}

/** `role` is null for a password; otherwise the user joins the account, an organization, with it. */
export interface Invited {
  accountId: string;
  accountName: string;
  role: Role | null;
}

export type ShownSession = Pick<Session, 'id' | 'agent' | 'address' | 'createdAt' | 'lastUsedAt'>;

/** Lifetime of a session after its last use, which is stored at most once an hour. */
const LIFE = `interval '14 days'`;

/** Maximum number of sessions of an account; the least recently used ones are closed. */
const SESSIONS_MAX = 100;

export interface SignedInRow extends Omit<SessionCaller, 'scopes' | 'memberships' | 'limits' | 'rootKeyId'> {
  rootKeyId: string | null;
  overrides: Partial<AccountLimits> | null;
  roles: string | null;
}

/** `s` is a session, and `k` the key that it began with, if any. */
const IS_ALIVE = 's.expires_at > now() AND (k.expires_at IS NULL OR k.expires_at > now())';

/** Returns the condition for accepted sessions: a suspension does not affect those that operators begin with a key. */
const isAccepted = (key: string) =>
  `a.disabled_at IS NULL AND (a.credentials_suspended_at IS NULL OR a.is_operator AND ${key} IS NOT NULL)`;

const CURRENT = new PreparedStatement<SignedInRow>(
  `WITH found AS (
     SELECT s.hash, s.id, s.account_id, s.key_id, a.name, a.is_operator, a.time_zone, a.logins_epoch, s.last_used_at < now() - interval '1 hour' AS is_stale,
            ${OVERRIDES}, ${ROLES}, ${ORGANIZATION_NAMES}
       FROM sessions s JOIN accounts a ON a.id = s.account_id LEFT JOIN api_keys k ON k.id = s.key_id
      WHERE s.hash = $1 AND ${isAccepted('s.key_id')} AND ${IS_ALIVE}
   ), used AS (
     UPDATE sessions s SET last_used_at = now(), expires_at = least(now() + ${LIFE}, s.ends_at)
       FROM found WHERE s.hash = found.hash AND found.is_stale
   )
   SELECT account_id AS "accountId", name AS "accountName", is_operator AS "isOperator", id AS "keyId", key_id AS "rootKeyId",
          logins_epoch AS "loginsEpoch", true AS "isSession", overrides, roles, organizations,
          time_zone AS "timeZone" FROM found`,
);

@Injectable()
export class PeopleRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Stores the use of the session. */
  current(hash: Buffer): Promise<SignedInRow | null> {
    return CURRENT.findOne(this.database, [hash]);
  }

  /**
   * @param replaced the session that the browser had, which is closed; null for none
   * @returns false for an organization with members, and when the account was disabled, or the key or password it begins with was revoked
   * meanwhile
   */
  addSession(
    { hash, accountId, keyId, passwordHash, address, agent, hours }: NewSession,
    replaced: Buffer | null,
  ): Promise<boolean> {
    return transactionOf(this.database, { accountId, keyId }, async (tx) => {
      // Shared lock: closing the sessions of an account locks it too, so none begins unnoticed.
      await tx.query('SELECT 1 FROM accounts WHERE id = $1 FOR SHARE', [accountId]);
      const added = await tx.query<unknown[]>(
        `INSERT INTO sessions (hash, account_id, key_id, address, agent, expires_at, ends_at)
         SELECT $1, a.id, $3, $5, $6, least(now() + ${LIFE}, life.ends_at), life.ends_at
           FROM accounts a, (SELECT now() + make_interval(hours => $7) AS ends_at) life
          WHERE a.id = $2 AND ${isAccepted('$3::uuid')} AND NOT EXISTS (SELECT FROM memberships m WHERE m.organization_id = a.id)
            AND CASE WHEN life.ends_at IS NOT NULL THEN true
              WHEN $3::uuid IS NULL
              THEN EXISTS (SELECT 1 FROM people p WHERE p.account_id = a.id AND p.password_hash = $4)
              ELSE EXISTS (SELECT 1 FROM api_keys k WHERE k.id = $3 AND k.account_id = a.id AND k.scopes IS NULL
                AND (k.expires_at IS NULL OR k.expires_at > now())) END
         RETURNING id`,
        [hash, accountId, keyId, passwordHash, address, agent, hours ?? null],
      );
      if (added.length === 0) return false;
      if (replaced) await tx.query('DELETE FROM sessions WHERE hash = $1', [replaced]);
      await tx.query(
        `DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE account_id = $1
           ORDER BY last_used_at DESC, id OFFSET ${SESSIONS_MAX} FOR UPDATE SKIP LOCKED)`,
        [accountId],
      );
      return true;
    });
  }

  async endSession(hash: Buffer): Promise<void> {
    await this.database.query('DELETE FROM sessions WHERE hash = $1', [hash]);
  }

  /** @returns false when the session no longer exists or belongs to another account */
  async endSessionById(actor: Actor, id: string, accountId: string): Promise<boolean> {
    const sql = 'DELETE FROM sessions WHERE id = $1 AND account_id = $2 RETURNING id';
    const [ended] = await transactionOf(this.database, actor, (tx) => tx.query<[unknown[]]>(sql, [id, accountId]));
    return ended.length > 0;
  }

  async endSessionsOf(person: Actor): Promise<void> {
    const sql = 'DELETE FROM sessions WHERE account_id = $1';
    await transactionOf(this.database, person, (tx) => tx.query(sql, [person.accountId]));
  }

  /** Closes sessions, except those that another service began, and those of operators with a key. */
  async endOtherSessions(): Promise<void> {
    await this.database.query(
      `DELETE FROM sessions s USING accounts a
        WHERE a.id = s.account_id AND s.ends_at IS NULL AND (s.key_id IS NULL OR NOT a.is_operator)`,
    );
  }

  sessionsOf(accountId: string): Promise<ShownSession[]> {
    return this.database.query(
      `SELECT s.id, s.agent, s.address, s.created_at AS "createdAt", s.last_used_at AS "lastUsedAt"
         FROM sessions s LEFT JOIN api_keys k ON k.id = s.key_id
        WHERE s.account_id = $1 AND ${IS_ALIVE} ORDER BY s.last_used_at DESC, s.id`,
      [accountId],
    );
  }

  /** Returns the valid sessions, without those of disabled accounts. */
  async validAmong(ids: string[]): Promise<Set<string>> {
    const rows = await this.database.query<{ id: string }[]>(
      `SELECT s.id FROM sessions s JOIN accounts a ON a.id = s.account_id LEFT JOIN api_keys k ON k.id = s.key_id
        WHERE s.id = ANY($1::uuid[]) AND ${isAccepted('s.key_id')} AND ${IS_ALIVE}`,
      [ids],
    );
    return new Set(rows.map(({ id }) => id));
  }

  /** @returns null without an enabled account of this name */
  async findByName(name: string): Promise<{ accountId: string; passwordHash: string | null } | null> {
    const [row] = await this.database.query<{ accountId: string; passwordHash: string | null }[]>(
      `SELECT a.id AS "accountId", p.password_hash AS "passwordHash"
         FROM accounts a LEFT JOIN people p ON p.account_id = a.id WHERE a.name = $1`,
      [name],
    );
    return row ?? null;
  }

  /**
   * Closes the sessions of the account and revokes its unused invitations.
   *
   * @param keptSessionId the session to keep; null for none
   */
  setPassword(accountId: string, passwordHash: string, keptSessionId: string | null): Promise<void> {
    return transactionOf(this.database, { accountId, keyId: keptSessionId }, async (tx) => {
      await lockAccount(tx, accountId);
      await storePassword(tx, accountId, passwordHash, keptSessionId);
    });
  }

  /**
   * Removes the password, and revokes the sessions, client authorizations and unused invitations of the account.
   *
   * @param always revokes them even if the account has no password
   * @returns false without a password
   */
  removePassword(actor: Actor, accountId: string, always = false): Promise<boolean> {
    return transactionOf(this.database, actor, async (tx) => {
      await lockAccount(tx, accountId);
      const [removed] = await tx.query<[unknown[]]>(
        `UPDATE people SET password_hash = NULL, password_at = NULL WHERE account_id = $1 AND password_hash IS NOT NULL
         RETURNING account_id`,
        [accountId],
      );
      if (always || removed.length > 0) await endLogins(tx, accountId, null);
      return removed.length > 0;
    });
  }

  /**
   * @param minutes of validity
   * @returns its expiry; `disabled` for a disabled account, `members` for an organization that has them, and null without the account
   */
  addInvitation(
    actor: Actor,
    accountId: string,
    hash: Buffer,
    minutes = 72 * 60,
  ): Promise<Date | 'disabled' | 'members' | null> {
    return transactionOf(this.database, actor, async (tx) => {
      const account = await lockAccount(tx, accountId);
      if (!account) return null;
      if (account.isDisabled) return 'disabled';
      const members = await tx.query<unknown[]>('SELECT FROM memberships WHERE organization_id = $1 LIMIT 1', [
        accountId,
      ]);
      if (members.length > 0) return 'members';
      await tx.query('DELETE FROM invitations WHERE account_id = $1 AND used_at IS NULL', [accountId]);
      const [added] = await tx.query<{ expiresAt: Date }[]>(
        `INSERT INTO invitations (hash, account_id, created_by, expires_at)
         VALUES ($1, $2, $3, now() + make_interval(mins => $4)) RETURNING expires_at AS "expiresAt"`,
        [hash, accountId, actor.accountId, minutes],
      );
      return added?.expiresAt ?? null;
    });
  }

  /** @returns the expiry; `full` at the limit, and null if the creator is not allowed to invite */
  addMemberInvitation(actor: Actor, organizationId: string, role: Role, hash: Buffer): Promise<Date | 'full' | null> {
    return transactionOf(this.database, actor, async (tx) => {
      // Locked, so that two concurrent requests count each other.
      await lockAccount(tx, organizationId);
      const [{ open }] = await tx.query<[{ open: number }]>(OPEN_INVITATIONS, [organizationId]);
      if (open >= INVITATIONS_MAX) return 'full';
      const [added] = await tx.query<{ expiresAt: Date }[]>(
        `INSERT INTO invitations (hash, account_id, created_by, role, expires_at)
         SELECT $1, i.account_id, i.created_by, $4, now() + interval '72 hours'
           FROM (SELECT $2::uuid AS account_id, $3::uuid AS created_by, NULL::uuid AS invited_id) i JOIN accounts a ON a.id = i.account_id
          WHERE a.kind = 'organization' AND a.disabled_at IS NULL AND ${BY_OWNER}
         RETURNING expires_at AS "expiresAt"`,
        [hash, organizationId, actor.accountId, role],
      );
      return added?.expiresAt ?? null;
    });
  }

  /** @returns null for an invitation that was used, has expired or is unknown */
  async invited(hash: Buffer): Promise<Invited | null> {
    const [row] = await this.database.query<Invited[]>(
      `SELECT a.id AS "accountId", a.name AS "accountName", i.role FROM invitations i JOIN accounts a ON a.id = i.account_id
        WHERE i.hash = $1 AND i.used_at IS NULL AND i.expires_at > now() AND a.disabled_at IS NULL
          AND (i.role IS NULL OR ${BY_OWNER})`,
      [hash],
    );
    return row ?? null;
  }

  /** @returns false when the invitation was revoked or expired meanwhile */
  useInvitation(hash: Buffer, accountId: string, passwordHash: string): Promise<boolean> {
    return transactionOf(this.database, { accountId }, async (tx) => {
      // Locked first, as when revoking invitations.
      const account = await lockAccount(tx, accountId);
      if (!account || account.isDisabled) return false;
      const [used] = await tx.query<[unknown[]]>(
        `UPDATE invitations SET used_at = now()
          WHERE hash = $1 AND role IS NULL AND used_at IS NULL AND expires_at > now() RETURNING hash`,
        [hash],
      );
      if (used.length === 0) return false;
      await storePassword(tx, accountId, passwordHash, null);
      return true;
    });
  }

  async purgeExpired(now: Date): Promise<number> {
    const [row] = await this.database.query<{ count: number }[]>(
      `WITH s AS (DELETE FROM sessions WHERE expires_at <= $1 RETURNING 1),
            i AS (DELETE FROM invitations WHERE expires_at <= $1 RETURNING 1)
       SELECT ((SELECT count(*) FROM s) + (SELECT count(*) FROM i))::int AS count`,
      [now],
    );
    return row?.count ?? 0;
  }
}

/** Locks out other changes of the account's password, sessions and invitations. Returns null without the account. */
async function lockAccount(tx: EntityManager, accountId: string): Promise<{ isDisabled: boolean } | null> {
  const [row] = await tx.query<{ isDisabled: boolean }[]>(
    'SELECT disabled_at IS NOT NULL AS "isDisabled" FROM accounts WHERE id = $1 FOR NO KEY UPDATE',
    [accountId],
  );
  return row ?? null;
}

/** Revokes the account's earlier client authorizations and password links. */
async function storePassword(
  tx: EntityManager,
  accountId: string,
  passwordHash: string,
  keptSessionId: string | null,
): Promise<void> {
  await tx.query(
    `INSERT INTO people (account_id, password_hash, password_at) VALUES ($1, $2, now())
     ON CONFLICT (account_id) DO UPDATE SET password_hash = $2, password_at = now()`,
    [accountId, passwordHash],
  );
  await endLogins(tx, accountId, keptSessionId);
}

/** Revokes the sessions, client authorizations and unused invitations of an account, except the kept session. */
async function endLogins(tx: EntityManager, accountId: string, keptSessionId: string | null): Promise<void> {
  await tx.query('DELETE FROM sessions WHERE account_id = $1 AND id IS DISTINCT FROM $2', [accountId, keptSessionId]);
  await tx.query('DELETE FROM invitations WHERE account_id = $1 AND used_at IS NULL', [accountId]);
  await tx.query('UPDATE accounts SET logins_epoch = logins_epoch + 1 WHERE id = $1', [accountId]);
}
