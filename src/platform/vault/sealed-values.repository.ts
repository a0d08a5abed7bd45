import type { DataSource } from 'typeorm';
import { StartError } from '../../config/env.js';
import { maskedQuery } from './masked-url.js';
import { VaultError, type Vault } from './vault.js';

/** A column of sealed values. */
interface SealedColumn {
  table: string;
  column: string;
  /** SQL of the owner, as the value was sealed for it. */
  owner: string;
  /** A column with the keyed hash of the value. */
  hash?: string;
}

/** Every column of sealed values. A test compares them with the tables. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { table: 'connections', column: 'sealed_headers', owner: 'id' },
  { table: 'connections', column: 'sealed_query', owner: 'id' },
  { table: 'connections', column: 'sealed_url', owner: 'id', hash: 'mcp_url_hash' },
  { table: 'releases', column: 'sealed_scan_credentials', owner: 'id' },
  { table: 'releases', column: 'sealed_upstream_url', owner: 'id' },
  { table: 'server_secrets', column: 'sealed_value', owner: 'id' },
  { table: 'oauth_clients', column: 'sealed_secret', owner: 'id' },
  { table: 'pending_authorizations', column: 'sealed_verifier', owner: 'id' },
  { table: 'upstream_credentials', column: 'sealed_tokens', owner: 'id' },
  {
    table: 'server_rescans',
    column: 'sealed_credentials',
    owner: '(SELECT s.current_release_id FROM servers s WHERE s.id = server_id)',
  },
  { table: 'recorded_calls', column: 'sealed', owner: 'connection_id' },
  { table: 'mock_replies', column: 'sealed', owner: 'connection_id' },
  { table: 'mock_calls', column: 'sealed', owner: 'connection_id' },
];

/** Columns of URLs, of which those with a query were once stored in clear. */
const URL_COLUMNS = [
  { table: 'connections', url: 'mcp_url', sealed: 'sealed_url', hash: 'mcp_url_hash', where: "target_kind = 'url'" },
  { table: 'releases', url: 'upstream_url', sealed: 'sealed_upstream_url', hash: null, where: 'true' },
];

/** Rows that one query reads. */
const BATCH = 500;

/** The id of the key that sealed a value, at most 64 characters: only the begin of a long value is read. */
const keyOf = (column: string) => `split_part(left(${column}, 65), '.', 1)`;

/** Sealed values by key. */
export interface KeyUse {
  keyId: string;
  /** Values by `table.column`. */
  counts: Record<string, number>;
}

/** The result of a pass over all sealed values. */
export interface SealedReport {
  /** Values that open. */
  opened: number;
  /** Values that were sealed anew. */
  rotated: number;
  /** Values that do not open, by `table.column`. */
  broken: Record<string, number>;
}

/** Counts the sealed values by the key that sealed them. Reads every table that has some. */
export async function keyUses(database: Pick<DataSource, 'query'>): Promise<KeyUse[]> {
  const uses = new Map<string, Record<string, number>>();
  for (const { table, column } of SEALED_COLUMNS) {
    const rows = await database.query<{ keyId: string; count: number }[]>(
      `SELECT ${keyOf(column)} AS "keyId", count(*)::int AS count FROM ${table} WHERE ${column} IS NOT NULL GROUP BY 1`,
    );
    for (const { keyId, count } of rows) uses.set(keyId, { ...uses.get(keyId), [`${table}.${column}`]: count });
  }
  return [...uses].map(([keyId, counts]) => ({ keyId, counts }));
}

/**
 * Refuses keys that cannot open what is stored: each key that sealed a value must be there, and open one value of each
 * column.
 *
 * @throws StartError naming the keys and the number of their values
 */
export async function requireKeys(database: Pick<DataSource, 'query'>, vault: Vault): Promise<void> {
  const faults: string[] = [];
  for (const { keyId, counts } of await keyUses(database)) {
    const count = Object.values(counts).reduce((sum, some) => sum + some, 0);
    const stored = `${count} stored ${count === 1 ? 'value' : 'values'} (${Object.keys(counts).join(', ')})`;
    if (!vault.has(keyId)) faults.push(`ENCRYPTION_KEYS lacks the key "${keyId}", which sealed ${stored}.`);
    else if (!(await opensSamples(database, vault, keyId, counts))) {
      faults.push(`ENCRYPTION_KEYS has another key under the name "${keyId}" than the one that sealed ${stored}.`);
    }
  }
  if (faults.length === 0) return;
  throw new StartError(`${faults.join('\n')}\nRestore the keys: without them these values are lost.`);
}

async function opensSamples(
  database: Pick<DataSource, 'query'>,
  vault: Vault,
  keyId: string,
  counts: Record<string, number>,
): Promise<boolean> {
  for (const { table, column, owner } of SEALED_COLUMNS) {
    if (!(`${table}.${column}` in counts)) continue;
    const [row] = await database.query<{ owner: string | null; sealed: string }[]>(
      `SELECT ${owner}::text AS owner, ${column} AS sealed FROM ${table} WHERE ${keyOf(column)} = $1 LIMIT 1`,
      [keyId],
    );
    if (row && !vault.unwraps(row.sealed)) return false;
  }
  return true;
}

/** Opens every sealed value. */
export function verifySealed(database: Pick<DataSource, 'query'>, vault: Vault): Promise<SealedReport> {
  return pass(database, vault, false);
}

/**
 * Seals every value with the first key that another key sealed, and the URLs that are still stored in clear. Can run
 * beside the service and again after it broke off: a value that changes meanwhile is left to its writer, who uses the
 * first key.
 */
export async function rotateSealed(database: Pick<DataSource, 'query'>, vault: Vault): Promise<SealedReport> {
  const sealed = await sealClearUrls(database, vault);
  const report = await pass(database, vault, true);
  return { ...report, rotated: report.rotated + sealed };
}

async function pass(database: Pick<DataSource, 'query'>, vault: Vault, rotates: boolean): Promise<SealedReport> {
  const report: SealedReport = { opened: 0, rotated: 0, broken: {} };
  for (const column of SEALED_COLUMNS) await passColumn(database, vault, column, rotates, report);
  return report;
}

/** Reads a column in the order of its rows on disk. Rows that are written meanwhile move behind. */
async function passColumn(
  database: Pick<DataSource, 'query'>,
  vault: Vault,
  { table, column, owner, hash }: SealedColumn,
  rotates: boolean,
  report: SealedReport,
): Promise<void> {
  const which = rotates ? `AND ${keyOf(column)} <> $2` : 'AND $2::text IS NOT NULL';
  for (let after = '(0,0)'; ;) {
    const rows = await database.query<{ place: string; owner: string | null; sealed: string }[]>(
      `SELECT ctid::text AS place, ${owner}::text AS owner, ${column} AS sealed FROM ${table}
        WHERE ctid > $1::tid AND ${column} IS NOT NULL ${which} LIMIT ${BATCH}`,
      [after, vault.writerId],
    );
    const fresh: { place: string; old: string; sealed: string; hash: string }[] = [];
    for (const { place, owner: sealedFor, sealed } of rows) {
      try {
        const text = vault.open(sealed, sealedFor ?? '');
        report.opened += 1;
        if (rotates)
          fresh.push({ place, old: sealed, sealed: vault.seal(text, sealedFor ?? ''), hash: vault.hash(text) });
      } catch (error) {
        if (!(error instanceof VaultError)) throw error;
        report.broken[`${table}.${column}`] = (report.broken[`${table}.${column}`] ?? 0) + 1;
      }
    }
    if (fresh.length > 0) {
      const updated = await database.query<[unknown[], number]>(
        `UPDATE ${table} t SET ${column} = f.sealed${hash === undefined ? '' : `, ${hash} = f.hash`}
           FROM jsonb_to_recordset($1::jsonb) AS f(place tid, old text, sealed text, hash text)
          WHERE t.ctid = f.place AND t.${column} = f.old`,
        [JSON.stringify(fresh)],
      );
      report.rotated += updated[1];
    }
    if (rows.length < BATCH) return;
    after = rows[rows.length - 1].place;
  }
}

/** @returns the number of URLs */
async function sealClearUrls(database: Pick<DataSource, 'query'>, vault: Vault): Promise<number> {
  let count = 0;
  for (const { table, url, sealed, hash, where } of URL_COLUMNS) {
    for (;;) {
      const rows = await database.query<{ id: string; url: string }[]>(
        `SELECT id, ${url} AS url FROM ${table} WHERE ${url} LIKE '%?%' AND ${sealed} IS NULL AND ${where} LIMIT ${BATCH}`,
      );
      for (const row of rows) {
        const values = [row.id, row.url, maskedQuery(row.url), vault.seal(row.url, row.id)];
        await database.query(
          `UPDATE ${table} SET ${url} = $3, ${sealed} = $4${hash === null ? '' : `, ${hash} = $5`}
            WHERE id = $1 AND ${url} = $2 AND ${sealed} IS NULL`,
          hash === null ? values : [...values, vault.hash(row.url)],
        );
      }
      count += rows.length;
      if (rows.length < BATCH) break;
    }
  }
  return count;
}
