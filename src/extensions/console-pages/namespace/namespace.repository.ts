import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';

@Injectable()
export class NamespaceRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  async countStates(namespaceId: string): Promise<Map<string, number>> {
    const rows = await this.database.query<{ state: string; count: number }[]>(
      'SELECT status_state AS state, count(*)::int AS count FROM connections WHERE namespace_id = $1 GROUP BY 1',
      [namespaceId],
    );
    return new Map(rows.map(({ state, count }) => [state, count]));
  }

  /** Returns the last calls, without connections that were never called. */
  async lastCalls(namespaceId: string, connectionIds: string[]): Promise<Map<string, Date>> {
    return this.database.transaction(async (tx) => {
      // With the default page cost, Postgres would scan the primary key, past the calls of all others.
      await tx.query(`SELECT set_config('random_page_cost', '1.1', true), set_config('jit', 'off', true)`);
      const rows = await tx.query<{ connectionId: string; at: Date }[]>(
        `SELECT c.connection_id AS "connectionId", newest.at
           FROM connections c CROSS JOIN LATERAL (
             SELECT i.at FROM invocations i WHERE i.connection_id = c.id AND i.call -> 'status' IS NOT NULL
              ORDER BY i.id DESC LIMIT 1) newest
          WHERE c.namespace_id = $1 AND c.connection_id = ANY ($2)`,
        [namespaceId, connectionIds],
      );
      return new Map(rows.map(({ connectionId, at }) => [connectionId, at]));
    });
  }
}
