import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';

/** Names of a target or connection for an operator, for a log line. */
export interface LogNames {
  /** Qualified name of a server. */
  server?: string;
  /** `namespace/connectionId`. */
  connection?: string;
  account?: string;
}

/** The tables are `servers s` and `namespaces n`. */
export const SERVER_NAMES = `concat_ws('/', n.name, NULLIF(s.name, '')) AS server, n.account_id AS account`;

const queries = {
  release: `SELECT ${SERVER_NAMES} FROM releases r JOIN servers s ON s.id = r.server_id
              JOIN namespaces n ON n.id = s.namespace_id WHERE r.id = $1`,
  server: `SELECT ${SERVER_NAMES} FROM servers s JOIN namespaces n ON n.id = s.namespace_id WHERE s.id = $1`,
  connection: `SELECT n.name || '/' || c.connection_id AS connection, n.account_id AS account
                 FROM connections c JOIN namespaces n ON n.id = c.namespace_id WHERE c.id = $1`,
};

/** Names of releases, servers and connections for log lines. */
@Injectable()
export class LogNamesRepository {
  /**
   * Returns names for a rare log line, by one query; none when the row no longer exists or the database does not respond. Never
   * rejects. Static, since services of any module log.
   */
  static async find(database: Pick<EntityManager, 'query'>, kind: keyof typeof queries, id: string): Promise<LogNames> {
    const rows = await database.query<LogNames[]>(queries[kind], [id]).catch(() => []);
    return rows[0] ?? {};
  }
}
