import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { isUUID } from 'class-validator';
import { DataSource, type EntityManager } from 'typeorm';
import { PreparedStatement } from '../../platform/database/prepared-statement.js';
import type { FoundGrant, GrantedThing, GrantLevel } from '../auth/access.types.js';
import type { GrantedRow, GrantRow, GrantTarget } from './grant.types.js';

/** A grant that was found, with the id of the row that it is of. */
export type TargetedGrant = FoundGrant & { targetId: string };

/** A page of rows. */
interface Page {
  offset: number;
  limit: number;
}

/** Table of a kind of target, and the column of `grants` that refers to it. */
const places = {
  server: { table: 'servers', column: 'server_id' },
  connection: { table: 'connections', column: 'connection_id' },
} as const;

const found = (target: string) =>
  new PreparedStatement<TargetedGrant>(
    `SELECT g.id, g.level, t.id AS "targetId", n.id AS "namespaceId", n.account_id AS "ownerId"
       FROM namespaces n JOIN ${target} WHERE n.name = $2 AND g.subject_id = $1`,
  );
const FIND = {
  server: found('servers t ON t.namespace_id = n.id AND lower(t.name) = lower($3) JOIN grants g ON g.server_id = t.id'),
  connection: found(
    'connections t ON t.namespace_id = n.id AND t.connection_id = $3 JOIN grants g ON g.connection_id = t.id',
  ),
};

/** SQL on the table `grants`. */
@Injectable()
export class GrantsRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** The grant of a thing for an account; null when there is none. */
  find(accountId: string, { kind, namespace, name }: GrantedThing): Promise<TargetedGrant | null> {
    return FIND[kind].findOne(this.database, [accountId, namespace, name]);
  }

  /** The levels of those of these grants that exist, by id. */
  async levelsOf(ids: string[]): Promise<Map<string, string>> {
    const rows = await this.database.query<{ id: string; level: string }[]>(
      'SELECT id, level FROM grants WHERE id = ANY($1::uuid[])',
      [ids],
    );
    return new Map(rows.map(({ id, level }) => [id, level]));
  }

  /** The id of the row of a connection; null when there is none. */
  async findConnection(namespaceId: string, connectionId: string): Promise<string | null> {
    const [row] = await this.database.query<{ id: string }[]>(
      'SELECT id FROM connections WHERE namespace_id = $1 AND connection_id = $2',
      [namespaceId, connectionId],
    );
    return row?.id ?? null;
  }

  /** The account of this id, or of this name; null when there is none. */
  async findAccount(account: string): Promise<{ id: string; name: string } | null> {
    const [row] = await this.database.query<{ id: string; name: string }[]>(
      'SELECT id, name FROM accounts WHERE id = $1::uuid OR name = $2 ORDER BY id = $1::uuid DESC LIMIT 1',
      [isUUID(account) ? account : null, account],
    );
    return row ?? null;
  }

  /**
   * Grants a target to an account, or changes the level that it was granted at, which ends the setup links of the target.
   *
   * @param max number of grants that a target may have
   * @returns `full` when it has them, `missing` when there is no such target
   */
  set(
    { kind, id }: GrantTarget,
    { subjectId, level, createdBy }: { subjectId: string; level: GrantLevel; createdBy: string },
    max: number,
  ): Promise<{ created: boolean; id: string; createdAt: Date } | 'full' | 'missing'> {
    const { table, column } = places[kind];
    return this.database.transaction(async (tx) => {
      // Locked, so that two grants at the same moment cannot pass the maximum.
      const locked = await tx.query<unknown[]>(`SELECT 1 FROM ${table} WHERE id = $1 FOR NO KEY UPDATE`, [id]);
      if (locked.length === 0) return 'missing';
      const [[changed]] = await tx.query<[{ id: string; createdAt: Date; isNew: boolean }[]]>(
        `UPDATE grants g SET level = $3 FROM grants before
          WHERE g.${column} = $1 AND g.subject_id = $2 AND before.id = g.id
         RETURNING g.id, g.created_at AS "createdAt", before.level <> $3 AS "isNew"`,
        [id, subjectId, level],
      );
      if (changed) {
        if (changed.isNew) await endSetup(tx, { kind, id });
        return { created: false, id: changed.id, createdAt: changed.createdAt };
      }
      const [created] = await tx.query<{ id: string; createdAt: Date }[]>(
        `INSERT INTO grants (${column}, subject_id, level, created_by)
         SELECT $1, $2, $3, $4 WHERE (SELECT count(*) FROM grants WHERE ${column} = $1) < $5
         RETURNING id, created_at AS "createdAt"`,
        [id, subjectId, level, createdBy, max],
      );
      return created ? { created: true, ...created } : 'full';
    });
  }

  /** Deletes a grant of a target, and ends the setup links of the target. @returns false when there is none of this id */
  delete(target: GrantTarget, id: string): Promise<boolean> {
    const { table, column } = places[target.kind];
    return this.database.transaction(async (tx) => {
      // Locked first, as by what adds and changes grants.
      await tx.query(`SELECT 1 FROM ${table} WHERE id = $1 FOR NO KEY UPDATE`, [target.id]);
      const [deleted] = await tx.query<[unknown[]]>(
        `DELETE FROM grants WHERE id = $1 AND ${column} = $2 RETURNING id`,
        [id, target.id],
      );
      if (deleted.length > 0) await endSetup(tx, target);
      return deleted.length > 0;
    });
  }

  async count({ kind, id }: GrantTarget): Promise<number> {
    return this.countWhere(places[kind].column, id);
  }

  /** Grants of a target, newest first. */
  list({ kind, id }: GrantTarget, { offset, limit }: Page): Promise<GrantRow[]> {
    return this.database.query(
      `SELECT g.id, a.id AS "accountId", a.name AS "accountName", g.level, g.created_at AS "createdAt"
         FROM grants g JOIN accounts a ON a.id = g.subject_id WHERE g.${places[kind].column} = $1
        ORDER BY g.created_at DESC, g.id DESC LIMIT $2 OFFSET $3`,
      [id, limit, offset],
    );
  }

  countReceived(accountId: string): Promise<number> {
    return this.countWhere('subject_id', accountId);
  }

  /** Grants for an account, newest first. */
  listReceived(accountId: string, { offset, limit }: Page): Promise<GrantedRow[]> {
    return this.database.query(
      `SELECT g.id, a.id AS "accountId", a.name AS "accountName", g.level, g.created_at AS "createdAt",
              n.name AS namespace, s.name AS "serverName", c.connection_id AS "connectionId"
         FROM grants g LEFT JOIN servers s ON s.id = g.server_id LEFT JOIN connections c ON c.id = g.connection_id
         JOIN namespaces n ON n.id = coalesce(s.namespace_id, c.namespace_id) JOIN accounts a ON a.id = n.account_id
        WHERE g.subject_id = $1 ORDER BY g.created_at DESC, g.id DESC LIMIT $2 OFFSET $3`,
      [accountId, limit, offset],
    );
  }

  private async countWhere(column: string, id: string): Promise<number> {
    const [row] = await this.database.query<{ count: number }[]>(
      `SELECT count(*)::int AS count FROM grants WHERE ${column} = $1`,
      [id],
    );
    return row?.count ?? 0;
  }
}

/** Ends the setup links of a target, and the authorizations that began with them. */
async function endSetup(tx: EntityManager, { kind, id }: GrantTarget): Promise<void> {
  if (kind === 'connection') await tx.query('UPDATE connections SET setup_epoch = setup_epoch + 1 WHERE id = $1', [id]);
  await tx.query(
    `UPDATE pending_authorizations SET completed_at = now(), state_hash = NULL, sealed_verifier = NULL
      WHERE id IN (SELECT id FROM pending_authorizations WHERE owner_kind = $1 AND owner_id = $2 AND completed_at IS NULL
                    ORDER BY id FOR UPDATE)`,
    [kind, id],
  );
}
