import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { transactionOf, type Actor } from '../../platform/database/actor.js';
import type { AccountLimits } from '../../config/account-limits.js';
import { PreparedStatement } from '../../platform/database/prepared-statement.js';
import { networkOf } from '../../platform/http/client-address.js';
import { STORABLE } from '../../platform/http/input-values.js';
import { OVERRIDES } from '../auth/account-limits.access.js';
import { ROLES } from '../auth/memberships.access.js';
import type { TargetRef } from '../targets/target.types.js';
import type { AsGrant } from './as-grant.entity.js';
import type { AsRecord } from './as-record.entity.js';
import type { ShownGrant } from './authorization-server.types.js';
import { deletionTime } from '../../platform/database/deletion-time.js';

/** Time for which a used refresh token stays valid after its successor was used: a response might have been lost. */
const GRACE_SECONDS = 60;

/** Refresh tokens of an authorization, and as many other records: access tokens and the code. The oldest are deleted. */
const RECORDS_OF_GRANT_MAX = 3;

/** Authorizations of an account, and those among them that no client has used yet. The least recently used are revoked. */
const GRANTS_MAX = 500;
const UNUSED_GRANTS_MAX = 20;

/**
 * Pending authorization requests: of an address and client, of a network, and of all. The oldest are deleted; beyond the total, those of
 * the network with the most.
 */
const WAITING_MAX = { ofClient: 250, ofNetwork: 1_000, ofAll: 10_000 };

/**
 * Clients that nobody authorized yet: registrations of an address and of a network in an hour, and all. Beyond the total, the oldest of the
 * network with the most are deleted.
 */
export const UNFINISHED_PER_ADDRESS_MAX = 100;
const UNFINISHED_PER_NETWORK_MAX = 1_000;
const UNFINISHED_MAX = 10_000;

const SWEEP_ROWS = 10_000;

/** The authorization `g` of account `a` is valid. */
const IS_GOOD = `g.expires_at > now() AND a.disabled_at IS NULL AND a.credentials_suspended_at IS NULL AND a.logins_epoch = g.logins_epoch
  AND NOT EXISTS (SELECT 1 FROM api_keys k WHERE k.id = g.key_id AND k.expires_at <= now())`;

export interface TokenRow {
  grantId: string;
  /** Null if the session began with a password. */
  rootKeyId: string | null;
  accountId: string;
  expiresAt: Date;
  overrides: Partial<AccountLimits> | null;
  roles: string | null;
  loginsEpoch: number;
  /** Current names of the endpoint; null for targets that the authorization does not open. */
  connectionId: string | null;
  namespace: string | null;
  slug: string | null;
}

export interface StoredRecord extends Pick<AsRecord, 'sealed' | 'grantId' | 'consumedAt'> {
  /** The successor of a used refresh token was used too, and the grace period has passed. */
  isReplaced: boolean;
}

export interface LoginRow {
  id: string;
  kind: 'browser' | 'password' | 'oauth';
  /** The `User-Agent` of a browser, or the name of an OAuth client. */
  name: string | null;
  redirectKey: string | null;
  resource: string | null;
  address: string | null;
  keyId: string | null;
  createdAt: Date;
  lastUsedAt: Date | null;
  expiresAt: Date | null;
}

interface NewRecord extends Pick<AsRecord, 'grantId' | 'predecessor' | 'sealed'> {
  lifeSeconds: number;
}

export type NewGrant = Omit<
  AsGrant,
  'address' | 'connectionId' | 'namespaceId' | 'serverId' | 'createdAt' | 'lastUsedAt' | 'expiresAt'
> & { target: TargetRef; address: string; lifeSeconds: number };

const TOKEN = new PreparedStatement<TokenRow>(
  `SELECT r.grant_id AS "grantId", g.key_id AS "rootKeyId", g.account_id AS "accountId", r.expires_at AS "expiresAt", ${OVERRIDES}, ${ROLES},
          g.logins_epoch AS "loginsEpoch", c.connection_id AS "connectionId", n.name AS namespace, s.slug
     FROM as_records r
     JOIN as_grants g ON g.id = r.grant_id
     JOIN accounts a ON a.id = g.account_id
     LEFT JOIN connections c ON c.id = g.connection_id
     LEFT JOIN namespaces n ON n.id = coalesce(g.namespace_id, c.namespace_id)
     LEFT JOIN servers s ON s.id = g.server_id
    WHERE r.kind = 'AccessToken' AND r.id_hash = $1 AND r.expires_at > now() AND ${IS_GOOD}`,
);

const RECORD = new PreparedStatement<StoredRecord>(
  `SELECT sealed, grant_id AS "grantId", consumed_at AS "consumedAt", coalesce(grace_until <= now(), false) AS "isReplaced"
     FROM as_records WHERE kind = $1 AND id_hash = $2 AND expires_at > now()`,
);

const NEW_INTERACTION = new PreparedStatement<object>(
  `INSERT INTO as_records (kind, id_hash, address, client_id, sealed, expires_at)
   VALUES ('Interaction', $1, $2, $3, $4, now() + make_interval(secs => $5))
   ON CONFLICT (kind, id_hash) DO UPDATE SET sealed = excluded.sealed, expires_at = excluded.expires_at`,
);

const beyond = (max: number, where = '') =>
  `(SELECT id_hash FROM as_records WHERE kind = 'Interaction' ${where} ORDER BY created_at DESC OFFSET ${max})`;

/** The network of the column `address`: for IPv6 the first three groups (`networkOf`). */
const NETWORK = String.raw`coalesce(substring(address FROM '^\d+:\d+:\d+(?=:)'), address)`;

/** Deletes the oldest rows of the network with the most. */
const ofLargest = (table: string, id: string, where: string, max: number) =>
  `(SELECT ${id} FROM ${table} WHERE ${where} AND ${NETWORK} = (
      SELECT ${NETWORK} FROM ${table} WHERE ${where} GROUP BY 1 ORDER BY count(*) DESC LIMIT 1)
     ORDER BY created_at LIMIT greatest(0, (SELECT count(*) FROM ${table} WHERE ${where}) - ${max}))`;

/** Deletes the oldest beyond the limits of address `$1`, client `$2` and network `$3`. Skips rows that another transaction deletes. */
const OLDER_INTERACTIONS = new PreparedStatement<object>(
  `DELETE FROM as_records WHERE kind = 'Interaction' AND id_hash IN (
     SELECT id_hash FROM as_records WHERE kind = 'Interaction' AND id_hash = ANY (ARRAY(
       ${beyond(WAITING_MAX.ofClient, 'AND address = $1 AND client_id = $2')}
       UNION ALL ${beyond(WAITING_MAX.ofNetwork, `AND ${NETWORK} = $3`)}
       UNION ALL ${ofLargest('as_records', 'id_hash', `kind = 'Interaction'`, WAITING_MAX.ofAll)}))
     FOR UPDATE SKIP LOCKED)`,
);

const GRANT_COLUMNS = { connection: 'connection_id', namespace: 'namespace_id', server: 'server_id' } as const;

@Injectable()
export class AuthorizationServerRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  findToken(hash: Buffer): Promise<TokenRow | null> {
    return TOKEN.findOne(this.database, [hash]);
  }

  async grantsAmong(ids: string[]): Promise<Set<string>> {
    const rows = await this.database.query<{ id: string }[]>(
      `SELECT g.id FROM as_grants g JOIN accounts a ON a.id = g.account_id
        WHERE g.id = ANY($1::uuid[]) AND ${IS_GOOD}`,
      [ids],
    );
    return new Set(rows.map(({ id }) => id));
  }

  async saveLastUses(ids: string[], moments: Date[]): Promise<void> {
    await this.database.query(
      `WITH used AS (
         UPDATE as_grants SET last_used_at = u.at FROM unnest($1::uuid[], $2::timestamptz[]) AS u(id, at)
          WHERE as_grants.id = u.id RETURNING client_id, u.at)
       UPDATE as_clients SET last_used_at = used.at FROM used WHERE as_clients.id = used.client_id`,
      [ids, moments],
    );
  }

  findRecord(kind: string, hash: Buffer): Promise<StoredRecord | null> {
    return RECORD.findOne(this.database, [kind, hash]);
  }

  /** @returns false for a used assertion that is already stored */
  async saveRecord(
    kind: string,
    hash: Buffer,
    { grantId, predecessor, sealed, lifeSeconds }: NewRecord,
  ): Promise<boolean> {
    const again =
      kind === 'ReplayDetection' ? 'NOTHING' : 'UPDATE SET sealed = excluded.sealed, expires_at = excluded.expires_at';
    const rows = await this.database.query<unknown[]>(
      `INSERT INTO as_records (kind, id_hash, grant_id, predecessor, sealed, expires_at)
       VALUES ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))
       ON CONFLICT (kind, id_hash) DO ${again} RETURNING kind`,
      [kind, hash, grantId, predecessor, sealed, lifeSeconds],
    );
    return rows.length > 0;
  }

  async saveInteraction(
    hash: Buffer,
    {
      address,
      clientId,
      sealed,
      lifeSeconds,
    }: { address: string; clientId: string; sealed: string; lifeSeconds: number },
  ): Promise<void> {
    await NEW_INTERACTION.findOne(this.database, [hash, address, clientId, sealed, lifeSeconds]);
    // After the insertion, so that concurrent insertions count each other.
    await OLDER_INTERACTIONS.findOne(this.database, [address, clientId, networkOf(address)]);
  }

  async deleteRecord(kind: string, hash: Buffer): Promise<void> {
    await this.database.query('DELETE FROM as_records WHERE kind = $1 AND id_hash = $2', [kind, hash]);
  }

  /**
   * Uses a code or token. A used refresh token invalidates its predecessor after 60 s. Locks the authorization first, as its deletion does, then rows from the
   * successor to its predecessor, so that two statements never deadlock.
   *
   * @returns false when the code or token had been used before, or no longer exists
   */
  async consume(kind: string, hash: Buffer): Promise<boolean> {
    const rows = await this.database.query<{ isFirst: boolean }[]>(
      `WITH login AS MATERIALIZED (
           SELECT g.id FROM as_grants g JOIN as_records r ON r.grant_id = g.id WHERE r.kind = $1 AND r.id_hash = $2 FOR KEY SHARE OF g),
         old AS (SELECT r.predecessor, r.consumed_at FROM login JOIN as_records r ON r.grant_id = login.id
                  WHERE r.kind = $1 AND r.id_hash = $2 FOR UPDATE OF r),
         used AS (UPDATE as_records SET consumed_at = now() FROM old
                   WHERE kind = $1 AND id_hash = $2 AND old.consumed_at IS NULL),
         ended AS (UPDATE as_records r SET grace_until = now() + make_interval(secs => $3) FROM old
                    WHERE r.kind = 'RefreshToken' AND r.id_hash = old.predecessor AND r.grace_until IS NULL)
       SELECT consumed_at IS NULL AS "isFirst" FROM old`,
      [kind, hash, GRACE_SECONDS],
    );
    return rows[0]?.isFirst ?? false;
  }

  /** Deletes older records, and skips rows that another refresh deletes. */
  async dropOlderRecords(grantId: string): Promise<void> {
    await this.database.query(
      `DELETE FROM as_records WHERE (kind, id_hash) IN (
         SELECT kind, id_hash FROM as_records WHERE grant_id = $1 AND id_hash IN (
           SELECT id_hash FROM (
             SELECT id_hash, row_number() OVER (PARTITION BY kind = 'RefreshToken' ORDER BY created_at DESC) AS rank
               FROM as_records WHERE grant_id = $1) ranked
            WHERE rank > ${RECORDS_OF_GRANT_MAX})
         FOR UPDATE SKIP LOCKED)`,
      [grantId],
    );
  }

  /** Returns true if a stored refresh token of this authorization was replaced long ago: a token whose row was deleted is even older. */
  async isLongReplaced(grantId: string): Promise<boolean> {
    const rows = await this.database.query<unknown[]>(
      `SELECT 1 FROM as_records WHERE grant_id = $1 AND kind = 'RefreshToken' AND grace_until <= now() LIMIT 1`,
      [grantId],
    );
    return rows.length > 0;
  }

  /** Stores a grant, and revokes the account's least recently used authorizations beyond its limits. @returns the ids of the revoked ones */
  async saveGrant(grant: NewGrant): Promise<string[]> {
    const sql = `WITH client AS (UPDATE as_clients SET first_used_at = coalesce(first_used_at, now()), last_used_at = now() WHERE id = $3)
       INSERT INTO as_grants (id, account_id, client_id, client_name, client_host, redirect_key, redirects_hash, resource,
                              is_remembered, expires_at, key_id, right_id, logins_epoch, address, ${GRANT_COLUMNS[grant.target.kind]})
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, now() + make_interval(secs => $10), $11, $12, $13, $14, $15)`;
    const values = [
      grant.id,
      grant.accountId,
      grant.clientId,
      grant.clientName,
      grant.clientHost,
      grant.redirectKey,
      grant.redirectsHash,
      grant.resource,
      grant.isRemembered,
      grant.lifeSeconds,
      grant.keyId,
      grant.rightId,
      grant.loginsEpoch,
      grant.address,
      grant.target.id,
    ];
    await transactionOf(this.database, grant, (tx) => tx.query(sql, values));
    // After the insertion, so that concurrent consents count each other.
    const [ended] = await this.database.query<[{ id: string }[]]>(
      `DELETE FROM as_grants WHERE id IN (
         SELECT id FROM as_grants WHERE id = ANY (ARRAY(
           SELECT id FROM (
             SELECT id, last_used_at IS NULL AS unused,
                    row_number() OVER (PARTITION BY last_used_at IS NULL ORDER BY coalesce(last_used_at, created_at) DESC, id) AS rank
               FROM as_grants WHERE account_id = $1) ranked
            WHERE rank > CASE WHEN unused THEN ${UNUSED_GRANTS_MAX} ELSE ${GRANTS_MAX - UNUSED_GRANTS_MAX} END))
         FOR UPDATE SKIP LOCKED)
       RETURNING id`,
      [grant.accountId],
    );
    return ended.map(({ id }) => id);
  }

  /** Returns true if the user's last valid consent to the same request asked to be remembered. */
  async isRemembered({ accountId, clientId, redirectKey, redirectsHash, target }: NewGrant): Promise<boolean> {
    const [last] = await this.database.query<{ isRemembered: boolean }[]>(
      `SELECT g.is_remembered AND g.redirects_hash = $4 AS "isRemembered"
         FROM as_grants g JOIN accounts a ON a.id = g.account_id
        WHERE g.account_id = $1 AND g.client_id = $2 AND g.redirect_key = $3 AND g.${GRANT_COLUMNS[target.kind]} = $5 AND ${IS_GOOD}
        ORDER BY g.created_at DESC, g.id LIMIT 1`,
      [accountId, clientId, redirectKey, redirectsHash, target.id],
    );
    return last?.isRemembered ?? false;
  }

  async findGrant(id: string): Promise<{ accountId: string; clientId: string; resource: string } | null> {
    const [row] = await this.database.query<{ accountId: string; clientId: string; resource: string }[]>(
      `SELECT g.account_id AS "accountId", g.client_id AS "clientId", g.resource
         FROM as_grants g JOIN accounts a ON a.id = g.account_id
        WHERE g.id = $1 AND ${IS_GOOD}`,
      [id],
    );
    return row ?? null;
  }

  /** Writes at most once an hour. */
  async extendGrant(id: string, lifeSeconds: number): Promise<void> {
    await this.database.query(
      `UPDATE as_grants SET expires_at = now() + make_interval(secs => $2)
        WHERE id = $1 AND expires_at < now() + make_interval(secs => $2) - interval '1 hour'`,
      [id, lifeSeconds],
    );
  }

  grantsOf(accountId: string, { offset, limit }: { offset: number; limit: number }): Promise<ShownGrant[]> {
    return this.database.query<ShownGrant[]>(
      `SELECT g.id, g.client_name AS "clientName", g.client_host AS "clientHost", g.redirect_key AS "redirectKey", g.address,
              g.resource, g.created_at AS "createdAt", g.last_used_at AS "lastUsedAt",
              coalesce(c.name, nullif(s.display_name, ''), s.slug, n.name) AS title
         FROM as_grants g JOIN accounts a ON a.id = g.account_id LEFT JOIN connections c ON c.id = g.connection_id
         LEFT JOIN servers s ON s.id = g.server_id LEFT JOIN namespaces n ON n.id = g.namespace_id
        WHERE g.account_id = $1 AND ${IS_GOOD} ORDER BY g.created_at DESC, g.id OFFSET $2 LIMIT $3`,
      [accountId, offset, limit],
    );
  }

  /** Returns at most about 600, by the limits of each kind. */
  loginsOf(accountId: string): Promise<LoginRow[]> {
    return this.database.query<LoginRow[]>(
      `SELECT s.id::text, 'browser' AS kind, s.agent AS name, NULL AS "redirectKey", NULL AS resource, s.address,
                s.key_id AS "keyId", s.created_at AS "createdAt", s.last_used_at AS "lastUsedAt", s.expires_at AS "expiresAt"
           FROM sessions s LEFT JOIN api_keys k ON k.id = s.key_id
          WHERE s.account_id = $1 AND s.expires_at > now() AND (k.expires_at IS NULL OR k.expires_at > now())
         UNION ALL
         SELECT 'password', 'password', NULL, NULL, NULL, NULL, NULL, password_at, NULL, NULL
           FROM people WHERE account_id = $1 AND password_hash IS NOT NULL
         UNION ALL
         SELECT g.id::text, 'oauth', g.client_name, g.redirect_key, g.resource, g.address, g.key_id, g.created_at, g.last_used_at,
                g.expires_at
           FROM as_grants g JOIN accounts a ON a.id = g.account_id WHERE g.account_id = $1 AND ${IS_GOOD}
        ORDER BY "createdAt" DESC, id`,
      [accountId],
    );
  }

  async deleteGrantsOf(actor: Actor, accountId: string): Promise<string[]> {
    const sql = 'DELETE FROM as_grants WHERE account_id = $1 RETURNING id';
    const [rows] = await transactionOf(this.database, actor, (tx) => tx.query<[{ id: string }[]]>(sql, [accountId]));
    return rows.map(({ id }) => id);
  }

  async deleteGrant(id: string): Promise<boolean> {
    const [rows] = await this.database.query<[unknown[]]>('DELETE FROM as_grants WHERE id = $1 RETURNING id', [id]);
    return rows.length > 0;
  }

  /** @returns false when the authorization no longer exists or belongs to another account */
  async deleteOwnGrant(actor: Actor, id: string, accountId: string): Promise<boolean> {
    // Before the deletion, which might fail: the authorization can then be revoked again.
    await this.database.query(
      `UPDATE as_grants SET is_remembered = false WHERE id IN (
         SELECT other.id FROM as_grants g JOIN as_grants other USING (account_id, client_id, redirect_key)
          WHERE g.id = $1 AND g.account_id = $2 AND other.is_remembered ORDER BY other.id FOR UPDATE OF other)`,
      [id, accountId],
    );
    const sql = 'DELETE FROM as_grants WHERE id = $1 AND account_id = $2 RETURNING id';
    const [ended] = await transactionOf(this.database, actor, (tx) => tx.query<[unknown[]]>(sql, [id, accountId]));
    return ended.length > 0;
  }

  async findClient(id: string): Promise<string | null> {
    if (!STORABLE.test(id)) return null;
    const [row] = await this.database.query<{ sealed: string | null }[]>(
      'SELECT sealed FROM as_clients WHERE id = $1',
      [id],
    );
    return row?.sealed ?? null;
  }

  /** @returns false when the address has reached the hourly limit */
  async saveClient(id: string, sealed: string, address: string): Promise<boolean> {
    const rows = await this.database.query<unknown[]>(
      `INSERT INTO as_clients (id, sealed, address) SELECT $1, $2, $3
        WHERE (SELECT count(*) FILTER (WHERE address = $3) < ${UNFINISHED_PER_ADDRESS_MAX} AND count(*) < ${UNFINISHED_PER_NETWORK_MAX}
                 FROM as_clients WHERE ${NETWORK} = $4 AND first_used_at IS NULL AND created_at > now() - interval '1 hour')
       RETURNING id`,
      [id, sealed, address, networkOf(address)],
    );
    if (rows.length > 0) await this.dropOlderClients();
    return rows.length > 0;
  }

  async findDocument(url: string): Promise<string | null> {
    const [row] = await this.database.query<{ document: string | null }[]>(
      'SELECT document FROM as_clients WHERE id = $1',
      [url],
    );
    return row?.document ?? null;
  }

  async saveDocument(url: string, document: string): Promise<void> {
    await this.database.query(
      `INSERT INTO as_clients (id, document) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET document = excluded.document`,
      [url, document],
    );
    await this.dropOlderClients();
  }

  /** Deletes the oldest beyond {@link UNFINISHED_MAX}, without rows that another process deletes. */
  private async dropOlderClients(): Promise<void> {
    await this.database.query(
      `DELETE FROM as_clients WHERE id IN (
         SELECT id FROM as_clients WHERE first_used_at IS NULL AND id = ANY (ARRAY(
           ${ofLargest('as_clients', 'id', 'first_used_at IS NULL', UNFINISHED_MAX)}))
         FOR UPDATE SKIP LOCKED)`,
    );
  }

  /** Deletes in batches: expired records and authorizations, registrations unused for a day, and clients unused for 90 days. */
  async sweep(now: Date): Promise<number> {
    let sum = 0;
    for (const [table, where] of [
      ['as_records', `expires_at < $1 AND kind <> 'AuthorizationCode'`],
      ['as_grants', 'expires_at < $1'],
      ['as_clients', `first_used_at IS NULL AND created_at < $1::timestamptz - interval '1 day'`],
      [
        'as_clients',
        `coalesce(last_used_at, created_at) < $1::timestamptz - interval '90 days'
           AND NOT EXISTS (SELECT 1 FROM as_grants g WHERE g.client_id = as_clients.id)`,
      ],
    ]) {
      for (let count = SWEEP_ROWS; count === SWEEP_ROWS; sum += count) {
        [, count] = await this.database.query<[unknown, number]>(
          `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
             SELECT ctid FROM ${table} WHERE ${where} LIMIT ${SWEEP_ROWS} FOR UPDATE SKIP LOCKED)) AND ${where}`,
          [now],
        );
      }
    }
    return sum;
  }

  /** @returns the names of the clients that did not redeem their codes */
  async sweepCodes(): Promise<string[]> {
    const now = await deletionTime(this.database);
    if (!now) return [];
    const [rows] = await this.database.query<[{ clientName: string | null; consumed: boolean }[], number]>(
      `DELETE FROM as_records r WHERE kind = 'AuthorizationCode' AND expires_at < $1
       RETURNING consumed_at IS NOT NULL AS consumed,
                 (SELECT g.client_name FROM as_grants g WHERE g.id = r.grant_id) AS "clientName"`,
      [now],
    );
    return rows.flatMap(({ consumed, clientName }) => (consumed || clientName === null ? [] : [clientName]));
  }
}
