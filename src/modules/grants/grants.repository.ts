import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { isUUID } from 'class-validator';
import { DataSource } from 'typeorm';
import { transactionOf, type Actor } from '../../platform/database/actor.js';
import { PreparedStatement } from '../../platform/database/prepared-statement.js';
import { grantsTo, IS_CURRENT, toolsOfAll } from '../auth/memberships.access.js';
import type { FoundGrant } from '../auth/access.types.js';
import { keyOf, type TargetName, type TargetRef } from '../targets/target.types.js';
import { callableByAccount } from '../auth/visible-servers.access.js';
import type { GivenGrantRow, GrantedRow, GrantTerms, ListedGrantRow } from './grant.types.js';

export type TargetedGrant = FoundGrant & { targetId: string };

interface Page {
  offset: number;
  limit: number;
}

const places = {
  server: { table: 'servers', column: 'server_id' },
  connection: { table: 'connections', column: 'connection_id' },
  namespace: { table: 'namespaces', column: 'namespace_id' },
} as const;

export type OpeningGrant = TargetedGrant & {
  expiresAt: Date | null;
  /** An account or organization; null for everybody. */
  subject: string | null;
};

/**
 * Returns the SQL of grants that open a target, strongest first.
 *
 * @param account SQL of the id of an account
 * @param target SQL of kind, namespace and key of the target
 */
const opening = (account: string, target: { kind: string; namespace: string; key: string }) =>
  `SELECT g.id, g."ownLevel" AS level, g.tools, t.id AS "targetId", t.namespace_id AS "namespaceId", t.owner_id AS "ownerId",
          g.expires_at AS "expiresAt", (SELECT a.name FROM accounts a WHERE a.id = g.subject_id) AS subject
     FROM targets t JOIN ${grantsTo(account)} g
       ON g.server_id = t.id OR g.connection_id = t.id OR g.namespace_id = t.id OR g.namespace_id = t.namespace_id
    WHERE t.kind = ${target.kind} AND t.namespace = ${target.namespace} AND t.key = ${target.key}
    ORDER BY g."ownLevel" DESC, g.tools IS NULL DESC, g.expires_at DESC, g.id`;
const OPENING = new PreparedStatement<OpeningGrant>(opening('$1::uuid', { kind: '$2', namespace: '$3', key: '$4' }));
const OPENING_EACH = `SELECT a.at, f.* FROM unnest($1::int[], $2::uuid[], $3::text[], $4::text[], $5::text[]) a(at, account, kind, namespace, key)
  CROSS JOIN LATERAL (${opening('a.account', { kind: 'a.kind', namespace: 'a.namespace', key: 'a.key' })}) f`;

interface ServerBehind {
  ownerId: string;
  namespace: string;
  name: string;
}

/** SQL of the current grants of an owner's targets; $1 is the owner. */
const GIVEN = `FROM grants g LEFT JOIN servers s ON s.id = g.server_id LEFT JOIN connections c ON c.id = g.connection_id
         JOIN namespaces n ON n.id = coalesce(s.namespace_id, c.namespace_id, g.namespace_id)
         LEFT JOIN accounts a ON a.id = g.subject_id WHERE n.account_id = $1 AND ${IS_CURRENT}`;

/** SQL that keeps the role of $2 in $1 from changing until the transaction ends. */
const MEMBER = 'SELECT FROM memberships WHERE organization_id = $1 AND account_id = $2 FOR KEY SHARE';

@Injectable()
export class GrantsRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Merges the grants of an account; the result has the id of the strongest one. */
  async find(accountId: string, target: TargetName): Promise<TargetedGrant | null> {
    return mergeGrants(await this.opening(accountId, target));
  }

  /** Finds grants, in the order of the questions. */
  async findAll(questions: { accountId: string; target: TargetName }[]): Promise<(TargetedGrant | null)[]> {
    const rowsOf = questions.map((): OpeningGrant[] => []);
    const rows = await this.database.query<(OpeningGrant & { at: number })[]>(OPENING_EACH, [
      questions.map((_, at) => at),
      questions.map(({ accountId }) => accountId),
      questions.map(({ target }) => target.kind),
      questions.map(({ target }) => target.namespace),
      questions.map(({ target }) => keyOf(target)),
    ]);
    for (const { at, ...row } of rows) rowsOf[at]?.push(row);
    return rowsOf.map(mergeGrants);
  }

  /** Returns the grants that open a target, strongest first. */
  opening(accountId: string, target: TargetName): Promise<OpeningGrant[]> {
    return OPENING.run(this.database, [accountId, target.kind, target.namespace, keyOf(target)]);
  }

  /** Finds servers that the grantee cannot call directly, only through connections of the target. @param subjectId null: everybody */
  serversBehind({ kind, id }: TargetRef, subjectId: string | null): Promise<ServerBehind[]> {
    return this.database.query<ServerBehind[]>(
      `SELECT DISTINCT o.account_id AS "ownerId", o.name AS namespace, concat_ws('/', o.name, nullif(s.name, '')) AS name
         FROM connections c JOIN namespaces n ON n.id = c.namespace_id
         JOIN servers s ON s.id = c.server_id JOIN namespaces o ON o.id = s.namespace_id
        WHERE c.${kind === 'namespace' ? 'namespace_id' : 'id'} = $1 AND o.account_id <> n.account_id
          AND ${callableByAccount('s', '$2::uuid')} IS NOT TRUE`,
      [id, subjectId],
    );
  }

  async findAccount(account: string): Promise<{ id: string; name: string } | null> {
    const [row] = await this.database.query<{ id: string; name: string }[]>(
      'SELECT id, name FROM accounts WHERE id = $1::uuid OR name = $2 ORDER BY id = $1::uuid DESC LIMIT 1',
      [isUUID(account) ? account : null, account],
    );
    return row ?? null;
  }

  /**
   * Stores a grant. `subjectId` null stands for everybody. An expired grant is deleted and created again. With an `organizationId`, only its members can be
   * grantees.
   *
   * @param max number of grants of a target
   * @param within the surrounding transaction
   * @returns `full` at the maximum, `missing` without the target, `outsider` for a non-member
   */
  set(
    actor: Actor,
    { kind, id }: TargetRef,
    {
      subjectId,
      level,
      tools,
      expiresAt,
      organizationId,
    }: GrantTerms & Record<'subjectId' | 'organizationId', string | null>,
    max: number,
    within = this.database.manager,
  ): Promise<{ created: boolean; id: string; createdAt: Date } | 'full' | 'missing' | 'outsider'> {
    const { table, column } = places[kind];
    return transactionOf(within, actor, async (tx) => {
      // Before the target, in the order of removing a member, which revokes its grants.
      if (organizationId !== null && (await tx.query<unknown[]>(MEMBER, [organizationId, subjectId])).length === 0) {
        return 'outsider';
      }
      // Locked, so that two concurrent grants cannot exceed the maximum.
      const locked = await tx.query<unknown[]>(`SELECT 1 FROM ${table} WHERE id = $1 FOR NO KEY UPDATE`, [id]);
      if (locked.length === 0) return 'missing';
      const [[changed]] = await tx.query<[{ id: string; createdAt: Date }[]]>(
        `UPDATE grants g SET level = $3, tools = $4, expires_at = $5
          WHERE g.${column} = $1 AND g.subject_id IS NOT DISTINCT FROM $2::uuid AND ${IS_CURRENT}
         RETURNING g.id, g.created_at AS "createdAt"`,
        [id, subjectId, level, tools, expiresAt],
      );
      if (changed) {
        return { created: false, id: changed.id, createdAt: changed.createdAt };
      }
      // A remaining row has expired. Its client authorizations must not become valid again.
      await tx.query(`DELETE FROM grants WHERE ${column} = $1 AND subject_id IS NOT DISTINCT FROM $2::uuid`, [
        id,
        subjectId,
      ]);
      const [created] = await tx.query<{ id: string; createdAt: Date }[]>(
        `INSERT INTO grants (${column}, subject_id, level, tools, expires_at, created_by)
         SELECT $1, $2, $3, $4, $5, $6 WHERE (SELECT count(*) FROM grants WHERE ${column} = $1) < $7
         RETURNING id, created_at AS "createdAt"`,
        [id, subjectId, level, tools, expiresAt, actor.accountId, max],
      );
      return created ? { created: true, ...created } : 'full';
    });
  }

  /** @param organizationId the grantee must be a member of this organization; null: any */
  delete(
    actor: Actor,
    target: TargetRef,
    id: string,
    organizationId: string | null,
  ): Promise<'deleted' | 'missing' | 'outsider'> {
    const { table, column } = places[target.kind];
    return transactionOf(this.database, actor, async (tx) => {
      // The target is locked first, as when adding and changing grants.
      await tx.query(`SELECT 1 FROM ${table} WHERE id = $1 FOR NO KEY UPDATE`, [target.id]);
      const [grant] = await tx.query<{ isOf: boolean }[]>(
        `SELECT $3::uuid IS NULL OR EXISTS (SELECT FROM memberships m
            WHERE m.organization_id = $3 AND m.account_id = g.subject_id) AS "isOf"
           FROM grants g WHERE g.id = $1 AND g.${column} = $2`,
        [id, target.id, organizationId],
      );
      if (!grant) return 'missing';
      if (!grant.isOf) return 'outsider';
      await tx.query('DELETE FROM grants WHERE id = $1', [id]);
      return 'deleted';
    });
  }

  /** Deletes expired grants, and the client authorizations that they opened. @returns the targets of the grants */
  async deleteExpired(now: Date): Promise<TargetRef[]> {
    const [deleted] = await this.database.query<[TargetRef[]]>(
      `DELETE FROM grants WHERE id IN (SELECT id FROM grants WHERE expires_at <= $1 FOR UPDATE SKIP LOCKED)
       RETURNING CASE WHEN server_id IS NOT NULL THEN 'server' WHEN connection_id IS NOT NULL THEN 'connection'
                      ELSE 'namespace' END AS kind, coalesce(server_id, connection_id, namespace_id) AS id`,
      [now],
    );
    return deleted;
  }

  async count({ kind, id }: TargetRef): Promise<number> {
    const [row] = await this.database.query<[{ count: number }]>(
      `SELECT count(*)::int AS count FROM grants WHERE ${places[kind].column} = $1`,
      [id],
    );
    return row.count;
  }

  list({ kind, id }: TargetRef, { offset, limit }: Page): Promise<ListedGrantRow[]> {
    return this.database.query(
      `SELECT g.id, a.id AS "accountId", a.name AS "accountName", g.level, g.tools, g.expires_at AS "expiresAt",
              g.created_at AS "createdAt", (SELECT o.name FROM accounts o WHERE o.id = g.created_by) AS "grantedBy",
              u.at AS "usedAt", u.client AS "usedClient", u.kind AS "usedKind", u.credential_id AS "usedCredential"
         FROM grants g LEFT JOIN accounts a ON a.id = g.subject_id
         LEFT JOIN last_uses u ON u.account_id = g.subject_id AND u.target_id = $1 WHERE g.${places[kind].column} = $1
        ORDER BY g.created_at DESC, g.id DESC LIMIT $2 OFFSET $3`,
      [id, limit, offset],
    );
  }

  async countGiven(ownerId: string): Promise<number> {
    const [row] = await this.database.query<[{ count: number }]>(`SELECT count(*)::int AS count ${GIVEN}`, [ownerId]);
    return row.count;
  }

  /** Lists the grants of {@link countGiven}, newest first. @param id the only one; null: all */
  listGiven(ownerId: string, { offset, limit }: Page, id: string | null = null): Promise<GivenGrantRow[]> {
    return this.database.query(
      `SELECT g.id, a.id AS "accountId", a.name AS "accountName", g.level, g.tools, g.expires_at AS "expiresAt",
              g.created_at AS "createdAt", (SELECT o.name FROM accounts o WHERE o.id = g.created_by) AS "grantedBy",
              coalesce(g.server_id, g.connection_id, g.namespace_id) AS "targetId",
              n.name AS namespace, s.name AS "serverName", c.connection_id AS "connectionId"
         ${GIVEN} AND ($4::uuid IS NULL OR g.id = $4) ORDER BY g.created_at DESC, g.id DESC LIMIT $2 OFFSET $3`,
      [ownerId, limit, offset, id],
    );
  }

  /** Counts grants to organizations where the account is more than a guest as well. */
  async countReceived(accountId: string): Promise<number> {
    const [row] = await this.database.query<[{ count: number }]>(
      `SELECT count(*)::int AS count FROM ${grantsTo('$1::uuid')} g WHERE g.subject_id IS NOT NULL`,
      [accountId],
    );
    return row.count;
  }

  listReceived(accountId: string, { offset, limit }: Page): Promise<GrantedRow[]> {
    return this.database.query(
      `SELECT g.id, a.id AS "accountId", a.name AS "accountName", g."ownLevel" AS level, g.tools, g.expires_at AS "expiresAt",
              g.created_at AS "createdAt",
              n.name AS namespace, s.name AS "serverName", c.connection_id AS "connectionId"
         FROM ${grantsTo('$1::uuid')} g LEFT JOIN servers s ON s.id = g.server_id LEFT JOIN connections c ON c.id = g.connection_id
         JOIN namespaces n ON n.id = coalesce(s.namespace_id, c.namespace_id, g.namespace_id) JOIN accounts a ON a.id = n.account_id
        WHERE g.subject_id IS NOT NULL
        ORDER BY g.created_at DESC, g.id DESC LIMIT $2 OFFSET $3`,
      [accountId, limit, offset],
    );
  }
}

/** Merges grants, with the id of the strongest one, which is the first. */
function mergeGrants(rows: OpeningGrant[]): TargetedGrant | null {
  const [strongest] = rows;
  return strongest ? { ...strongest, tools: toolsOfAll(rows) } : null;
}
