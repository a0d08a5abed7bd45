import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { ChangeEvent } from './event.types.js';

export interface Delivery extends Omit<ChangeEvent, 'target'> {
  handler: string;
  attempts: number;
  targetId: string;
  targetName: string;
}

@Injectable()
export class EventDeliveriesRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Registers handlers. A handler receives the changes recorded after its first registration. */
  async register(handlers: Map<string, string[]>): Promise<void> {
    for (const [name, actions] of handlers) {
      await this.database.query(
        `INSERT INTO event_handlers (name, actions) VALUES ($1, $2)
         ON CONFLICT (name) DO UPDATE SET actions = excluded.actions, seen_at = now()`,
        [name, actions],
      );
    }
  }

  /** Deletes handlers that no process has registered since a time. */
  async forgetBefore(time: Date): Promise<void> {
    await this.database.query('DELETE FROM event_handlers WHERE seen_at < $1', [time]);
  }

  /**
   * Claims events that are due for a handler, for one minute: only the oldest of each target, which each step of the
   * recursion finds by the index, however many events wait behind it.
   */
  async claim(handler: string, limit: number): Promise<Delivery[]> {
    const [deliveries] = await this.database.query<[Delivery[], number]>(
      `WITH RECURSIVE oldest AS (
         (SELECT target_id, change_id, due_at FROM event_deliveries WHERE handler = $1 AND failed_at IS NULL
           ORDER BY target_id, change_id LIMIT 1)
         UNION ALL
         SELECT next.* FROM oldest, LATERAL (
           SELECT e.target_id, e.change_id, e.due_at FROM event_deliveries e
            WHERE e.handler = $1 AND e.failed_at IS NULL AND e.target_id > oldest.target_id
            ORDER BY e.target_id, e.change_id LIMIT 1) next),
       due AS (
         SELECT change_id FROM event_deliveries
          WHERE handler = $1 AND failed_at IS NULL AND due_at <= now()
            AND change_id = ANY (ARRAY(SELECT change_id FROM oldest WHERE due_at <= now() LIMIT $2))
            FOR UPDATE SKIP LOCKED)
       UPDATE event_deliveries d SET attempts = d.attempts + 1, due_at = now() + interval '1 minute'
         FROM changes c
        WHERE c.id = d.change_id AND d.handler = $1 AND d.change_id = ANY (ARRAY(SELECT change_id FROM due))
       RETURNING d.handler, d.attempts, c.id, c.action AS name, c.created_at AS at, c.account_id AS "accountId",
                 c.actor_id AS "actorId", c.target_id AS "targetId", c.target AS "targetName", c.before, c.after`,
      [handler, limit],
    );
    return deliveries;
  }

  async remove(handler: string, ids: string[]): Promise<void> {
    await this.database.query('DELETE FROM event_deliveries WHERE handler = $1 AND change_id = ANY ($2)', [
      handler,
      ids,
    ]);
  }

  /** Records a failure. @param waitSeconds until the next attempt; null: no further attempt */
  async fail({ id, handler }: Delivery, error: string, waitSeconds: number | null): Promise<void> {
    await this.database.query(
      `UPDATE event_deliveries SET error = $3, failed_at = CASE WHEN $4::float IS NULL THEN now() END,
              due_at = now() + coalesce($4::float, 0) * interval '1 second'
        WHERE change_id = $1 AND handler = $2`,
      [id, handler, error, waitSeconds],
    );
  }
}

/** Lists handlers with failed deliveries, the most deliveries first: `Module.Provider.method (2 events, last error: …)`. */
export async function failedHandlers(database: { query<T>(sql: string): Promise<T> }): Promise<string[]> {
  const rows = await database.query<{ name: string }[]>(
    `SELECT format('%s (%s, last error: %s)', handler, CASE count(*) WHEN 1 THEN '1 event' ELSE count(*) || ' events' END,
                   (array_agg(error ORDER BY failed_at DESC))[1]) AS name
       FROM event_deliveries WHERE failed_at IS NOT NULL GROUP BY handler ORDER BY count(*) DESC LIMIT 20`,
  );
  return rows.map(({ name }) => name);
}
