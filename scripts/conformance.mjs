/**
 * `npm run lab conformance`: the official MCP conformance suite against Slipway.
 *
 * Server scenarios run in three revisions against the three kinds of MCP endpoint (connection, run, namespace), with two
 * fixtures of one era each and two reference servers behind them, and against the servers directly. A check that fails
 * through Slipway only fails the run, unless `test/conformance/expected/server.yaml` lists it with a reason; a listed one
 * that passes fails it too. Client scenarios run against Slipway as the client of the suite's servers, each with a list of
 * its own. Scenarios of extensions that a server lacks are not counted. A scenario without a passed and without a failed
 * check is "not exercised" and named.
 *
 *   npm run lab conformance -- [--only <part of a run's name>] [--scenario <client scenario>]
 *
 * The suite is not a dependency: it is installed on first use, into node_modules/.cache/conformance, with a Node 22 where
 * this one is older. The output of each scenario stays there in `results`.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';
import { runBench, startServer, startService } from '../bench/run.mjs';
import { startForwarder } from '../test/conformance/forwarder.mjs';
import { referenceServers, startReferenceServer } from '../test/support/upstream/reference-servers.mjs';
import { fail, npm, prepare, readText, root } from './lib.mjs';

const suiteVersion = '0.2.0-alpha.12';
/** For machines whose own Node is older than the suite needs. */
const nodeVersion = '22.23.3';
const suiteNodeMin = 22;
const clientMaxMs = 60_000;
/** All runs took 9 minutes on two shared cores. */
const runMaxMs = 20 * 60_000;

const cache = join(root, 'node_modules', '.cache', 'conformance');
const suite = join(cache, 'node_modules', '@modelcontextprotocol', 'conformance');
const results = join(cache, 'results');
const client = join(root, 'test', 'conformance', 'client.mjs');

/** https, so that Slipway shows authorization servers its metadata document; the scenarios' browser knows the way. */
const publicUrl = 'https://conformance-test.local';

const revisions = ['2025-06-18', '2025-11-25', '2026-07-28'];
/** The suite lists the scenarios of these revisions; of others it takes those that apply. */
const listedRevisions = ['2025-11-25', '2026-07-28'];
/** Our fixtures of one era each, and the reference servers of test/vendor, which speak all revisions. */
const fixtures = { legacy: ['2025-06-18', '2025-11-25'], modern: ['2026-07-28'] };
const endpoints = ['connection', 'run', 'namespace'];
/** Servers tested side by side. */
const lanes = 2;
const clientRuns = [
  { name: 'client-2025-11-25', revision: '2025-11-25' },
  { name: 'client-2026-07-28', revision: '2026-07-28' },
];

const { values: options } = parseArgs({ options: { only: { type: 'string' }, scenario: { type: 'string' } } });
const chosen = (runs) => runs.filter(({ name }) => options.only === undefined || name.includes(options.only));

// ---- The suite itself.

/** The package with the binary alone: the one named `node` needs an install script. */
function nodePackage() {
  const platform = process.platform === 'win32' ? 'win' : process.platform;
  const prefix = platform === 'darwin' && process.arch === 'arm64' ? 'node-bin' : 'node';
  return `${prefix}-${platform}-${process.arch}`;
}

const isNodeFit = Number(process.versions.node.split('.')[0]) >= suiteNodeMin;
const suiteNode = isNodeFit ? process.execPath : join(cache, 'node_modules', nodePackage(), 'bin', 'node');

function ensureSuite() {
  const installed = readText(join(suite, 'package.json'));
  if (installed && JSON.parse(installed).version === suiteVersion && existsSync(suiteNode)) return;
  const packages = [`@modelcontextprotocol/conformance@${suiteVersion}`];
  if (!isNodeFit) packages.push(`${nodePackage()}@${nodeVersion}`);
  console.log(`Installing ${packages.join(' and ')} into ${cache}…`);
  mkdirSync(cache, { recursive: true });
  writeFileSync(join(cache, 'package.json'), '{ "private": true }\n');
  const args = ['install', '--prefix', cache, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const { status } = npm([...args, ...packages], { stdio: 'inherit' });
  if (status !== 0) fail('Installing the conformance suite failed; npm says why above.');
}

/** Runs the suite's command line; gives its exit code and all it wrote. */
function runSuite(args, env = {}) {
  const program = join(suite, 'dist', 'index.js');
  const child = spawn(suiteNode, [program, ...args], { env: { ...process.env, ...env } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const stop = () => child.kill('SIGKILL');
  process.once('exit', stop);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      process.removeListener('exit', stop);
      resolve({ code, output });
    });
  });
}

const expectedOf = (run) => join(root, 'test', 'conformance', 'expected', `${run.name}.yaml`);

function resultsOf(run) {
  const folder = join(results, run.name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Scenarios that a revision requires of a `server` or `client`, and those that the suite runs without counting them. */
async function scenariosOf(revision, leg) {
  const requirements = parse(readFileSync(join(suite, 'requirements', `${revision}.yaml`), 'utf8'));
  const others = requirements.not_scored.filter((each) => each.leg === leg && each.reason !== 'extension');
  const isChosen = (name) => leg === 'server' || options.scenario === undefined || name === options.scenario;
  return {
    required: requirements[leg].filter(isChosen),
    others: others.map(({ scenario }) => scenario).filter(isChosen),
  };
}

// ---- What failed, from the checks the suite leaves.

const isFailed = ({ status }) => status === 'FAILURE' || status === 'WARNING';

function checksIn(folder) {
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('checks.json'));
  return files.map((file) => ({
    scenario: file.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/s, ''),
    checks: JSON.parse(readFileSync(join(folder, file), 'utf8')),
  }));
}

/** Results of the suite for the expected failures: the entries that failed, and those that passed. */
function verdictsIn(output) {
  const entries = [...output.matchAll(/^ {2}([~✓]) (\S+)$/gm)];
  const withMark = (wantedMark) => entries.filter(([, mark]) => mark === wantedMark).map(([, , entry]) => entry);
  return {
    expected: withMark('~'),
    notes: withMark('✓').map((entry) => `${entry} is listed as expected to fail, and passed.`),
  };
}

/** One line for the run, and one for everything that is not as it should be. */
function report(run, { required, others }, { isGood, expected, notes }) {
  const scenarios = checksIn(run.folder).filter(
    ({ scenario }) => required.includes(scenario) || others.includes(scenario),
  );
  const passed = scenarios.filter(({ checks }) => !checks.some(isFailed)).map(({ scenario }) => scenario);
  const passedOf = (names) => `${names.filter((name) => passed.includes(name)).length} of ${names.length}`;
  const checks = scenarios.flatMap((each) => each.checks.map((check) => ({ scenario: each.scenario, ...check })));
  const failed = checks.filter(isFailed);
  const isExpected = ({ scenario, id }) => expected.includes(scenario) || expected.includes(`${scenario}:${id}`);
  const counts = [
    `${passedOf(required)} required scenarios passed, ${passedOf(others)} others`,
    `${checks.filter(({ status }) => status === 'SUCCESS').length} checks passed`,
    `${failed.length} failed, ${failed.filter(isExpected).length} of them expected`,
  ];
  console.log(`${isGood ? '✓' : '✗'} ${run.name}: ${counts.join('; ')}`);
  for (const check of failed.filter((each) => !isExpected(each))) {
    console.log(`    ${check.scenario}:${check.id} ${(check.errorMessage ?? check.description).slice(0, 300)}`);
  }
  for (const note of notes) console.log(`    ${note}`);
  if (!isGood) process.exitCode = 1;
}

// ---- The runs.

/** Starts a server; gives its address and the revisions in which it is tested directly. */
async function startTarget(server) {
  if (!(server in fixtures)) return { ...(await startReferenceServer(server)), direct: revisions };
  const { url } = await startServer(server, `../test/conformance/${server}-server.mjs`, []);
  return { url: `${url}/mcp`, direct: fixtures[server] };
}

/** The addresses of a server: its own and those of the three endpoints, to which a forwarder adds the key. */
async function addressesOf(service, server, target) {
  const namespace = `conformance-${server}`;
  await service.request('PUT', `/namespaces/${namespace}`);
  await service.connect(namespace, 'server', target.url);
  const run = await service.publish(`${namespace}/server`, { type: 'external', upstreamUrl: target.url });
  const connection = `${service.url}/connect/${namespace}`;
  const to = async (url) => (await startForwarder(url, service.key)).url;
  return {
    direct: target.url,
    connection: await to(`${connection}/server/mcp`),
    run: await to(run),
    namespace: await to(`${connection}/.mcp`),
  };
}

/** Tells the scenarios of extensions of a revision. */
async function extensionsOf(revision) {
  if (!listedRevisions.includes(revision)) return () => false;
  const requirements = parse(readFileSync(join(suite, 'requirements', `${revision}.yaml`), 'utf8'));
  const names = requirements.not_scored.filter(({ reason }) => reason === 'extension').map(({ scenario }) => scenario);
  return (scenario) => names.includes(scenario);
}

/** Runs the scenarios of a server once; gives each scenario's checks. @param direct run against the server itself, if any */
async function runServer(run, url, direct) {
  run.folder = resultsOf(run);
  const which = listedRevisions.includes(run.revision) ? '--requirements' : '--spec-version';
  const { output } = await runSuite(['server', '--url', url, which, run.revision, '-o', run.folder]);
  writeFileSync(join(run.folder, 'output.txt'), output);
  // Extensions are counted where the server has them.
  const isExtension = await extensionsOf(run.revision);
  const isCounted = ({ scenario, checks }) =>
    !isExtension(scenario) || !checks.some(isFailed) || direct?.passed.includes(scenario);
  const scenarios = checksIn(run.folder).filter(isCounted);
  if (scenarios.length === 0) throw new Error(`${run.name}: the suite ran no scenario:\n${output.slice(-1000)}`);
  const isPassed = ({ status }) => status === 'SUCCESS';
  const failing = scenarios.flatMap(({ scenario, checks }) =>
    checks.filter(isFailed).map(({ id }) => `${scenario}:${id}`),
  );
  const names = (isWanted) => scenarios.filter(({ checks }) => isWanted(checks)).map(({ scenario }) => scenario);
  return {
    passed: names((checks) => checks.some(isPassed) && !checks.some(isFailed)),
    failed: names((checks) => checks.some(isFailed)),
    idle: names((checks) => !checks.some(isPassed) && !checks.some(isFailed)),
    failing: new Set(failing),
    checks: scenarios.flatMap(({ scenario, checks }) =>
      checks.map((check) => ({ entry: `${scenario}:${check.id}`, ...check })),
    ),
  };
}

/** Expected failures of server runs by endpoint and by server and revision, and those that were seen. */
const lists = parse(readText(join(root, 'test', 'conformance', 'expected', 'server.yaml')));
const seen = new Set();

/** True if a list names the check or its scenario. */
function isExpected({ endpoint, server, revision }, entry) {
  const names = [endpoint, `${server}-${revision}`];
  return names.some((list) =>
    [entry, entry.split(':')[0]]
      .filter((entry) => lists[list]?.includes(entry))
      .map((one) => seen.add(`${list}: ${one}`))
      .some(Boolean),
  );
}

const countsOf = ({ passed, failed, idle }) => `${passed.length}/${failed.length}/${idle.length}`;

/**
 * Compares a run through Slipway with the run against the server itself. A check that fails in both is a problem of the
 * server or the suite; a check that fails only through Slipway must be in a list.
 */
function compare(run, through, direct) {
  const ownFailures = [...through.failing].filter((entry) => !direct?.failing.has(entry));
  const faults = ownFailures.filter((entry) => !isExpected(run, entry));
  // The checks of failed scenarios are among the failures.
  const counted = [...through.passed, ...through.failed];
  const lost = (direct?.passed ?? []).filter((scenario) => !counted.includes(scenario) && !isExpected(run, scenario));
  const isGood = faults.length + lost.length === 0;
  console.log(
    `${isGood ? '✓' : '✗'} ${run.name}: ${countsOf(through)}${direct ? `, direct ${countsOf(direct)}` : ''}; ` +
      `${ownFailures.length} checks fail through Slipway only, ${ownFailures.length - faults.length} of them expected`,
  );
  for (const entry of faults) {
    const { errorMessage, description } = through.checks.find((check) => check.entry === entry && isFailed(check));
    console.log(`    ${entry} ${(errorMessage ?? description).slice(0, 300)}`);
  }
  for (const scenario of lost) console.log(`    ${scenario} passes directly, and not through Slipway.`);
  if (through.idle.length > 0) console.log(`    not exercised: ${through.idle.join(', ')}`);
  if (!isGood) process.exitCode = 1;
}

async function runServerScenarios() {
  const all = [...Object.keys(fixtures), ...referenceServers].flatMap((server) =>
    revisions.flatMap((revision) =>
      endpoints.map((endpoint) => ({ name: `server-${endpoint}-${server}-${revision}`, server, revision, endpoint })),
    ),
  );
  const runs = chosen(all);
  if (runs.length === 0) return;
  console.log('Server scenarios: passed/failed/not exercised.');
  const service = await startService();
  const servers = [...new Set(runs.map(({ server }) => server))];
  const targets = {};
  for (const server of servers) {
    const target = await startTarget(server);
    targets[server] = { ...target, addresses: await addressesOf(service, server, target), results: {} };
  }
  // One run of a server at a time: some scenarios change it for all its clients.
  const queue = servers.values();
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (const server of queue) {
        const { direct, addresses, results: known } = targets[server];
        for (const run of runs.filter((each) => each.server === server)) {
          const { revision } = run;
          const base = { name: `server-direct-${server}-${revision}`, revision };
          if (direct.includes(revision)) known[revision] ??= await runServer(base, addresses.direct);
          compare(run, await runServer(run, addresses[run.endpoint], known[revision]), known[revision]);
        }
      }
    }),
  );
  if (runs.length < all.length) return;
  for (const [list, entries] of Object.entries(lists)) {
    for (const entry of entries.filter((one) => !seen.has(`${list}: ${one}`))) {
      console.log(`✗ ${list}: ${entry} is listed as expected to fail, and passed.`);
      process.exitCode = 1;
    }
  }
}

async function runClientScenarios() {
  const runs = chosen(clientRuns);
  if (runs.length === 0) return;
  const service = await startService({ env: { PUBLIC_URL: publicUrl } });
  await service.request('PUT', '/namespaces/conformance');
  const env = { SLIPWAY_URL: service.url, SLIPWAY_KEY: service.key, SLIPWAY_PUBLIC_URL: publicUrl };
  for (const run of runs) {
    run.folder = resultsOf(run);
    let isGood = true;
    const expected = [];
    const notes = [];
    const scenarios = await scenariosOf(run.revision, 'client');
    // One after the other: one of them measures how long the client waits.
    for (const scenario of [...scenarios.required, ...scenarios.others]) {
      const how = ['--scenario', scenario, '--spec-version', run.revision, '--force', '--timeout', String(clientMaxMs)];
      const what = ['--expected-failures', expectedOf(run), '-o', run.folder];
      const command = ['--command', `${process.execPath} ${client}`];
      const { code, output } = await runSuite(['client', ...command, ...how, ...what], env);
      const verdicts = verdictsIn(output);
      expected.push(...verdicts.expected);
      notes.push(...verdicts.notes);
      // The suite forgives a client that gives up only where giving up is right; its list of failures knows checks alone.
      const broken = verdicts.expected.length === 0 && /CLIENT (TIMED OUT|EXITED WITH ERROR).*/.exec(output)?.[0];
      if (broken) notes.push(`${scenario}: ${broken}`);
      if (code !== 0 || broken) isGood = false;
    }
    report(run, scenarios, { isGood, expected, notes });
  }
}

prepare();
ensureSuite();
await runBench(
  async () => {
    await runServerScenarios();
    await runClientScenarios();
    console.log(`What each scenario saw: ${results}`);
  },
  { maxMs: runMaxMs },
);
