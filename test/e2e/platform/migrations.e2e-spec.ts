import { afterEach, describe, expect, it } from '@jest/globals';
import { migrate, pendingMigrations, SchemaVersionError } from '../../../src/platform/database/migrations.js';
import { emptyDatabase } from '../../support/app.js';
import { query } from '../../support/database/query.js';

const open: { drop: () => Promise<void> }[] = [];
afterEach(() => Promise.all(open.splice(0).map((one) => one.drop())).then(() => undefined));

async function database(): Promise<string> {
  const one = await emptyDatabase();
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
