/**
 * `npm run lab search -- [--minutes 30] [--seed N]`: looks for failures with new seeds, one kind of search after another, until
 * the time is up. It stops at the first failure, prints the command that repeats it, and exits with 1. With `--seed` it begins
 * with that seed.
 *
 * fast-check prints the smallest input that fails; the fuzzer and the chaos run print the requests and failures around it. Each
 * finding becomes a fixed case of `npm test`.
 */
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { prepare, root } from './lib.mjs';

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '30' } } });
const endAt = Date.now() + Number(values.minutes) * 60_000;

const jest = (project, ...args) => ['node_modules/jest/bin/jest.js', '--selectProjects', project, ...args];
/** One after another, the quick ones more often: each with its variables. */
const searches = [
  { name: 'properties', args: jest('unit', 'property', 'src'), env: { RANDOM_RUNS: 'all' } },
  { name: 'fuzz', args: ['scripts/fuzz.mjs', '--inputs', '3000'] },
  { name: 'world', args: jest('e2e', 'world-') },
  { name: 'chaos', args: ['scripts/chaos.mjs', '--faults', '20', '--callers', '1'] },
  { name: 'rolling', args: ['scripts/rolling.mjs'] },
  { name: 'outage', args: ['scripts/outage.mjs', '--kind', 'stop'] },
  { name: 'files in S3', args: jest('e2e', 'test/e2e/skills', 'test/e2e/releases/publish'), env: { TEST_FILES: 's3' } },
  { name: 'commands of pages, newest versions', args: jest('long', 'test/docs'), env: { DOC_VERSIONS: 'latest' } },
  { name: 'compat', args: ['scripts/compat.mjs'] },
  { name: 'soak', args: ['bench/soak.mjs', '--minutes', '5'] },
];

prepare();
let seed = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 1e9));
for (let n = 0; Date.now() < endAt; n += 1) {
  const { name, args, env = {} } = searches[n % searches.length];
  const timeout = endAt - Date.now();
  process.stdout.write(`${name}, TEST_SEED=${seed}\n`);
  const options = { cwd: root, encoding: 'utf8', env: { ...process.env, ...env, TEST_SEED: String(seed) } };
  const result = spawnSync(process.execPath, args, { ...options, timeout, maxBuffer: 2 ** 30 });
  if (result.error?.code === 'ETIMEDOUT') break;
  if (result.status !== 0) {
    const variables = Object.entries({ ...env, TEST_SEED: seed }).map(([key, value]) => `${key}=${value}`);
    process.stdout.write(
      `${result.stdout}${result.stderr}\nFound by ${name}. Again: ${variables.join(' ')} node ${args.join(' ')}\n`,
    );
    process.exit(1);
  }
  seed += 1;
}
process.stdout.write('Nothing was found.\n');
