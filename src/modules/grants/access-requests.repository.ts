import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import type { AccessRequestRow } from './access-request.dto.js';

const ROWS = `SELECT r.id, r.account_id AS "accountId", a.name AS "accountName", n.name AS namespace, s.name, r.text, r.answer,
       r.created_at AS "createdAt", r.decided_at AS "decidedAt"
  FROM access_requests r JOIN accounts a ON a.id = r.account_id
  JOIN servers s ON s.id = r.server_id JOIN namespaces n ON n.id = s.namespace_id`;

/** Requests of a server, of a requester, or for a decider: an owner or editor. */
export type RequestsOf = { serverId: string; isOpen?: boolean } | { accountId: string } | { deciderId: string };

function conditionOf(of: RequestsOf): [condition: string, id: string] {
  if ('serverId' in of) return [`r.server_id = $1${of.isOpen ? ' AND r.decided_at IS NULL' : ''}`, of.serverId];
  if ('accountId' in of) return ['r.account_id = $1', of.accountId];
  const owned = `SELECT s.id FROM namespaces n JOIN servers s ON s.namespace_id = n.id WHERE n.account_id`;
  return [
    `r.decided_at IS NULL AND r.server_id IN (${owned} = $1 UNION ALL ${owned} IN (
       SELECT m.organization_id FROM memberships m JOIN accounts o ON o.id = m.organization_id AND o.disabled_at IS NULL
        WHERE m.account_id = $1 AND m.role IN ('owner', 'editor')))`,
    of.deciderId,
  ];
}

@Injectable()
export class AccessRequestsRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /**
   * Returns the open request of this account and server if there is one.
   *
   * @param max requests of an account within a day
   * @returns null when the account has reached the maximum
   * @throws QueryFailedError (23503) when the server was deleted meanwhile
   */
  openRequest(
    accountId: string,
    serverId: string,
    text: string,
    max: number,
  ): Promise<{ id: string; created: boolean } | null> {
    return this.database.transaction(async (tx) => {
      // Locked, so that two concurrent requests count each other.
      await tx.query('SELECT 1 FROM accounts WHERE id = $1 FOR NO KEY UPDATE', [accountId]);
      const [open] = await tx.query<{ id: string }[]>(
        'SELECT id FROM access_requests WHERE account_id = $1 AND server_id = $2 AND decided_at IS NULL',
        [accountId, serverId],
      );
      if (open) return { id: open.id, created: false };
      const [newRequest] = await tx.query<{ id: string }[]>(
        `INSERT INTO access_requests (account_id, server_id, text) SELECT $1, $2, $3
          WHERE (SELECT count(*) FROM access_requests
                  WHERE account_id = $1 AND created_at > now() - interval '1 day') < $4 RETURNING id`,
        [accountId, serverId, text, max],
      );
      return newRequest ? { id: newRequest.id, created: true } : null;
    });
  }

  async find(id: string, serverId: string): Promise<AccessRequestRow | null> {
    const [row] = await this.database.query<AccessRequestRow[]>(`${ROWS} WHERE r.id = $1 AND r.server_id = $2`, [
      id,
      serverId,
    ]);
    return row ?? null;
  }

  async count(of: RequestsOf): Promise<number> {
    const [condition, id] = conditionOf(of);
    const [row] = await this.database.query<{ count: number }[]>(
      `SELECT count(*)::int AS count FROM access_requests r WHERE ${condition}`,
      [id],
    );
    return row?.count ?? 0;
  }

  list(of: RequestsOf, { offset, limit }: { offset: number; limit: number }): Promise<AccessRequestRow[]> {
    const [condition, id] = conditionOf(of);
    return this.database.query(`${ROWS} WHERE ${condition} ORDER BY r.created_at DESC, r.id DESC LIMIT $2 OFFSET $3`, [
      id,
      limit,
      offset,
    ]);
  }

  /**
   * @param answer the reason of a rejection; null for a grant
   * @returns false when the request was decided or deleted meanwhile
   */
  async decide(
    id: string,
    { decidedBy, answer, grantId }: { decidedBy: string; answer: string | null; grantId: string | null },
    tx: EntityManager,
  ): Promise<boolean> {
    const [rows] = await tx.query<[unknown[]]>(
      `UPDATE access_requests SET decided_at = now(), decided_by = $2, answer = $3, grant_id = $4
        WHERE id = $1 AND decided_at IS NULL RETURNING id`,
      [id, decidedBy, answer, grantId],
    );
    return rows.length > 0;
  }

  async deleteOld(now: Date): Promise<void> {
    await this.database.query(`DELETE FROM access_requests WHERE created_at < $1::timestamptz - interval '30 days'`, [
      now,
    ]);
  }
}
