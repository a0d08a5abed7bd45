import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { generateApiKey } from '../../../src/modules/auth/api-key.js';
import { DatabaseSnapshot } from '../../../src/platform/database/database-copy.js';
import { migrate } from '../../../src/platform/database/migrations.js';
import { emptyDatabase } from '../../support/app.js';
import { catalogOf } from '../../support/database/catalog.js';
import { query } from '../../support/database/query.js';
import { endAfterFile } from '../../support/jest/leftovers.mjs';
import {
  cleanUpPrograms,
  dataFolder,
  postgresOf,
  readySettings,
  runProgram,
  usedDataFolder,
} from '../../support/program.js';

afterAll(cleanUpPrograms, 300_000);

async function run(settings: Record<string, string>, args = ['upgrade', '--check']) {
  const program = runProgram('cli/slipway.js', settings, { args });
  return { code: await program.ended, output: program.output() };
}

/** A service whose database has the first migration only. */
async function oldService(): Promise<{ settings: Record<string, string>; url: string }> {
  const { url, drop } = await emptyDatabase();
  endAfterFile(drop);
  await migrate(url, undefined, [], ['Baseline1795490000000']);
  return { settings: { ...(await readySettings('unused')), DATABASE_URL: url, BOOTSTRAP_API_KEY: '' }, url };
}

describe('slipway upgrade --check', () => {
  it('names pending migrations and changes nothing', async () => {
    const { settings, url } = await oldService();
    const before = await catalogOf(url);
    const { code, output } = await run(settings);
    expect(output).toMatch(/^ok +settings +Slipway \d/m);
    expect(output).toMatch(/^warning +changes +The default of REGISTRY_HOSTS changed: .*\.$/m);
    expect(output).toMatch(/^warning +backup +The time of the last backup of DATABASE_URL is unknown: run `/m);
    expect(output).toMatch(
      /^warning +migrations +\d+ pending: RetiredOauthClients\d+, .*CompanySignIn\d+.*\. The start runs them\. /m,
    );
    expect(output).toMatch(/^ok +space +\d+ MB are free in /m);
    expect([code, await catalogOf(url)]).toEqual([0, before]);
    const separate = await run({ ...settings, MIGRATE: 'off', REGISTRY_HOSTS: 'none' });
    expect(separate.output).toMatch(/^warning +migrations +.*`npm run migrate`, which this version needs/m);
    expect(separate.output).toMatch(/^ok +changes /m);
  });

  it('fails for a running backup and for a newer schema', async () => {
    const { settings, url } = await oldService();
    const snapshot = await DatabaseSnapshot.open(url);
    const { code, output } = await run(settings);
    await snapshot.close();
    expect(output).toMatch(/^failed +migrations +A backup of this database is running\. Start again when/m);
    expect(code).toBe(1);
    await query(url, `INSERT INTO migrations (timestamp, name) VALUES (1999, 'AddWings1999')`);
    const newer = await run(settings);
    expect(newer.output).toMatch(/^failed +migrations +The database is newer than this version.*AddWings1999/m);
    expect(newer.code).toBe(1);
  });

  it('fails for settings and modules that this version refuses, and repeats no secret', async () => {
    const settings = await readySettings(generateApiKey());
    const folder = join(await dataFolder(), 'stars');
    await mkdir(folder);
    const manifest = { name: 'stars', exports: './main.js', peerDependencies: { '@slipway/module': '^2.0.0' } };
    await writeFile(join(folder, 'package.json'), JSON.stringify(manifest));
    const { code, output } = await run({ ...settings, SLIPWAY_MODULES: folder, PUBLIC_URLS: 'https://example.com' });
    expect(output).toMatch(/^warning +names +PUBLIC_URLS is not a setting and changes nothing: use PUBLIC_URL/m);
    expect(output).toMatch(
      /^failed +modules +\S+stars: it needs @slipway\/module \^2\.0\.0, and this Slipway has 1\./m,
    );
    expect(output).toMatch(/^ok +migrations +the database is at this version$/m);
    expect(code).toBe(1);
    const wrong = await run({ ...settings, DATABASE_URL: 'mysql://slipway:canary@127.0.0.1/x', PORT: 'x' });
    expect(wrong.output).toMatch(/^failed +settings +PORT /m);
    expect(wrong.output).toMatch(/^failed +settings +DATABASE_URL /m);
    expect([wrong.code, wrong.output.includes('canary')]).toEqual([1, false]);
  });

  it('asks for a fresh backup of an embedded database, which it stops again', async () => {
    const { dataDir } = await usedDataFolder();
    const backupLine = async () => /^.* backup .*$/m.exec((await run({ DATA_DIR: dataDir })).output)?.[0];
    expect(await backupLine()).toMatch(/^warning +backup +The embedded database has no backup: run `npm run slipway/);
    await writeFile(join(dataDir, 'last-backup'), `${new Date(Date.now() - 25 * 3_600_000).toISOString()}\n`);
    expect(await backupLine()).toMatch(/^warning +backup +The last backup is from \d{4}-.*Z: run/);
    await writeFile(join(dataDir, 'last-backup'), `${new Date().toISOString()}\n`);
    expect(await backupLine()).toMatch(/^ok +backup +from \d{4}-.*Z$/);
    expect(await postgresOf(dataDir)).toBeNull();
    const empty = await run({ DATA_DIR: await dataFolder() });
    expect(empty.output).toMatch(/^ok +database +none in .*: the first start makes it$/m);
  });
});

describe('slipway', () => {
  it('names the nearest command for an unknown one', async () => {
    const unknown = await run({}, ['doktor']);
    expect(unknown.output).toMatch(/^Unknown command doktor\. Did you mean doctor\?\nUsage: /);
    expect(unknown.code).toBe(2);
    expect((await run({}, ['fly'])).output).toMatch(/^Unknown command fly\.\nUsage: /);
    expect((await run({}, [])).output).toMatch(/^Usage: /);
    expect(await run({}, ['upgrade'])).toEqual({ code: 2, output: expect.stringContaining('add --check') });
  });
});
