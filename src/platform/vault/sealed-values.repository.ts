import type { DataSource } from 'typeorm';
import { StartError } from '../../config/env.js';
import { maskedQuery } from './masked-url.js';
import { VaultError, type Vault } from './vault.js';

interface SealedColumn {
  table: string;
  column: string;
  owner: string;
  /** A column with the keyed hash of the value. */
  hash?: string;
}

/** A test compares these columns with the tables. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { table: 'connections', column: 'sealed_headers', owner: 'id' },
  { table: 'connections', column: 'sealed_query', owner: 'id' },
  { table: 'connections', column: 'sealed_oauth_secret', owner: 'id' },
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
  { table: 'as_clients', column: 'sealed', owner: 'id' },
  { table: 'as_records', column: 'sealed', owner: "kind || ' ' || encode(id_hash, 'hex')" },
];

/**
 * URLs whose query values an earlier version stored in clear. `f` has the masked URL, the sealed one and its keyed
 * hash.
 */
const CLEAR_URLS = [
  {
    place: 'connections.mcp_url',
    url: 'mcp_url',
    where: "target_kind = 'url' AND sealed_url IS NULL",
    set: 'mcp_url = f.masked, sealed_url = f.sealed, mcp_url_hash = f.hash',
  },
  {
    place: 'releases.upstream_url',
    url: 'upstream_url',
    where: 'sealed_upstream_url IS NULL',
    set: 'upstream_url = f.masked, sealed_upstream_url = f.sealed',
  },
  // The release of a snapshot has the sealed URL.
  ...['releases', 'servers'].map((table) => ({
    place: `${table}.snapshot`,
    url: "snapshot ->> 'upstreamUrl'",
    where: 'true',
    set: "snapshot = jsonb_set(snapshot, '{upstreamUrl}', to_jsonb(f.masked))",
  })),
];

const BATCH = 500;

/** Returns the SQL of a key id, which has at most 64 characters, so only the beginning of a long value is read. */
const keyOf = (column: string) => `split_part(left(${column}, 65), '.', 1)`;

export interface KeyUse {
  keyId: string;
  sample: string;
  counts: Record<string, number>;
}

export interface SealedReport {
  opened: number;
  rotated: number;
  /** Values that do not open, by `table.column`. */
  broken: Record<string, number>;
  /** URLs whose query values are stored in clear, by `table.column`. */
  clear: Record<string, number>;
}

/** Counts the sealed values by the key that sealed them. Reads every table that has some. */
export async function keyUses(database: Pick<DataSource, 'query'>): Promise<KeyUse[]> {
  const uses = new Map<string, { sample: string; counts: Record<string, number> }>();
  for (const { table, column } of SEALED_COLUMNS) {
    const rows = await database.query<{ keyId: string; count: number; sample: string }[]>(
      `SELECT ${keyOf(column)} AS "keyId", count(*)::int AS count, min(${column}) AS sample FROM ${table} WHERE ${column} IS NOT NULL GROUP BY 1`,
    );
    for (const { keyId, count, sample } of rows) {
      uses.set(keyId, { sample, counts: { ...uses.get(keyId)?.counts, [`${table}.${column}`]: count } });
    }
  }
  return [...uses].map(([keyId, use]) => ({ keyId, ...use }));
}

/**
 * Checks that each key that sealed a value exists, and opens one value of each column.
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

/** Opens all sealed values, and counts the URLs that are still stored in clear. */
export async function verifySealed(database: Pick<DataSource, 'query'>, vault: Vault): Promise<SealedReport> {
  return { ...(await pass(database, vault, false)), clear: await clearUrls(database, () => Promise.resolve()) };
}

/**
 * Seals all values with the first key, including URLs that are still stored in clear. Can run while the service runs, and again after an interruption:
 * a value that changes meanwhile is left to its writer, which uses the first key.
 */
export async function rotateSealed(database: Pick<DataSource, 'query'>, vault: Vault): Promise<SealedReport> {
  const sealed = await clearUrls(database, async ({ place, url, where, set }, row) => {
    await database.query(
      `UPDATE ${place.split('.')[0]} SET ${set} FROM (SELECT $3::text AS masked, $4::text AS sealed, $5::text AS hash) AS f
        WHERE id = $1 AND ${url} = $2 AND ${where}`,
      [row.id, row.url, maskedQuery(row.url), vault.seal(row.url, row.id), vault.hash(row.url)],
    );
  });
  const report = await pass(database, vault, true);
  return { ...report, rotated: Object.values(sealed).reduce((sum, count) => sum + count, report.rotated) };
}

async function pass(database: Pick<DataSource, 'query'>, vault: Vault, rotates: boolean): Promise<SealedReport> {
  const report: SealedReport = { opened: 0, rotated: 0, broken: {}, clear: {} };
  for (const column of SEALED_COLUMNS) await passColumn(database, vault, column, rotates, report);
  return report;
}

/** Reads rows in their order on disk. Rows written meanwhile move to the end. */
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

/** @returns the number of URLs whose query values are stored in clear, by `table.column` */
async function clearUrls(
  database: Pick<DataSource, 'query'>,
  use: (column: (typeof CLEAR_URLS)[number], row: { id: string; url: string }) => Promise<void>,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const column of CLEAR_URLS) {
    const { place, url, where } = column;
    for (let after = '00000000-0000-0000-0000-000000000000'; ;) {
      const rows = await database.query<{ id: string; url: string }[]>(
        `SELECT id, ${url} AS url FROM ${place.split('.')[0]}
          WHERE id > $1 AND ${url} LIKE '%?%' AND ${where} ORDER BY id LIMIT ${BATCH}`,
        [after],
      );
      for (const row of rows) {
        if (maskedQuery(row.url) === row.url) continue;
        await use(column, row);
        counts[place] = (counts[place] ?? 0) + 1;
      }
      if (rows.length < BATCH) break;
      after = rows[rows.length - 1].id;
    }
  }
  return counts;
}
