import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';

export interface ListedProcess {
  id: string;
  roles: string[];
  /** Null if the process does not report it. */
  machine: string | null;
  worker: number | null;
  leaseUntil: Date;
  isLive: boolean;
}

export interface StoredSizes {
  database: number;
  /** Bytes of the log tables, including indexes. */
  logs: number;
  /** Size of the tables of the last days, newest first. */
  logDays: { day: string; bytes: number }[];
  /** Bytes of the files of releases, each counted once. */
  files: number;
  /** The part of `files` from releases of the last 7 days. */
  newFiles: number;
}

export interface Suspended {
  kind: string;
  name: string;
  reason: string | null;
  at: Date | null;
}

const LISTED_MAX = 50;

/** Reads the state of the service, in lists of limited length. */
@Injectable()
export class ServicePageRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  processes(): Promise<ListedProcess[]> {
    return this.database.query(
      `SELECT id, roles, details->>'machine' AS machine, (details->>'worker')::int AS worker, lease_until AS "leaseUntil",
              lease_until > now() AS "isLive"
         FROM processes ORDER BY lease_until DESC LIMIT ${LISTED_MAX}`,
    );
  }

  async sizes(): Promise<StoredSizes> {
    const [sizes] = await this.database.query<[Omit<StoredSizes, 'logDays' | 'logs'>]>(
      `SELECT pg_database_size(current_database())::float8 AS database,
              (SELECT coalesce(sum(bytes), 0)::float8 FROM (SELECT DISTINCT ON (hash) bytes FROM release_artifacts) f) AS files,
              (SELECT coalesce(sum(f.bytes), 0)::float8 FROM releases r JOIN release_artifacts f ON f.release_id = r.id
                WHERE r.created_at > now() - interval '7 days') AS "newFiles"`,
    );
    const days = await this.database.query<StoredSizes['logDays']>(
      `SELECT to_char(to_date(right(relname, 8), 'YYYYMMDD'), 'YYYY-MM-DD') AS day, pg_total_relation_size(oid)::float8 AS bytes
         FROM pg_class WHERE relname ~ '^invocations_[0-9]{8}$' AND relkind = 'r' AND pg_table_is_visible(oid)
        ORDER BY 1 DESC`,
    );
    const logs = days.reduce((sum, { bytes }) => sum + bytes, 0);
    const today = new Date().toISOString().slice(0, 10);
    return { ...sizes, logs, logDays: days.filter(({ day }) => day <= today).slice(0, 7) };
  }

  /** Returns the ten accounts that wrote the most log today, then those that own the most connections and servers. */
  busiestAccounts(): Promise<{ id: string; name: string }[]> {
    return this.database.query(
      `SELECT a.id, a.name FROM accounts a
         LEFT JOIN account_log_days d ON d.account_id = a.id AND d.day = (now() AT TIME ZONE 'UTC')::date
         LEFT JOIN (SELECT n.account_id, sum(t.owned) AS owned
                      FROM (SELECT namespace_id, count(*) AS owned FROM connections GROUP BY 1
                             UNION ALL SELECT namespace_id, count(*) FROM servers GROUP BY 1) t
                      JOIN namespaces n ON n.id = t.namespace_id GROUP BY 1) o ON o.account_id = a.id
        ORDER BY coalesce(d.bytes, 0) DESC, coalesce(o.owned, 0) DESC, a.created_at LIMIT 10`,
    );
  }

  suspended(): Promise<Suspended[]> {
    return this.database.query(
      `SELECT 'account' AS kind, name, credentials_suspended_for AS reason, credentials_suspended_at AS at
         FROM accounts WHERE credentials_suspended_at IS NOT NULL
        UNION ALL SELECT 'namespace', name, suspended->>'reason', (suspended->>'at')::timestamptz
         FROM namespaces WHERE suspended IS NOT NULL
        UNION ALL SELECT 'server', concat_ws('/', n.name, nullif(s.name, '')), s.suspended->>'reason', (s.suspended->>'at')::timestamptz
         FROM servers s JOIN namespaces n ON n.id = s.namespace_id WHERE s.suspended IS NOT NULL
        UNION ALL SELECT 'connection', n.name || '/' || c.connection_id, c.suspended->>'reason', (c.suspended->>'at')::timestamptz
         FROM connections c JOIN namespaces n ON n.id = c.namespace_id WHERE c.suspended IS NOT NULL
        ORDER BY at DESC NULLS LAST LIMIT ${LISTED_MAX}`,
    );
  }
}
