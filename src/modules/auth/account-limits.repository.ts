import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { AccountLimitName, AccountLimits } from '../../config/account-limits.js';
import { OVERRIDES } from './account-limits.access.js';

/**
 * The account of `$1`: an account itself, or the owner of a namespace, release or connection. Tables of modules that import
 * this one are named in SQL instead of imported, here and in {@link counts}.
 */
const accountOf = {
  accountId: 'SELECT $1::uuid',
  namespaceId: 'SELECT account_id FROM namespaces WHERE id = $1',
  releaseId: `SELECT n.account_id FROM releases r JOIN servers s ON s.id = r.server_id
    JOIN namespaces n ON n.id = s.namespace_id WHERE r.id = $1`,
  connectionId: 'SELECT n.account_id FROM connections c JOIN namespaces n ON n.id = c.namespace_id WHERE c.id = $1',
} as const;

type OwnerKind = keyof typeof accountOf;

/** The account that a quota is of: named, or the owner of something. */
export type QuotaOwner = { [Kind in OwnerKind]: Record<Kind, string> }[OwnerKind];

/** Limits of an account that differ from the defaults, and what it has stored. */
export interface StoredUsage {
  accountId: string;
  overrides: Partial<AccountLimits> | null;
  used: Partial<AccountLimits>;
}

/** Rows of a table that lies in namespaces. */
const inNamespaces = (table: string) =>
  `SELECT count(*) FROM namespaces n JOIN ${table} held ON held.namespace_id = n.id WHERE n.account_id = a.id`;

const inNamespace = (table: string) => `SELECT count(*) FROM ${table} held WHERE held.namespace_id = $1`;

const RELEASES = 'namespaces n JOIN servers s ON s.namespace_id = n.id JOIN releases r ON r.server_id = s.id';

/**
 * Counts for each quota, of account `a` or of namespace `$1`. A file that several releases share counts once. Programs are
 * those of the process that runs the most, by its last heartbeat.
 */
const counts = {
  namespaces: 'SELECT count(*) FROM namespaces n WHERE n.account_id = a.id',
  apiKeys: 'SELECT count(*) FROM api_keys k WHERE k.account_id = a.id',
  servers: inNamespaces('servers'),
  serversPerNamespace: inNamespace('servers'),
  releases: `SELECT count(*) FROM ${RELEASES} WHERE n.account_id = a.id`,
  artifactBytes: `SELECT coalesce(sum(bytes), 0) FROM (SELECT DISTINCT f.hash, f.bytes FROM ${RELEASES}
    JOIN release_artifacts f ON f.release_id = r.id WHERE n.account_id = a.id) AS files`,
  connections: inNamespaces('connections'),
  connectionsPerNamespace: inNamespace('connections'),
  skills: inNamespaces('skills'),
  skillsPerNamespace: inNamespace('skills'),
  skillBytes: `SELECT coalesce(sum(octet_length(f.content)), 0) FROM namespaces n JOIN skills s ON s.namespace_id = n.id
    JOIN skill_files f ON f.skill_id = s.id WHERE n.account_id = a.id`,
  logBytesPerDay: `SELECT coalesce(sum(d.bytes), 0) FROM account_log_days d
    WHERE d.account_id = a.id AND d.day = (now() AT TIME ZONE 'UTC')::date`,
  livePrograms: `SELECT coalesce(max((p.details->'livePrograms'->>a.id::text)::int), 0) FROM processes p
    WHERE p.lease_until > now()`,
} as const satisfies Partial<Record<AccountLimitName, string>>;

const LOG_BYTES_TODAY = `SELECT coalesce(sum(bytes), 0)::float8 AS bytes FROM account_log_days
  WHERE day = (now() AT TIME ZONE 'UTC')::date`;

/** A limit of what is stored. */
export type QuotaName = keyof typeof counts;

/** The limits of what an account stores in all. */
export const accountQuotas = (Object.keys(counts) as QuotaName[]).filter((name) => !name.endsWith('PerNamespace'));

/** Reads what accounts store, and reads and writes their own limits. */
@Injectable()
export class AccountLimitsRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Counts these quotas of an account. @returns null when there is no such account or owned thing */
  async usage(owner: QuotaOwner, names: readonly QuotaName[]): Promise<StoredUsage | null> {
    const [[kind, id]] = Object.entries(owner) as [[OwnerKind, string]];
    const columns = names.map((name) => `, (${counts[name]})::float8 AS "${name}"`).join('');
    const [row] = await this.database.query<
      ({ accountId: string; overrides: Partial<AccountLimits> | null } & object)[]
    >(
      `SELECT a.id AS "accountId", ${OVERRIDES} ${columns}
         FROM accounts a
        WHERE a.id = (${accountOf[kind]})`,
      [id],
    );
    if (!row) return null;
    const { accountId, overrides, ...used } = row;
    return { accountId, overrides, used };
  }

  /** Bytes of logs that all accounts have written today. */
  async logBytesToday(): Promise<number> {
    const [{ bytes }] = await this.database.query<[{ bytes: number }]>(LOG_BYTES_TODAY);
    return bytes;
  }

  /** Sets limits of an account; null returns one to its default. */
  async set(accountId: string, changes: Partial<Record<AccountLimitName, number | null>>): Promise<void> {
    const names = Object.keys(changes);
    await this.database.query(
      `WITH change AS (SELECT * FROM unnest($2::text[], $3::bigint[]) AS change(name, value)),
            reset AS (DELETE FROM account_limits l USING change c
                       WHERE l.account_id = $1 AND l.name = c.name AND c.value IS NULL)
       INSERT INTO account_limits SELECT $1, name, value FROM change WHERE value IS NOT NULL
           ON CONFLICT (account_id, name) DO UPDATE SET value = excluded.value`,
      [accountId, names, Object.values(changes)],
    );
  }
}
