import { beforeAll, describe, expect, it } from '@jest/globals';
import type { EncryptionKey } from '../../../src/config/setting.js';
import {
  keyUses,
  requireKeys,
  rotateSealed,
  SEALED_COLUMNS,
  verifySealed,
} from '../../../src/platform/vault/sealed-values.repository.js';
import { Vault } from '../../../src/platform/vault/vault.js';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { publishExternal, releasesPath } from '../../support/releases/releases.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';

const CANARY = 'CANARYqueryvalue4711';

const app = testApp();
const owner = testAccount(app);
let upstream: Upstream;
let namespace: string;

beforeAll(async () => {
  upstream = await startUpstream();
  namespace = await createNamespace(app, owner);
});

/** Every table that holds the text anywhere, jobs too. */
async function tablesWith(text: string): Promise<string[]> {
  const tables = await app.database.query<{ name: string }[]>(
    `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
      WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = await app.database.query<unknown[]>(`SELECT 1 FROM ${name} t WHERE t::text LIKE '%' || $1 || '%'`, [
      text,
    ]);
    if (rows.length > 0) found.push(name);
  }
  return found;
}

/** Requests that carried the canary in their query. */
const sent = () => upstream.requests.filter(({ path }) => path.includes(CANARY)).length;

describe('query values of a URL', () => {
  it('are sealed and masked in a connection, reach the server and are found by the exact URL', async () => {
    const mcpUrl = `${upstream.url}?apiKey=${CANARY}`;
    const masked = `${upstream.url}?apiKey=***`;
    const { path } = await createConnection(app, owner, { mcpUrl }, { namespace });
    expect(sent()).toBeGreaterThan(0);
    const read = await app.as(owner).get(path);
    expect(read.body).toMatchObject({ mcpUrl: masked, status: { state: 'connected' } });
    const listed = async (url: string) => {
      const { body } = await app.as(owner).get(`/connect/${namespace}?mcpUrl=${encodeURIComponent(url)}`);
      return (body as { connections: object[] }).connections.length;
    };
    expect([await listed(mcpUrl), await listed(`${mcpUrl}x`)]).toEqual([1, 0]);
    // The URL as it was sent, and as it is read, name the same target.
    expect((await app.as(owner).put(path, { mcpUrl })).status).toBe(200);
    expect((await app.as(owner).put(path, { mcpUrl: masked })).status).toBe(200);
    expect((await app.as(owner).put(path, { mcpUrl: `${mcpUrl}x` })).status).toBe(409);
    const before = sent();
    expect((await app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' })).status).toBe(200);
    expect(sent()).toBeGreaterThan(before);
    expect(await tablesWith(CANARY)).toEqual([]);
  });

  it('are sealed and masked in a release, and calls carry them', async () => {
    const name = await createServer(app, owner, { namespace });
    const before = sent();
    const release = await publishExternal(app, owner, name, { upstreamUrl: `${upstream.url}?k=${CANARY}` });
    expect(release).toMatchObject({ upstreamUrl: `${upstream.url}?k=***` });
    expect(sent()).toBeGreaterThan(before);
    const { body } = await app.as(owner).get(releasesPath(name));
    expect(JSON.stringify(body)).not.toContain(CANARY);
    const scanned = sent();
    const { path } = await createConnection(app, owner, { server: name }, { namespace });
    expect((await app.as(owner).get(path)).body).toMatchObject({ status: { state: 'connected' } });
    expect(sent()).toBeGreaterThan(scanned);
    expect(await tablesWith(CANARY)).toEqual([]);
  });
});

describe('query values that an earlier version stored in clear', () => {
  it('are named by verify and sealed by rotate, in releases, snapshots and connections', async () => {
    const vault = new Vault(app.env.encryptionKeys ?? []);
    const name = await createServer(app, owner, { namespace });
    const clear = `${upstream.url}?k=${CANARY}`;
    await publishExternal(app, owner, name, { upstreamUrl: clear });
    const { path } = await createConnection(app, owner, { mcpUrl: clear }, { namespace });
    const of = `(SELECT s.id FROM servers s JOIN namespaces n ON n.id = s.namespace_id WHERE n.name || '/' || s.name = $2)`;
    const asBefore = `jsonb_set(snapshot, '{upstreamUrl}', to_jsonb($1::text))`;
    await app.database.query(`UPDATE servers SET snapshot = ${asBefore} WHERE id = ${of}`, [clear, name]);
    await app.database.query(
      `UPDATE releases SET snapshot = ${asBefore}, upstream_url = $1, sealed_upstream_url = NULL WHERE server_id = ${of}`,
      [clear, name],
    );
    await app.database.query(
      'UPDATE connections SET mcp_url = $1, sealed_url = NULL, mcp_url_hash = NULL WHERE connection_id = $2',
      [clear, path.split('/').at(-1)],
    );
    expect((await verifySealed(app.database, vault)).clear).toEqual({
      'connections.mcp_url': 1,
      'releases.upstream_url': 1,
      'releases.snapshot': 1,
      'servers.snapshot': 1,
    });
    expect((await tablesWith(CANARY)).sort()).toEqual(['public.connections', 'public.releases', 'public.servers']);
    await rotateSealed(app.database, vault);
    expect(await verifySealed(app.database, vault)).toMatchObject({ clear: {}, broken: {} });
    expect(await tablesWith(CANARY)).toEqual([]);
    // The addresses are complete: another process reads them anew.
    const other = await app.sibling();
    try {
      const before = sent();
      expect((await other.as(owner).post(`${path}/.tools/echo`, { message: 'hi' })).status).toBe(200);
      const created = await other.as(owner).put(`/connect/${namespace}/${uniqueName('again')}`, { server: name });
      expect(created.body).toMatchObject({ status: { state: 'connected' } });
      expect(sent()).toBeGreaterThan(before + 1);
    } finally {
      await other.close();
    }
  });
});

describe('calls of a mock', () => {
  it('are sealed with their arguments and answers', async () => {
    const name = await createServer(app, owner, { namespace });
    await publishExternal(app, owner, name, { upstreamUrl: upstream.url });
    const body = { server: name, mock: { enabled: true } };
    const { path } = await createConnection(app, owner, body, { namespace, connectionId: uniqueName('mock') });
    const { status } = await app.as(owner).post(`${path}/.tools/echo`, { message: CANARY, text: CANARY });
    expect(status).toBe(200);
    const [{ count }] = await app.database.query<[{ count: number }]>('SELECT count(*)::int AS count FROM mock_calls');
    expect(count).toBeGreaterThan(0);
    expect(await tablesWith(CANARY)).toEqual([]);
  });
});

describe('the keys of sealed values', () => {
  const key = (id: string, byte: number): EncryptionKey => ({ id, secret: Buffer.alloc(32, byte) });
  const [k1, k2] = [key('k1', 7), key('k2', 8)];

  it('are counted in every column of sealed values', async () => {
    const columns = await app.database.query<{ name: string }[]>(
      `SELECT table_name || '.' || column_name AS name FROM information_schema.columns
        WHERE table_schema = 'public' AND column_name LIKE 'sealed%'`,
    );
    const known = SEALED_COLUMNS.map(({ table, column }) => `${table}.${column}`);
    expect(known.sort()).toEqual(columns.map(({ name }) => name).sort());
  });

  it('are refused at start when they cannot open what is stored, naming the missing one and its values', async () => {
    await createConnection(app, owner, { mcpUrl: `${upstream.url}?n=1`, headers: { 'X-Key': 'v' } }, { namespace });
    await expect(requireKeys(app.database, new Vault([k1]))).resolves.toBeUndefined();
    await expect(requireKeys(app.database, new Vault([k2]))).rejects.toThrow(
      /ENCRYPTION_KEYS lacks the key "k1", which sealed \d+ stored values \(.*connections\.sealed_url.*\)/,
    );
    await expect(requireKeys(app.database, new Vault([key('k1', 9)]))).rejects.toThrow(
      'ENCRYPTION_KEYS has another key under the name "k1"',
    );
  });

  it('are rotated while the service is used; the filter by URL works before, during and after', async () => {
    const rotating = await app.sibling({ ENCRYPTION_KEYS: [k2, k1].map(textOf).join(',') });
    try {
      const mcpUrl = `${upstream.url}?apiKey=${CANARY}rotated`;
      const { path } = await createConnection(app, owner, { mcpUrl }, { namespace });
      // As an earlier version stored it.
      const clear = `${upstream.url}?old=${CANARY}clear`;
      const old = await createConnection(app, owner, { mcpUrl: clear }, { namespace });
      await app.database.query(
        'UPDATE connections SET mcp_url = $1, sealed_url = NULL, mcp_url_hash = NULL WHERE connection_id = $2',
        [clear, old.path.split('/').at(-1)],
      );
      const found = async (url: string) => {
        const { body } = await rotating.as(owner).get(`/connect/${namespace}?mcpUrl=${encodeURIComponent(url)}`);
        return (body as { connections: object[] }).connections.length;
      };
      expect(await found(mcpUrl)).toBe(1);
      const writes = async () => {
        for (let i = 0; i < 5; i += 1) {
          const { status } = await rotating.as(owner).put(path, { headers: { 'X-Count': String(i) } });
          expect(status).toBe(200);
        }
      };
      const vault = new Vault([k2, k1]);
      const [report] = await Promise.all([rotateSealed(app.database, vault), writes()]);
      expect(report.broken).toEqual({});
      // A value that was written meanwhile is left to the next pass.
      await rotateSealed(app.database, vault);
      expect((await keyUses(app.database)).map(({ keyId }) => keyId)).toEqual(['k2']);
      expect(await verifySealed(app.database, new Vault([k2]))).toMatchObject({ rotated: 0, broken: {} });
      await expect(requireKeys(app.database, new Vault([k2]))).resolves.toBeUndefined();
      expect([await found(mcpUrl), await found(clear)]).toEqual([1, 1]);
      expect((await rotating.as(owner).get(`${path}/.tools`)).status).toBe(200);
      expect(await tablesWith(CANARY)).toEqual([]);
    } finally {
      await rotating.close();
    }
  });

  it('are rotated in every row of a table that takes several reads', async () => {
    const { path } = await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace });
    const [{ id }] = await app.database.query<[{ id: string }]>('SELECT id FROM connections WHERE connection_id = $1', [
      path.split('/').at(-1),
    ]);
    const sealed = Array.from({ length: 1_001 }, (_, at) => new Vault([k1]).seal(`call ${at}`, id));
    await app.database.query(
      `INSERT INTO recorded_calls (connection_id, tool, sealed, bytes) SELECT $1, 'echo', unnest($2::text[]), 10`,
      [id, sealed],
    );
    await rotateSealed(app.database, new Vault([k2, k1]));
    const keys = (await keyUses(app.database)).filter(({ counts }) => 'recorded_calls.sealed' in counts);
    const counts = expect.objectContaining({ 'recorded_calls.sealed': 1_001 });
    expect(keys).toEqual([{ keyId: 'k2', counts, sample: expect.stringMatching(/^k2\./) }]);
  });

  it('do not replace another value at the row position of a rotated one', async () => {
    const headers = { 'X-Key': 'v' };
    const { path } = await createConnection(app, owner, { mcpUrl: upstream.url, headers }, { namespace });
    const connectionId = path.split('/').at(-1);
    const vault = new Vault([k2, k1]);
    const written = vault.seal('another value', 'another row');
    const moving = {
      async query<T>(sql: string, values?: unknown[]): Promise<T> {
        if (!/^UPDATE connections t SET sealed_headers/.test(sql)) return app.database.query<T>(sql, values);
        const [[{ place, old }]] = await app.database.query<[{ place: string; old: string }[]]>(
          `UPDATE connections c SET sealed_headers = $1 FROM connections o WHERE o.id = c.id AND c.connection_id = $2
           RETURNING c.ctid::text AS place, o.sealed_headers AS old`,
          [written, connectionId],
        );
        const batch = JSON.parse(values?.[0] as string) as { place: string; old: string }[];
        const moved = batch.map((row) => (row.old === old ? { ...row, place } : row));
        expect(moved).not.toEqual(batch);
        return app.database.query<T>(sql, [JSON.stringify(moved)]);
      },
    };
    await rotateSealed(moving, vault);
    const stored = 'SELECT sealed_headers AS sealed FROM connections WHERE connection_id = $1';
    expect(await app.database.query(stored, [connectionId])).toEqual([{ sealed: written }]);
  });
});

function textOf({ id, secret }: EncryptionKey): string {
  return `${id}:${secret.toString('base64')}`;
}
