import { existsSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';

const launcher = new URL('../../dist/src/platform/embedded/embedded-postgres.js', import.meta.url);
const migrations = new URL('../../dist/src/platform/database/migrations.js', import.meta.url);
const queueTables = new URL('../../dist/src/platform/queue/queue-backend.js', import.meta.url);
const prefix = 'slipway-test-';

/**
 * One Postgres for the whole run, in TEST_DATABASE_URL: the one given there, else a throwaway of our own. It gets the
 * migrated database `slipway_template`, which each test file clones.
 */
export default async function globalSetup() {
  if (!process.env.TEST_DATABASE_URL) {
    if (!existsSync(launcher))
      throw new Error('The tests run against the build: run `npm test`, or `npm run build` first.');
    await removeAbandoned();
    const { startEmbeddedPostgres } = await import(launcher.href);
    const dataDir = join(tmpdir(), `${prefix}${process.pid}`);
    globalThis.slipwayTestPostgres = await startEmbeddedPostgres({ dataDir, log: () => undefined, throwaway: true });
    process.env.TEST_DATABASE_URL = globalThis.slipwayTestPostgres.url;
  }
  if (existsSync(migrations)) await buildTemplate(process.env.TEST_DATABASE_URL);
}

/** A run that was killed leaves 40 MB; its server has ended with it. */
async function removeAbandoned() {
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(prefix) || isRunning(Number(name.slice(prefix.length)))) continue;
    await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
}

/** Our own process id on an old folder is a reused one. */
function isRunning(pid) {
  if (!Number.isInteger(pid)) return true;
  if (pid === process.pid) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** A server that was given may still have the template of an earlier run. */
async function buildTemplate(serverUrl) {
  const client = new pg.Client(serverUrl);
  await client.connect();
  try {
    await client.query('DROP DATABASE IF EXISTS slipway_template WITH (FORCE)');
    await client.query('CREATE DATABASE slipway_template');
  } finally {
    await client.end();
  }
  const templateUrl = new URL(serverUrl);
  templateUrl.pathname = '/slipway_template';
  const { migrate } = await import(migrations.href);
  const { migrateQueue } = await import(queueTables.href);
  await migrate(templateUrl.href, () => migrateQueue(templateUrl.href));
}
