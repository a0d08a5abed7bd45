/**
 * `npm run conformance`: the official MCP conformance suite against Slipway. Its server scenarios run against the MCP
 * endpoints of connections with a fixture server behind them, its client scenarios against Slipway as the client of
 * the suite's own servers. `test/conformance/expected` holds a list of known failures for each run, with reasons: a
 * failure that is not listed fails the run, and so does a listed one that passes. Extensions are not offered, and their
 * scenarios not counted.
 *
 *   npm run conformance -- [--only <run>] [--scenario <client scenario>]
 *
 * The suite is no dependency: it is installed on first use, into node_modules/.cache/conformance, with a Node 22 where
 * this one is older. What each scenario saw is left there in `results`.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { runBench, startServer, startService } from '../bench/run.mjs';
import { startForwarder } from '../test/conformance/forwarder.mjs';
import { fail, npm, prepare, readText, root } from './lib.mjs';

const suiteVersion = '0.2.0-alpha.12';
/** For machines whose own Node is older than the suite needs. */
const nodeVersion = '22.23.3';
const suiteNodeMin = 22;
const clientMaxMs = 60_000;
/** All six runs took 128 s on two shared cores. */
const runMaxMs = 20 * 60_000;

const cache = join(root, 'node_modules', '.cache', 'conformance');
const suite = join(cache, 'node_modules', '@modelcontextprotocol', 'conformance');
const results = join(cache, 'results');
const client = join(root, 'test', 'conformance', 'client.mjs');

/** https, so that Slipway shows authorization servers its metadata document; the scenarios' browser knows the way. */
const publicUrl = 'https://conformance-test.local';

const serverRuns = [
  { name: 'server-2025-11-25', revision: '2025-11-25', fixture: 'legacy' },
  { name: 'server-2026-07-28', revision: '2026-07-28', fixture: 'modern' },
  { name: 'server-2025-11-25-on-modern', revision: '2025-11-25', fixture: 'modern' },
  { name: 'server-2026-07-28-on-legacy', revision: '2026-07-28', fixture: 'legacy' },
];
const clientRuns = [
  { name: 'client-2025-11-25', revision: '2025-11-25' },
  { name: 'client-2026-07-28', revision: '2026-07-28' },
];

const { values: options } = parseArgs({ options: { only: { type: 'string' }, scenario: { type: 'string' } } });
const chosen = (runs) => runs.filter(({ name }) => options.only === undefined || name === options.only);

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
  const { parse } = await import('yaml');
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
  const withMark = (wanted) => entries.filter(([, mark]) => mark === wanted).map(([, , entry]) => entry);
  return {
    expected: withMark('~'),
    notes: withMark('✓').map((entry) => `${entry} is listed as expected to fail, and passed.`),
  };
}

/** One line for the run, and one for everything that is not as it should be. */
function report(run, { required, others }, { isGood, expected, notes }) {
  const found = checksIn(run.folder).filter(({ scenario }) => required.includes(scenario) || others.includes(scenario));
  const passed = found.filter(({ checks }) => !checks.some(isFailed)).map(({ scenario }) => scenario);
  const passedOf = (names) => `${names.filter((name) => passed.includes(name)).length} of ${names.length}`;
  const checks = found.flatMap((each) => each.checks.map((check) => ({ scenario: each.scenario, ...check })));
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

async function runServerScenarios() {
  const runs = chosen(serverRuns);
  if (runs.length === 0) return;
  const service = await startService();
  await service.request('PUT', '/namespaces/conformance');
  const forwarders = {};
  for (const fixture of new Set(runs.map((run) => run.fixture))) {
    const server = await startServer(fixture, `../test/conformance/${fixture}-server.mjs`, []);
    await service.connect('conformance', fixture, `${server.url}/mcp`);
    forwarders[fixture] = await startForwarder(`${service.url}/connect/conformance/${fixture}/mcp`, service.key);
  }
  for (const run of runs) {
    run.folder = resultsOf(run);
    const where = ['--url', forwarders[run.fixture].url, '--requirements', run.revision];
    const { code, output } = await runSuite([
      'server',
      ...where,
      '--expected-failures',
      expectedOf(run),
      '-o',
      run.folder,
    ]);
    writeFileSync(join(run.folder, 'output.txt'), output);
    report(run, await scenariosOf(run.revision, 'server'), { isGood: code === 0, ...verdictsIn(output) });
  }
  await Promise.all(Object.values(forwarders).map((forwarder) => forwarder.close()));
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
