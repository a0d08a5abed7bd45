import { readdir, rm } from 'node:fs/promises';
import { register } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { DataSource } from 'typeorm';

const prefix = 'slipway-test-';
const migrationsFolder = new URL('../../migrations/', import.meta.url);

register('./jest/loader.mjs', import.meta.url);

/** A module of the sources: the tests need no build but where they run it. */
const load = (path) => import(new URL(`../../src/${path}`, import.meta.url).href);

/**
 * One Postgres for the whole run, in TEST_DATABASE_URL: the one given there, else a throwaway of our own. It gets the
 * migrated database `slipway_template`, which each test file clones.
 */
export default async function globalSetup() {
  if (!process.env.TEST_DATABASE_URL) {
    await removeAbandoned();
    const { startEmbeddedPostgres } = await load('platform/embedded/embedded-postgres.ts');
    const dataDir = join(tmpdir(), `${prefix}${process.pid}`);
    globalThis.slipwayTestPostgres = await startEmbeddedPostgres({ dataDir, log: () => undefined, throwaway: true });
    process.env.TEST_DATABASE_URL = globalThis.slipwayTestPostgres.url;
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
  const { dataSourceOptions } = await load('platform/database/data-source-options.ts');
  const { migrateQueue } = await load('platform/queue/queue-backend.ts');
  const options = dataSourceOptions(templateUrl.href, 2);
  const source = await new DataSource({ ...options, migrations: await allMigrations() }).initialize();
  try {
    await source.runMigrations();
  } finally {
    await source.destroy();
  }
  await migrateQueue(templateUrl.href);
}

/** The classes; the service itself finds the compiled files by a pattern. */
async function allMigrations() {
  const files = (await readdir(migrationsFolder)).filter((name) => name.endsWith('.ts'));
  const modules = await Promise.all(files.map((name) => import(new URL(name, migrationsFolder).href)));
  return modules.flatMap((module) => Object.values(module));
}
