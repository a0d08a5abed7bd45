import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { ChangeEvent } from './event.types.js';

/** An event for one handler, in its n-th attempt. */
export interface Delivery extends Omit<ChangeEvent, 'target'> {
  handler: string;
  attempts: number;
  targetId: string;
  targetName: string;
}

/** Handlers of events, and their deliveries that are still open. */
@Injectable()
export class EventDeliveriesRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Registers handlers. They receive the changes that are recorded from their first registration on. */
  async register(handlers: Map<string, string[]>): Promise<void> {
    for (const [name, actions] of handlers) {
      await this.database.query(
        `INSERT INTO event_handlers (name, actions) VALUES ($1, $2)
         ON CONFLICT (name) DO UPDATE SET actions = excluded.actions, seen_at = now()`,
        [name, actions],
      );
    }
  }

  /** Deletes handlers that no process has registered since a time, and their deliveries. */
  async forgetBefore(time: Date): Promise<void> {
    await this.database.query('DELETE FROM event_handlers WHERE seen_at < $1', [time]);
  }

  /**
   * Claims the oldest events that are due for a handler, for one minute. An event is claimed after all earlier events of its
   * target.
   */
  async claim(handler: string, limit: number): Promise<Delivery[]> {
    const [deliveries] = await this.database.query<[Delivery[], number]>(
      `UPDATE event_deliveries d SET attempts = d.attempts + 1, due_at = now() + interval '1 minute'
         FROM changes c
        WHERE c.id = d.change_id AND d.handler = $1 AND d.change_id = ANY (ARRAY(
          SELECT w.change_id FROM event_deliveries w
           WHERE w.handler = $1 AND w.failed_at IS NULL AND w.due_at <= now()
             AND w.change_id = (SELECT min(e.change_id) FROM event_deliveries e
                                 WHERE e.handler = $1 AND e.target_id = w.target_id AND e.failed_at IS NULL)
           ORDER BY w.change_id LIMIT $2 FOR UPDATE SKIP LOCKED))
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

  /** Records a failure. @param waitSeconds until the next attempt; null: there is none */
  async fail({ id, handler }: Delivery, error: string, waitSeconds: number | null): Promise<void> {
    await this.database.query(
      `UPDATE event_deliveries SET error = $3, failed_at = CASE WHEN $4::float IS NULL THEN now() END,
              due_at = now() + coalesce($4::float, 0) * interval '1 second'
        WHERE change_id = $1 AND handler = $2`,
      [id, handler, error, waitSeconds],
    );
  }
}

/** Handlers with deliveries that were given up, most first: `Module.Provider.method (2 events, last error: …)`. */
export async function failedHandlers(database: { query<T>(sql: string): Promise<T> }): Promise<string[]> {
  const rows = await database.query<{ name: string }[]>(
    `SELECT format('%s (%s, last error: %s)', handler, CASE count(*) WHEN 1 THEN '1 event' ELSE count(*) || ' events' END,
                   (array_agg(error ORDER BY failed_at DESC))[1]) AS name
       FROM event_deliveries WHERE failed_at IS NOT NULL GROUP BY handler ORDER BY count(*) DESC LIMIT 20`,
  );
  return rows.map(({ name }) => name);
}
