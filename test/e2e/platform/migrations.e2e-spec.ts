import { afterEach, describe, expect, it } from '@jest/globals';
import { migrate, pendingMigrations, SchemaVersionError } from '../../../src/platform/database/migrations.js';
import { ServerNamesInAnyCase1795400000000 } from '../../../migrations/1795400000000-server-names-in-any-case.js';
import { cloneDatabase, emptyDatabase } from '../../support/app.js';
import { query } from '../../support/database/query.js';
import { runProgram } from '../../support/program.js';
import { verifies } from '../../support/verifies.js';

class Again {}

const open: { drop: () => Promise<void> }[] = [];
afterEach(() => Promise.all(open.splice(0).map((one) => one.drop())).then(() => undefined));

async function database(made = emptyDatabase()): Promise<string> {
  const one = await made;
  open.push(one);
  return one.url;
}

describe('a database that was made before the baseline migration', () => {
  it('is refused with a sentence and left as it was, by the start that migrates and by the one that does not', async () => {
    const url = await database();
    await query(url, 'CREATE TABLE migrations (id serial PRIMARY KEY, timestamp bigint NOT NULL, name text NOT NULL)');
    await query(
      url,
      `INSERT INTO migrations (timestamp, name) VALUES (1795172185715, 'CreateCoreTables1795172185715')`,
    );
    await expect(migrate(url)).rejects.toThrow(SchemaVersionError);
    await expect(pendingMigrations(url)).rejects.toThrow('use an empty database');
    const rows = await query(url, `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`);
    expect(rows).toEqual([{ tablename: 'migrations' }]);
  });
});

describe('a database that a newer version migrated', () => {
  verifies('start:newer-database', 'is refused by both starts, which name its migration and what to do', async () => {
    const url = await database(cloneDatabase());
    await query(url, `INSERT INTO migrations (timestamp, name) VALUES (1999, 'AddWings1999')`);
    for (const refused of [migrate(url), pendingMigrations(url)]) {
      await expect(refused).rejects.toThrow(SchemaVersionError);
      await expect(refused).rejects.toThrow(
        /does not know its migrations AddWings1999: start the version that made them, or restore the backup/,
      );
    }
    const settings = { DATABASE_URL: url, ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}` };
    const service = runProgram('main.js', settings);
    expect(await service.ended).toBe(1);
    expect(service.output()).toMatch(
      /^Slipway did not start\.\nThe database is newer than this version.*AddWings1999.*\n$/,
    );
  });

  it('is refused when a newer version of a loaded module migrated it, and not when the module is not loaded', async () => {
    const url = await database(cloneDatabase());
    class First1795000000001 {
      up = () => Promise.resolve();
      down = this.up;
    }
    const stars = { name: 'stars', module: () => Again, migrations: [First1795000000001] };
    await migrate(url, undefined, [stars]);
    await query(url, `INSERT INTO module_migrations (timestamp, name) VALUES (1999, 'stars:Second1795000000002')`);
    await expect(migrate(url, undefined, [stars])).rejects.toThrow(
      'does not know its migrations stars:Second1795000000002',
    );
    await expect(pendingMigrations(url, [{ ...stars, name: 'moons' }])).resolves.toBe(true);
    await expect(migrate(url)).resolves.toBeUndefined();
  });
});

describe('a database with servers whose names differ in case only', () => {
  it('is refused with a sentence that names them, and stays as it was until one of each is renamed', async () => {
    const url = await database(cloneDatabase());
    const again = [{ name: 'again', module: () => Again, migrations: [ServerNamesInAnyCase1795400000000] }];
    await query(
      url,
      `DROP INDEX servers_qualified_name, servers_slug;
       CREATE UNIQUE INDEX servers_qualified_name ON servers (namespace_id, name);
       CREATE UNIQUE INDEX servers_slug ON servers (slug);
       INSERT INTO accounts (name, kind) VALUES ('case', 'user');
       INSERT INTO namespaces (name, account_id) SELECT 'case', id FROM accounts WHERE name = 'case';
       INSERT INTO servers (namespace_id, name, display_name, slug)
         SELECT id, one, one, slug FROM namespaces,
           (VALUES ('Pay', 'case--Pay'), ('pay', 'pay'), ('mail', 'Post'), ('post', 'post')) AS made(one, slug)
          WHERE namespaces.name = 'case';`,
    );
    const refused = await migrate(url, undefined, again).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(SchemaVersionError);
    expect((refused as Error).message).toContain('/run/Post and /run/post; case/Pay and case/pay.');
    await query(url, `UPDATE servers SET name = name || '-2', slug = slug || '-2' WHERE name IN ('pay', 'mail')`);
    await migrate(url, undefined, again);
    await expect(query(url, `UPDATE servers SET name = 'PAY' WHERE name = 'post'`)).rejects.toThrow(
      'servers_qualified_name',
    );
  });
});
