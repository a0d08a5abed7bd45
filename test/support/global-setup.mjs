import { readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import pg from 'pg';
import { ensureBuilt } from '../../scripts/lib.mjs';

const DAY_MS = 86_400_000;
const prefix = 'slipway-test-';

const dist = fileURLToPath(new URL('../../dist', import.meta.url));
const load = (path, from = dist) => import(pathToFileURL(join(from, 'src', path)).href);

/**
 * One Postgres for the whole run, in TEST_DATABASE_URL: the one given there, else a throwaway of our own. It gets the
 * migrated database `slipway_template`, which each test file clones. Also builds what changed: some tests start
 * processes, and so do some parts of the service.
 */
export default async function globalSetup() {
  ensureBuilt();
  if (!process.env.TEST_DATABASE_URL) {
    await removeAbandoned();
    const { startEmbeddedPostgres } = await load('platform/embedded/embedded-postgres.js');
    const dataDir = join(tmpdir(), `${prefix}${process.pid}`);
    globalThis.slipwayTestPostgres = await startEmbeddedPostgres({ dataDir, log: () => undefined, throwaway: true });
    process.env.TEST_DATABASE_URL = globalThis.slipwayTestPostgres.url;
    await cheapenLogins(process.env.TEST_DATABASE_URL);
  }
  await buildTemplate(process.env.TEST_DATABASE_URL);
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

/** Each pool of each service logs in anew; the 4096 rounds of hashing cost both sides more than the connection itself. */
async function cheapenLogins(serverUrl) {
  const { username, password } = new URL(serverUrl);
  const client = new pg.Client(serverUrl);
  await client.connect();
  await client.query('SET scram_iterations = 1');
  await client.query(`ALTER ROLE ${username} PASSWORD '${password}'`);
  await client.end();
}

/**
 * A server that was given may still have the template of an earlier run. The template has the partitions that every
 * service creates when it starts. It is migrated by the build in TEMPLATE_DIST, if that is set: by a later version, whose
 * database the tests of this one must pass with.
 */
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
  const from = process.env.TEMPLATE_DIST;
  const { migrate } = await load('platform/database/migrations.js', from);
  const { migrateQueue } = await load('platform/queue/queue-backend.js', from);
  const { PartitionsRepository } = await load('modules/logs/store/partitions.repository.js', from);
  await migrate(templateUrl.href, async (source) => {
    await migrateQueue(templateUrl.href);
    const partitions = new PartitionsRepository(source);
    for (const ahead of [0, 1, 2])
      await partitions.make(new Date(Date.now() + ahead * DAY_MS).toISOString().slice(0, 10));
  });
  // The first connection writes the cache of the system catalogs, which clones copy.
  const last = new pg.Client(templateUrl.href);
  await last.connect();
  await last.end();
}
