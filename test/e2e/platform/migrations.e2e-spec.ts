import { afterEach, describe, expect, it } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { loadDatabase } from '../../../src/platform/database/database-copy.js';
import { migrate, pendingMigrations, SchemaVersionError } from '../../../src/platform/database/migrations.js';
import { cloneDatabase, emptyDatabase } from '../../support/app.js';
import { catalogOf } from '../../support/database/catalog.js';
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

/** The migrations and the schema of the last commit before 0.1.0. */
const before = JSON.parse(await readFile('test/upgrade/before-0.1.0.json', 'utf8')) as {
  migrations: string[];
  catalog: string[];
};
const BASELINE = 'Baseline1795490000000';

/** A database of a commit before 0.1.0 that had run so many of its migrations. */
async function older(count: number): Promise<string> {
  const url = await database();
  await migrate(url, undefined, [], [BASELINE]);
  await query(url, 'DELETE FROM migrations');
  for (const name of before.migrations.slice(0, count)) {
    await query(url, `INSERT INTO migrations (timestamp, name) VALUES (${name.replace(/\D+/, '')}, '${name}')`);
  }
  return url;
}

const namesIn = async (url: string) =>
  (await query<{ name: string }>(url, 'SELECT name FROM migrations')).map(({ name }) => name);

describe('a database of the commits before 0.1.0', () => {
  it('has the schema of the baseline at its last migration, and becomes one of 0.1.0', async () => {
    const url = await older(before.migrations.length);
    expect(await catalogOf(url)).toEqual(before.catalog);
    await query(url, `INSERT INTO accounts (name, kind) VALUES ('kept', 'user')`);
    await expect(pendingMigrations(url)).resolves.toBe(true);
    await Promise.all([migrate(url), migrate(url)]);
    expect((await namesIn(url))[0]).toBe(BASELINE);
    expect(await namesIn(url)).not.toContain(before.migrations.at(-1));
    await expect(pendingMigrations(url)).resolves.toBe(false);
    expect(await query(url, 'SELECT name FROM accounts')).toEqual([{ name: 'kept' }]);
  });

  it('is restored as one of 0.1.0 from a backup', async () => {
    const url = await database();
    await loadDatabase(
      url,
      { migrations: before.migrations, tables: [], sequences: {} },
      [],
      () => Readable.from([]),
      () => Promise.resolve(),
    );
    expect(await namesIn(url)).toEqual([BASELINE]);
  });

  it('is refused and left as it was before its last migration: the sentence names the commit to start once', async () => {
    for (const url of [await older(before.migrations.length - 1), await older(1)]) {
      const names = await namesIn(url);
      await expect(migrate(url)).rejects.toThrow(SchemaVersionError);
      await expect(pendingMigrations(url)).rejects.toThrow(/Start commit [0-9a-f]{8} with it once/);
      expect(await namesIn(url)).toEqual(names);
    }
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
