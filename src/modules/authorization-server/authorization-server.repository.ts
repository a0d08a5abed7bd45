import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { AccountLimits } from '../../config/account-limits.js';
import { PreparedStatement } from '../../platform/database/prepared-statement.js';
import { OVERRIDES } from '../auth/account-limits.access.js';
import type { McpEndpoint } from '../auth/mcp-endpoint.access.js';
import type { EndpointTarget, ShownGrant } from './authorization-server.types.js';

/** Time for which a refresh token stays good after a later one was used: an answer may have been lost. */
const GRACE_SECONDS = 60;

/** An access token with what requests need of its grant and account. */
export interface TokenRow {
  grantId: string;
  accountId: string;
  expiresAt: Date;
  overrides: Partial<AccountLimits> | null;
  /** Names of the endpoint as they are now; null for what the grant does not open. */
  connectionId: string | null;
  namespace: string | null;
  slug: string | null;
}

/** A stored model of oidc-provider. */
export interface StoredRecord {
  sealed: string;
  grantId: string | null;
  consumedAt: Date | null;
  /** A refresh token that a later one replaced, and whose grace is over. */
  isReplaced: boolean;
}

/** A grant to be stored. */
export interface NewGrant {
  id: string;
  accountId: string;
  clientId: string;
  clientName: string;
  clientHost: string | null;
  redirectKey: string;
  redirectsHash: Buffer;
  resource: string;
  target: Pick<EndpointTarget, 'kind' | 'id'>;
  isRemembered: boolean;
  lifeSeconds: number;
}

const TOKEN = new PreparedStatement<TokenRow>(
  `SELECT r.grant_id AS "grantId", g.account_id AS "accountId", r.expires_at AS "expiresAt", ${OVERRIDES},
          c.connection_id AS "connectionId", n.name AS namespace, s.slug
     FROM as_records r
     JOIN as_grants g ON g.id = r.grant_id
     JOIN accounts a ON a.id = g.account_id
     LEFT JOIN connections c ON c.id = g.connection_id
     LEFT JOIN namespaces n ON n.id = coalesce(g.namespace_id, c.namespace_id)
     LEFT JOIN servers s ON s.id = g.server_id
    WHERE r.kind = 'AccessToken' AND r.id_hash = $1 AND r.expires_at > now() AND a.disabled_at IS NULL`,
);

const RECORD = new PreparedStatement<StoredRecord>(
  `SELECT sealed, grant_id AS "grantId", consumed_at AS "consumedAt", coalesce(grace_until <= now(), false) AS "isReplaced"
     FROM as_records WHERE kind = $1 AND id_hash = $2 AND expires_at > now()`,
);

/** Target of an endpoint for account `$1`. */
const TARGETS = {
  connection: `SELECT c.id, n.account_id AS "ownerId", n.name AS namespace, c.name AS title,
           n.name || '/' || c.connection_id AS label, false AS "isPublic", g.level AS granted
      FROM connections c JOIN namespaces n ON n.id = c.namespace_id
      LEFT JOIN grants g ON g.connection_id = c.id AND g.subject_id = $1
     WHERE n.name = $2 AND c.connection_id = $3`,
  namespace: `SELECT n.id, n.account_id AS "ownerId", n.name AS namespace, n.name AS title, n.name AS label,
           false AS "isPublic", NULL AS granted
      FROM namespaces n WHERE n.name = $2 AND $1::uuid IS NOT NULL`,
  server: `SELECT s.id, n.account_id AS "ownerId", n.name AS namespace, coalesce(nullif(s.display_name, ''), nullif(s.name, ''), n.name) AS title,
           n.name || coalesce('/' || nullif(s.name, ''), '') AS label, s.visibility = 'public' AS "isPublic", g.level AS granted
      FROM servers s JOIN namespaces n ON n.id = s.namespace_id
      LEFT JOIN grants g ON g.server_id = s.id AND g.subject_id = $1
     WHERE lower(s.slug) = $2`,
};

const GRANT_COLUMNS = { connection: 'connection_id', namespace: 'namespace_id', server: 'server_id' } as const;

/** SQL of the authorization server. */
@Injectable()
export class AuthorizationServerRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** A valid access token, by its hash; null for none. */
  findToken(hash: Buffer): Promise<TokenRow | null> {
    return TOKEN.findOne(this.database, [hash]);
  }

  /** Those of these grants that exist, of accounts that are enabled. */
  async grantsAmong(ids: string[]): Promise<Set<string>> {
    const rows = await this.database.query<{ id: string }[]>(
      `SELECT g.id FROM as_grants g JOIN accounts a ON a.id = g.account_id
        WHERE g.id = ANY($1::uuid[]) AND g.expires_at > now() AND a.disabled_at IS NULL`,
      [ids],
    );
    return new Set(rows.map(({ id }) => id));
  }

  /** Sets the last use of grants, and of their clients. */
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

  async saveRecord(
    kind: string,
    hash: Buffer,
    {
      grantId,
      family,
      rotation,
      sealed,
      lifeSeconds,
    }: {
      grantId: string | null;
      family: string | null;
      rotation: number;
      sealed: string;
      lifeSeconds: number;
    },
  ): Promise<void> {
    await this.database.query(
      `INSERT INTO as_records (kind, id_hash, grant_id, family, rotation, sealed, expires_at)
       VALUES ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7))
       ON CONFLICT (kind, id_hash) DO UPDATE SET sealed = excluded.sealed, expires_at = excluded.expires_at`,
      [kind, hash, grantId, family, rotation, sealed, lifeSeconds],
    );
  }

  async deleteRecord(kind: string, hash: Buffer): Promise<void> {
    await this.database.query('DELETE FROM as_records WHERE kind = $1 AND id_hash = $2', [kind, hash]);
  }

  /**
   * Marks a code or token as used. The use of a refresh token ends those of its family (of one login) before it, and others of
   * its own rotation (which a second use of their predecessor made), after 60 s.
   *
   * @returns false when it had been used before, or is gone
   */
  async consume(kind: string, hash: Buffer): Promise<boolean> {
    const rows = await this.database.query<{ isFirst: boolean }[]>(
      `WITH old AS (SELECT grant_id, family, rotation, consumed_at FROM as_records WHERE kind = $1 AND id_hash = $2 FOR UPDATE),
         used AS (UPDATE as_records SET consumed_at = coalesce(consumed_at, now()) WHERE kind = $1 AND id_hash = $2),
         ended AS (
           UPDATE as_records r SET grace_until = least(r.grace_until, now() + make_interval(secs => $3)) FROM old
            WHERE r.kind = 'RefreshToken' AND $1 = 'RefreshToken' AND r.grant_id = old.grant_id AND r.id_hash <> $2
              AND r.family IS NOT DISTINCT FROM old.family AND r.rotation <= old.rotation)
       SELECT consumed_at IS NULL AS "isFirst" FROM old`,
      [kind, hash, GRACE_SECONDS],
    );
    return rows[0]?.isFirst ?? false;
  }

  /** Ends codes and tokens of a grant; the grant stays. */
  async deleteRecordsOf(kind: string, grantId: string): Promise<void> {
    await this.database.query('DELETE FROM as_records WHERE kind = $1 AND grant_id = $2', [kind, grantId]);
  }

  /** The target of an endpoint, with what its owner granted this account; null when there is none. */
  async findTarget(endpoint: McpEndpoint, accountId: string): Promise<EndpointTarget | null> {
    const names =
      endpoint.kind === 'connection'
        ? [endpoint.namespace, endpoint.connectionId]
        : [endpoint.kind === 'server' ? endpoint.slug : endpoint.namespace];
    const [row] = await this.database.query<Omit<EndpointTarget, 'kind'>[]>(TARGETS[endpoint.kind], [
      accountId,
      ...names,
    ]);
    return row ? { kind: endpoint.kind, ...row } : null;
  }

  /** Stores a consent. @returns the id of the grant, which is an older one's for the same account, client, redirect and target */
  async saveGrant(grant: NewGrant): Promise<string> {
    const column = GRANT_COLUMNS[grant.target.kind];
    const rows = await this.database.query<{ id: string }[]>(
      `WITH client AS (UPDATE as_clients SET first_used_at = coalesce(first_used_at, now()), last_used_at = now() WHERE id = $3)
       INSERT INTO as_grants (id, account_id, client_id, client_name, client_host, redirect_key, redirects_hash, resource,
                              is_remembered, expires_at, ${column})
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, now() + make_interval(secs => $10), $11)
       ON CONFLICT (account_id, client_id, redirect_key, coalesce(connection_id, namespace_id, server_id))
       DO UPDATE SET client_name = excluded.client_name, client_host = excluded.client_host, resource = excluded.resource,
                     redirects_hash = excluded.redirects_hash, is_remembered = excluded.is_remembered,
                     expires_at = excluded.expires_at
       RETURNING id`,
      [
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
        grant.target.id,
      ],
    );
    return rows[0]?.id ?? grant.id;
  }

  /** True if the person allowed exactly this before and asked not to be asked again. */
  async isRemembered({
    accountId,
    clientId,
    redirectKey,
    redirectsHash,
    target,
  }: Omit<NewGrant, 'resource'>): Promise<boolean> {
    const rows = await this.database.query<unknown[]>(
      `SELECT 1 FROM as_grants WHERE account_id = $1 AND client_id = $2 AND redirect_key = $3 AND redirects_hash = $4
          AND is_remembered AND ${GRANT_COLUMNS[target.kind]} = $5 AND expires_at > now()`,
      [accountId, clientId, redirectKey, redirectsHash, target.id],
    );
    return rows.length > 0;
  }

  /** The account, client and endpoint of a grant of an enabled account; null for none. */
  async findGrant(id: string): Promise<{ accountId: string; clientId: string; resource: string } | null> {
    const [row] = await this.database.query<{ accountId: string; clientId: string; resource: string }[]>(
      `SELECT g.account_id AS "accountId", g.client_id AS "clientId", g.resource
         FROM as_grants g JOIN accounts a ON a.id = g.account_id
        WHERE g.id = $1 AND g.expires_at > now() AND a.disabled_at IS NULL`,
      [id],
    );
    return row ?? null;
  }

  /** Moves the end of a grant on, with each refresh. */
  async extendGrant(id: string, lifeSeconds: number): Promise<void> {
    await this.database.query(
      'UPDATE as_grants SET expires_at = greatest(expires_at, now() + make_interval(secs => $2)) WHERE id = $1',
      [id, lifeSeconds],
    );
  }

  /** The grants of an account, newest first. */
  grantsOf(accountId: string): Promise<ShownGrant[]> {
    return this.database.query<ShownGrant[]>(
      `SELECT g.id, g.client_name AS "clientName", g.client_host AS "clientHost", g.resource, g.created_at AS "createdAt",
              g.last_used_at AS "lastUsedAt", coalesce(c.name, nullif(s.display_name, ''), s.slug, n.name) AS title
         FROM as_grants g LEFT JOIN connections c ON c.id = g.connection_id
         LEFT JOIN servers s ON s.id = g.server_id LEFT JOIN namespaces n ON n.id = g.namespace_id
        WHERE g.account_id = $1 AND g.expires_at > now() ORDER BY g.created_at DESC, g.id`,
      [accountId],
    );
  }

  /** Deletes a grant with its tokens. @returns false when it is gone, or of another account */
  async deleteGrant(id: string, accountId: string | null = null): Promise<boolean> {
    const [rows] = await this.database.query<[unknown[], number]>(
      'DELETE FROM as_grants WHERE id = $1 AND ($2::uuid IS NULL OR account_id = $2) RETURNING id',
      [id, accountId],
    );
    return rows.length > 0;
  }

  /** The sealed metadata of a registered client; null for none. */
  async findClient(id: string): Promise<string | null> {
    const [row] = await this.database.query<{ sealed: string | null }[]>(
      'SELECT sealed FROM as_clients WHERE id = $1',
      [id],
    );
    return row?.sealed ?? null;
  }

  async saveClient(id: string, sealed: string, address: string | null): Promise<void> {
    await this.database.query(
      `INSERT INTO as_clients (id, sealed, address) VALUES ($1, $2, $3)
       ON CONFLICT (id) DO UPDATE SET sealed = excluded.sealed`,
      [id, sealed, address],
    );
  }

  /** Registrations that nobody has allowed anything yet: of an address in the last hour, and of all. */
  async unfinished(address: string): Promise<{ ofAddress: number; all: number }> {
    const [row] = await this.database.query<{ ofAddress: number; all: number }[]>(
      `SELECT count(*) FILTER (WHERE address = $1 AND created_at > now() - interval '1 hour')::int AS "ofAddress",
              count(*)::int AS "all"
         FROM as_clients WHERE first_used_at IS NULL AND sealed IS NOT NULL`,
      [address],
    );
    return row ?? { ofAddress: 0, all: 0 };
  }

  /** The last good copy of a client id metadata document; null for none. */
  async findDocument(url: string): Promise<string | null> {
    const [row] = await this.database.query<{ document: string | null }[]>(
      'SELECT document FROM as_clients WHERE id = $1',
      [url],
    );
    return row?.document ?? null;
  }

  /** Stores a copy, unless so many are of clients that nobody has allowed anything yet. */
  async saveDocument(url: string, document: string, unfinishedMax: number): Promise<void> {
    await this.database.query(
      `INSERT INTO as_clients (id, document) SELECT $1, $2
        WHERE (SELECT count(*) FROM as_clients WHERE first_used_at IS NULL AND id <> $1) < $3
       ON CONFLICT (id) DO UPDATE SET document = excluded.document`,
      [url, document, unfinishedMax],
    );
  }

  /**
   * Removes what is over: expired records and grants, registrations that were not used for a day, and clients that were not
   * used for 90 days.
   *
   * @returns how many rows
   */
  async sweep(): Promise<number> {
    const counts = await Promise.all(
      [
        `DELETE FROM as_records WHERE expires_at < now() AND kind <> 'AuthorizationCode'`,
        `DELETE FROM as_grants WHERE expires_at < now()`,
        `DELETE FROM as_clients WHERE first_used_at IS NULL AND created_at < now() - interval '1 day'`,
        `DELETE FROM as_clients c WHERE coalesce(last_used_at, created_at) < now() - interval '90 days'
            AND NOT EXISTS (SELECT 1 FROM as_grants g WHERE g.client_id = c.id)`,
      ].map((text) => this.database.query<[unknown, number]>(text).then(([, count]) => count)),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Removes expired codes. @returns the names of the clients that did not redeem theirs */
  async sweepCodes(): Promise<string[]> {
    const [rows] = await this.database.query<[{ clientName: string | null; consumed: boolean }[], number]>(
      `DELETE FROM as_records r WHERE kind = 'AuthorizationCode' AND expires_at < now()
       RETURNING consumed_at IS NOT NULL AS consumed,
                 (SELECT g.client_name FROM as_grants g WHERE g.id = r.grant_id) AS "clientName"`,
    );
    return rows.flatMap(({ consumed, clientName }) => (consumed || clientName === null ? [] : [clientName]));
  }
}
