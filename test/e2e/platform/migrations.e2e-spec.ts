import { afterEach, describe, expect, it } from '@jest/globals';
import { DatabaseSnapshot } from '../../../src/platform/database/database-copy.js';
import { migrate, pendingMigrations, SchemaVersionError } from '../../../src/platform/database/migrations.js';
import { openClient, UNLIMITED } from '../../../src/platform/database/session.js';
import { cloneDatabase, emptyDatabase } from '../../support/app.js';
import { query } from '../../support/database/query.js';
import { until } from '../../support/until.js';
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

const BASELINE = 'Baseline1795490000000';

const namesIn = async (url: string) =>
  (await query<{ name: string }>(url, 'SELECT name FROM migrations')).map(({ name }) => name);

it('refuses a database from before 0.1.0, and leaves it as it was', async () => {
  const url = await database();
  await migrate(url, undefined, [], [BASELINE]);
  await query(url, `UPDATE migrations SET name = 'First1790000000000'`);
  for (const refused of [migrate(url), pendingMigrations(url)]) {
    await expect(refused).rejects.toThrow(SchemaVersionError);
    await expect(refused).rejects.toThrow(/before version 0.1.0, whose data cannot be converted/);
  }
  expect(await namesIn(url)).toEqual(['First1790000000000']);
});

describe('a migration', () => {
  it('lets others read while it waits for a long transaction, and goes on after it', async () => {
    const url = await database();
    await migrate(url, undefined, [], [BASELINE]);
    const reader = await openClient(url, 'long-reader', UNLIMITED);
    await reader.query(
      'BEGIN; SELECT FROM servers; SELECT FROM connections; SELECT FROM namespaces; SELECT FROM grants',
    );
    const migrated = migrate(url);
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await until(async () => (await query(url, waiting)).length > 0, 'it waits for a lock');
    // Would wait for the end of the transaction, which is still open.
    for (const table of ['servers', 'connections', 'namespaces', 'grants']) await query(url, `SELECT FROM ${table}`);
    await reader.end();
    await migrated;
    await expect(pendingMigrations(url)).resolves.toEqual([]);
  });

  it('is refused while a backup reads the database', async () => {
    const url = await database();
    await migrate(url, undefined, [], [BASELINE]);
    const snapshot = await DatabaseSnapshot.open(url);
    const refusal = 'A backup of this database is running. Start again when it has finished.';
    for (const refused of [migrate(url), pendingMigrations(url)]) await expect(refused).rejects.toThrow(refusal);
    await snapshot.close();
    await migrate(url);
    const other = await DatabaseSnapshot.open(url);
    // Nothing is left to migrate.
    await migrate(url);
    await other.close();
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
    await expect(pendingMigrations(url, [{ ...stars, name: 'moons' }])).resolves.toEqual(['moons:First1795000000001']);
    await expect(migrate(url)).resolves.toBeUndefined();
  });
});
