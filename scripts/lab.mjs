/**
 * `npm run lab <name> -- [options]`: instruments that measure, compare, search or make what a test reads, and decide no landing.
 *
 * With `--seed N` everything that an instrument draws follows from that number (`TEST_SEED`).
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { checkNode, fail, root } from './lib.mjs';

const instruments = {
  backup: ['scripts/upgrade-backup.mjs', 'a backup with data of every kind, for the test of upgrades'],
  bench: ['bench/run.mjs', 'what a call costs through Slipway, next to the same call through a bare proxy'],
  chaos: ['scripts/chaos.mjs', 'a deployment whose parts are killed, paused and restarted; every call is counted'],
  compat: ['scripts/compat.mjs', 'published MCP clients and servers, directly and through Slipway'],
  conformance: ['scripts/conformance.mjs', 'the official MCP conformance suite'],
  fuzz: ['scripts/fuzz.mjs', 'generated inputs for every documented operation, MCP, uplinks and HTTP'],
  outage: ['scripts/outage.mjs', 'a deployment whose Postgres stops under calls of six kinds'],
  pages: ['bench/pages.mjs', 'how long each page of the console takes with thousands of rows'],
  pictures: ['scripts/pictures.mjs', 'the pictures of the documentation'],
  rolling: ['scripts/rolling.mjs', 'processes behind nginx that are restarted in turn under calls of every kind'],
  search: ['scripts/search.mjs', 'random inputs and failures with new seeds, until one fails or the time is up'],
  soak: ['bench/soak.mjs', 'half an hour of everything that begins and ends: memory, handles, disk, processes'],
};

checkNode();
const [name, ...args] = process.argv.slice(2);
const list = Object.entries(instruments).map(([each, [, about]]) => `  ${each.padEnd(12)} ${about}`);
if (!Object.hasOwn(instruments, name ?? '')) fail(`Usage: npm run lab <name> -- [options]\n\n${list.join('\n')}`);
const at = args.indexOf('--seed');
const [, seed] = at < 0 ? [] : args.splice(at, 2);
const env = { ...process.env, ...(seed !== undefined && { TEST_SEED: seed }) };
const result = spawnSync(process.execPath, [join(root, instruments[name][0]), ...args], {
  cwd: root,
  env,
  stdio: 'inherit',
});
process.exit(result.status ?? 1);
