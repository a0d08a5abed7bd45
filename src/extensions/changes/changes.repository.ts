import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';

export interface ChangeRow {
  id: string;
  createdAt: Date;
  action: string;
  targetId: string;
  target: string;
  accountId: string;
  actorId: string | null;
  actorName: string | null;
  credentialId: string | null;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

export interface EndedAccess {
  endedAt: Date;
  target: string | null;
  owner: string;
}

/** Filter of changes. A null field does not restrict the result. */
export interface ChangeFilter {
  since: Date | null;
  actor: string | null;
  credential: string | null;
  target: string | null;
  beforeId: string | null;
}

const MATCHES = `NOT is_fact AND ($2::timestamptz IS NULL OR created_at >= $2)
  AND ($3::text IS NULL OR actor_id IN (SELECT a.id FROM accounts a WHERE a.id::text = $3 OR a.name = $3))
  AND ($4::uuid IS NULL OR credential_id = $4)
  AND ($5::text IS NULL OR target_id::text = $5 OR target = $5)
  AND ($6::bigint IS NULL OR (created_at, id) < (SELECT last.created_at, last.id FROM changes last WHERE last.id = $6))`;

@Injectable()
export class ChangesRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  find(
    accountId: string,
    { since, actor, credential, target, beforeId }: ChangeFilter,
    limit: number,
  ): Promise<ChangeRow[]> {
    const part = (column: string) =>
      `(SELECT * FROM changes WHERE ${column} = $1 AND ${MATCHES} ORDER BY created_at DESC, id DESC LIMIT $7)`;
    return this.database.query(
      `SELECT c.id, c.created_at AS "createdAt", c.action, c.target_id AS "targetId", c.target, c.account_id AS "accountId",
              c.actor_id AS "actorId", a.name AS "actorName", c.credential_id AS "credentialId", c.before, c.after
         FROM (${part('account_id')} UNION ${part('actor_id')}) c LEFT JOIN accounts a ON a.id = c.actor_id
        ORDER BY c.created_at DESC, c.id DESC LIMIT $7`,
      [accountId, since, actor, credential, target, beforeId, limit],
    );
  }

  /**
   * Finds access and memberships of an account that others revoked in the last 14 days and that it has not regained,
   * newest first, at most 20.
   */
  findEnded(accountId: string): Promise<EndedAccess[]> {
    return this.database.query(
      `SELECT c.created_at AS "endedAt", CASE c.action WHEN 'grant.deleted' THEN c.target END AS target, a.name AS owner
         FROM changes c JOIN accounts a ON a.id = c.account_id
        WHERE c.action IN ('grant.deleted', 'member.deleted') AND coalesce(c.before->>'accountId', c.target_id::text) = $1
          AND c.created_at > now() - interval '14 days' AND c.actor_id IS DISTINCT FROM $1::uuid AND c.account_id <> $1::uuid
          AND NOT EXISTS (SELECT FROM changes later WHERE later.account_id = c.account_id AND later.created_at >= c.created_at AND later.id > c.id
            AND NOT later.is_fact AND later.target = c.target AND later.action = replace(c.action, 'deleted', 'created')
            AND coalesce(later.after->>'accountId', later.target_id::text) = $1)
        ORDER BY c.created_at DESC, c.id DESC LIMIT 20`,
      [accountId],
    );
  }

  /** Deletes changes recorded before a time, among the oldest 10,000. @returns the number deleted */
  deleteBefore(time: Date): Promise<number> {
    return this.delete('created_at < $1 AND id = ANY (ARRAY(SELECT id FROM changes ORDER BY id LIMIT 10000))', time);
  }

  /** Deletes at most 10,000 facts recorded before a time. @returns the number deleted */
  deleteFactsBefore(time: Date): Promise<number> {
    const old = 'SELECT id FROM changes WHERE is_fact AND created_at < $1 LIMIT 10000';
    return this.delete(`id = ANY (ARRAY(${old}))`, time);
  }

  private async delete(condition: string, time: Date): Promise<number> {
    const [, deleted] = await this.database.query<[unknown, number]>(`DELETE FROM changes WHERE ${condition}`, [time]);
    return deleted;
  }
}
