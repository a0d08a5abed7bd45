/**
 * `npm run lab compat`: published MCP clients and servers, each directly and through Slipway's three kinds of MCP endpoint. Prints
 * the tables of clients, servers and features of docs/contributing/compatibility.md. Exits with 1 where Slipway makes a difference that is not
 * expected, or a client fails directly.
 *
 *   npm run lab compat -- [--only <parts of clients' or servers' names, with commas>]
 *
 * The packages are not dependencies: they are installed on first use, into node_modules/.cache/compat.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { freePort, runBench, startService, tempFolder } from '../bench/run.mjs';
import { fail, npm, readText, root } from './lib.mjs';

const packages = {
  'sdk-1.8': 'npm:@modelcontextprotocol/sdk@1.8.0',
  'sdk-1.12': 'npm:@modelcontextprotocol/sdk@1.12.3',
  'sdk-1.20': 'npm:@modelcontextprotocol/sdk@1.20.2',
  '@modelcontextprotocol/sdk': '1.32.2',
  '@modelcontextprotocol/client': '2.4.0',
  '@modelcontextprotocol/server-everything': '2026.8.31',
  '@modelcontextprotocol/server-filesystem': '2026.8.31',
  '@modelcontextprotocol/server-map': '2.0.3',
  '@modelcontextprotocol/server-memory': '2026.8.31',
  '@ai-sdk/mcp': '1.0.101',
  '@langchain/mcp-adapters': '1.1.4',
  '@langchain/core': '1.4.0',
  '@langchain/langgraph': '1.7.3',
  '@openai/agents': '0.20.0',
  'mcp-use': '1.34.6',
  langchain: '1.4.0',
  react: '19.3.1',
  zod: '4.6.7',
  fastmcp: '4.20.16',
  supergateway: '4.0.0',
  'mcp-proxy': '6.7.19',
};

const cache = join(root, 'node_modules', '.cache', 'compat');
const installed = join(cache, 'installed.json');
const programs = { client: 'client.mjs', fastmcp: 'fastmcp.mjs', serve: 'serve.mjs', odd: 'odd.mjs' };
const endpoints = ['connection', 'run', 'namespace'];
const clientMaxMs = 90_000;
const serverMaxMs = 30_000;
const runMaxMs = 20 * 60_000;

const { values: options } = parseArgs({ options: { only: { type: 'string' } } });
const isChosen = (name) => options.only === undefined || options.only.split(',').some((part) => name.includes(part));

// ---- The servers.

const bin = (path) => join(cache, 'node_modules', path);
const example = (name) => [bin(`@modelcontextprotocol/sdk/dist/esm/examples/server/${name}.js`)];
const everything = bin('@modelcontextprotocol/server-everything/dist/index.js');
const memory = bin('@modelcontextprotocol/server-memory/dist/index.js');
const gatewayTo = (command, port, ...more) => [
  bin('supergateway/dist/index.js'),
  ...['--stdio', `${process.execPath} ${command}`, '--port', port, '--logLevel', 'none', ...more],
];
const gateway = (port, ...more) => gatewayTo(memory, port, ...more);
const proxy = (port) => [
  bin('mcp-proxy/dist/bin/mcp-proxy.mjs'),
  '--host',
  '127.0.0.1',
  '--port',
  port,
  process.execPath,
  everything,
];
const graph = { tool: 'read_graph', input: {} };
const stream = { tool: 'start-notification-stream', input: { interval: 50, count: 5 }, listenMs: 1000 };

/**
 * Each server: its command by port, the path of its endpoint, the port of those that have a fixed one, the tool that is
 * called, and how long messages after the call are waited for.
 */
const servers = {
  'server-everything': { command: () => [everything, 'streamableHttp'] },
  'server-everything (SSE)': { command: () => [everything, 'sse'], path: '/sse' },
  'server-everything, toggle-simulated-logging': {
    command: () => [everything, 'streamableHttp'],
    tool: 'toggle-simulated-logging',
    input: {},
    listenMs: 6000,
    // Messages of random levels.
    varies: ['logs'],
  },
  'server-everything, toggle-subscriber-updates': {
    command: () => [everything, 'streamableHttp'],
    tool: 'toggle-subscriber-updates',
    input: {},
    listenMs: 6000,
  },
  'server-everything by mcp-proxy': { command: proxy },
  'server-everything by mcp-proxy (SSE)': { command: proxy, path: '/sse' },
  'server-memory by supergateway': {
    command: (port) => gateway(port, '--outputTransport', 'streamableHttp'),
    ...graph,
  },
  'server-memory by supergateway (sessions)': {
    command: (port) => gateway(port, '--outputTransport', 'streamableHttp', '--stateful'),
    ...graph,
  },
  'server-memory by supergateway (SSE)': { command: (port) => gateway(port), path: '/sse', ...graph },
  'FastMCP 4.20': { program: 'fastmcp', tool: 'log', input: {}, listenMs: 1000 },
  'FastMCP 4.20 (stateless)': { program: 'fastmcp', args: ['stateless'], tool: 'log', input: {}, listenMs: 1000 },
  'SDK, simpleStreamableHttp': { command: () => example('simpleStreamableHttp'), ...stream },
  'SDK, sseAndStreamableHttpCompatibleServer': {
    command: () => example('sseAndStreamableHttpCompatibleServer'),
    port: 3000,
    ...stream,
  },
  'SDK, jsonResponseStreamableHttp': {
    command: () => example('jsonResponseStreamableHttp'),
    port: 3000,
    tool: 'multi-greet',
    input: { name: 'you' },
    listenMs: 1000,
  },
  'SDK, ssePollingExample': {
    command: () => example('ssePollingExample'),
    port: 3001,
    tool: 'long-task',
    input: {},
    listenMs: 1000,
  },
};

/** Folders of the filesystem server: its own, and those that a client offers. */
const folders = ['base', 'first', 'second'].map((name) => join(cache, 'folders', name));
const filesystem = `${bin('@modelcontextprotocol/server-filesystem/dist/index.js')} ${folders[0]}`;

/** The module that is published, as one file. */
const bundle = join(cache, 'module.mjs');

/** Servers of one feature, each with the client that uses it, and what that client sees where a difference is expected. */
const features = {
  'Roots: server-filesystem by supergateway (sessions)': {
    command: (port) => gatewayTo(filesystem, port, '--outputTransport', 'streamableHttp', '--stateful'),
    client: 'sdk 1.32 (roots)',
    tool: 'list_allowed_directories',
    input: {},
    roots: folders.slice(1).map((folder) => pathToFileURL(folder).href),
  },
  'Apps: server-map': {
    command: () => [bin('@modelcontextprotocol/server-map/dist/index.js')],
    client: 'sdk 1.32 (Apps)',
    tool: 'show-map',
    input: {},
  },
  '2026-07-28: fixture of the conformance run': {
    command: (port) => [join(root, 'test', 'conformance', 'modern-server.mjs'), '--port', port],
    client: 'client 2.4 (2026-07-28)',
    tool: 'test_trigger_tool_change',
    input: {},
  },
  ...Object.fromEntries(
    Object.entries({
      coded: 'Coded bodies',
      ids: 'Ids as text',
      heartbeats: 'Heartbeats as events',
      batches: 'Batches of the server',
      types: 'Capital media types',
      redirects: 'Redirects within the origin',
      content: 'Results without content',
      task: 'params.task to a server without tasks',
    }).map(([kind, name]) => [
      name,
      { program: 'odd', args: [kind], client: kind === 'task' ? 'sdk 1.32 (task)' : 'sdk 1.32', input: {} },
    ]),
  ),
  'Hosted module': { program: 'serve', args: [bundle], through: throughHosting },
  'Uplink by @smithery/cli 4.11: server-everything': {
    command: () => [everything, 'streamableHttp'],
    client: 'sdk 1.32 (no capabilities)',
    through: throughUplink,
  },
  'Uplink by @smithery/cli 4.11: server-everything, elicitation': {
    command: () => [everything, 'streamableHttp'],
    through: throughUplink,
    // The tool initializes the local server without capabilities, so that it lists no tool that asks.
    expected: 'tools 13, call Echo: hi, resources 7, prompts 4, progress',
  },
};

// ---- Programs in the folder of the packages.

const children = new Set();

/** Starts Node there, on a file or on a program of test/compat that it reads from stdin. */
function node(args, { program, env = {} } = {}) {
  const child = spawn(process.execPath, program ? ['--input-type=module', '-', ...args] : args, {
    cwd: cache,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  children.add(child);
  child.once('exit', () => children.delete(child));
  child.output = '';
  for (const output of [child.stdout, child.stderr]) {
    output.setEncoding('utf8').on('data', (text) => (child.output += text));
  }
  // supergateway ends with its stdin.
  if (program) child.stdin.end(readFileSync(join(root, 'test', 'compat', programs[program])));
  return child;
}

/** Stops a program and the processes it started. */
function end(child) {
  if (!children.has(child)) return Promise.resolve();
  const ended = new Promise((resolve) => child.once('exit', resolve));
  process.kill(-child.pid, 'SIGKILL');
  return ended;
}
process.once('exit', () => children.forEach(end));

const accepts = (port) =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });

async function startPublished({ command, program, args = [], path = '/mcp', port: fixed }) {
  const port = fixed ?? (await freePort());
  if (fixed && (await accepts(fixed))) throw new Error(`Port ${fixed} is in use, which this server needs.`);
  const env = { PORT: String(port), MCP_PORT: String(port) };
  const child = node(program ? [String(port), ...args] : command(String(port)), { program, env });
  const until = Date.now() + serverMaxMs;
  while (!(await accepts(port))) {
    if (Date.now() > until || child.exitCode !== null) throw new Error(`The server did not start:\n${child.output}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return { child, url: `http://127.0.0.1:${port}${path}` };
}

/** Returns the counts and complete responses that a client got at an address. */
async function use(name, url, key, { tool, input, listenMs, roots } = {}) {
  const child = node([name, JSON.stringify({ url, key, tool, input, listenMs, roots })], { program: 'client' });
  const timer = setTimeout(() => end(child), clientMaxMs);
  await new Promise((resolve) => child.once('close', resolve));
  clearTimeout(timer);
  const line = child.output
    .trim()
    .split('\n')
    .findLast((each) => each.startsWith('{'));
  return line ? JSON.parse(line) : { saw: { connect: 'no', failed: 'no response in time' }, answers: {} };
}

// ---- The tables.

let count = 0;

/** Connects and publishes a server. @returns the addresses of the three endpoints */
async function throughSlipway(service, url) {
  const namespace = `compat-${(count += 1)}`;
  await service.request('PUT', `/namespaces/${namespace}`);
  await service.connect(namespace, 'it', url);
  await service.publish(`${namespace}/server`, { type: 'external', upstreamUrl: url });
  return [`/connect/${namespace}/it/mcp`, `/run/${namespace}--server`, `/connect/${namespace}/.mcp`].map(
    (path) => `${service.url}${path}`,
  );
}

/** Publishes the module, and connects to it. @returns the addresses of the three endpoints */
async function throughHosting(service) {
  const namespace = `compat-${(count += 1)}`;
  const server = `${namespace}/server`;
  await service.request('PUT', `/namespaces/${namespace}`);
  const runUrl = await service.publish(server, { type: 'hosted' }, readFileSync(bundle));
  await service.request('PUT', `/connect/${namespace}/it`, { server });
  return [`${service.url}/connect/${namespace}/it/mcp`, runUrl, `${service.url}/connect/${namespace}/.mcp`];
}

/** Pairs server-everything over stdio. @returns the addresses of its endpoints; a local server is not published */
async function throughUplink(service) {
  const namespace = `compat-${(count += 1)}`;
  await service.request('PUT', `/namespaces/${namespace}`);
  const home = tempFolder();
  const addresses = ['BASE_URL', 'CONNECT_BASE_URL', 'UPLINK_BASE_URL', 'URL'].map((name) => [
    `SMITHERY_${name}`,
    service.url,
  ]);
  const env = {
    ...Object.fromEntries(addresses),
    HOME: home,
    TMPDIR: home,
    SMITHERY_API_KEY: service.key,
    SMITHERY_CONFIG_PATH: join(home, 'settings'),
  };
  const cli = join(root, 'node_modules', '@smithery', 'cli', 'dist', 'index.js');
  const local = [process.execPath, everything, 'stdio'];
  const child = node([cli, 'mcp', 'add', '--id', 'it', '--namespace', namespace, '--', ...local], { env });
  const until = Date.now() + clientMaxMs;
  const isPaired = () =>
    service.request('GET', `/connect/${namespace}/it`).then(
      ({ status }) => status.state === 'connected',
      () => false, // not created yet
    );
  while (!(await isPaired())) {
    if (Date.now() > until || child.exitCode !== null) throw new Error(`The tool did not pair:\n${child.output}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return [`${service.url}/connect/${namespace}/it/mcp`, undefined, `${service.url}/connect/${namespace}/.mcp`];
}

const described = (saw) =>
  Object.entries(saw)
    .filter(([part]) => part !== 'connect' || saw.connect === 'no')
    .map(([part, value]) => (value === true ? part : value === false ? `no ${part}` : `${part} ${value}`))
    .join(', ');

/** Strings that differ from client to client, even without Slipway. */
const minted = [
  // Ids of sessions and views.
  [/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, '(id)'],
  // Times in log messages.
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, '(time)'],
];
/** Members that one revision of MCP has and another one has not. */
const ofRevision = [
  // Slipway creates the tasks that a tool needs, so that every client can call it. 2026-07-28 has no such member.
  [/,"execution":\{"taskSupport":"\w+"\}/g, ''],
  // 2026-07-28 marks results and how long they may be kept.
  [/,"resultType":"complete"|"resultType":"complete",/g, ''],
  [/,"ttlMs":\d+|"ttlMs":\d+,/g, ''],
  [/,"cacheScope":"\w+"|"cacheScope":"\w+",/g, ''],
];
/** Names that a namespace gives to what its connections have. */
const qualified = [
  // Several connections may have tools and prompts of one name.
  [/"name":"it__/g, '"name":"'],
  // And resources of one URI.
  [/connection:\/\/it\//g, ''],
  // Lists are the namespace's, and so is the server that they name.
  [/,"_meta":\{"io\.modelcontextprotocol\/serverInfo":\{[^{}]*\}\}/g, ''],
  [/"_meta":\{"io\.modelcontextprotocol\/serverInfo":\{[^{}]*\}\},/g, ''],
];

/** Answers without what is meant to differ. */
function comparable({ saw, answers }, endpoint, varies, isOtherEra) {
  const comparison = { saw, ...answers };
  for (const part of varies) delete comparison[part];
  // A namespace is a server of its own, with its own name and all capabilities, since its connections come and go.
  if (endpoint === 'namespace') delete comparison.initialize;
  // Slipway speaks 2026-07-28 with a client that prefers it, whose questions are inside of results.
  if (isOtherEra) for (const part of ['initialize', 'elicitation']) delete comparison[part];
  const replaced = [...minted, ...ofRevision, ...(endpoint === 'namespace' ? qualified : [])];
  return JSON.parse(replaced.reduce((text, [pattern, by]) => text.replace(pattern, by), JSON.stringify(comparison)));
}

/** The first difference of two values, or undefined. */
function difference(one, other, path = '') {
  const isParent = (value) => typeof value === 'object' && value !== null;
  if (!isParent(one) || !isParent(other) || Array.isArray(one) !== Array.isArray(other)) {
    const shown = (value) => String(JSON.stringify(value)).slice(0, 300);
    return one === other ? undefined : `${path}: ${shown(one)} directly, ${shown(other)} through`;
  }
  for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
    const changed = difference(one[key], other[key], `${path}/${key}`);
    if (changed) return changed;
  }
  return undefined;
}

const faults = [];

function cell(row, endpoint, direct, through, { varies = [], expected }) {
  const isOtherEra = direct.answers.initialize?.era !== through.answers.initialize?.era;
  const [one, other] = [direct, through].map((each) => comparable(each, endpoint, varies, isOtherEra));
  const parts = Object.keys({ ...one, ...other });
  const differences = parts.flatMap((part) => difference(one[part], other[part], part) ?? []);
  if (expected === described(through.saw)) return expected;
  if (expected) faults.push(`${row}, ${endpoint}: is not as expected, which is ${expected}`);
  if (differences.length === 0) return 'same';
  faults.push(`${row}, ${endpoint}:\n  ${differences.join('\n  ')}`);
  return described(through.saw) === described(direct.saw)
    ? `other ${differences.map((text) => text.split(/[/:]/)[0]).join(', ')}`
    : described(through.saw);
}

async function row(service, name, client, server, more = {}) {
  const direct = await use(client, server.url, '', more);
  // Nothing is compared with what fails by itself.
  if (direct.saw.failed) faults.push(`${name}, directly: ${described(direct.saw)}`);
  const through = [];
  const urls = await (more.through ?? throughSlipway)(service, server.url);
  for (const url of urls) through.push(url && (await use(client, url, service.key, more)));
  const cells = through.map((each, index) => (each ? cell(name, endpoints[index], direct, each, more) : '-'));
  // For a call that works directly, one word is enough; a difference is printed in full.
  const isAnswered = direct.saw.call !== undefined && !direct.saw.call.startsWith('fails');
  const shown = described(isAnswered ? { ...direct.saw, call: true } : direct.saw);
  console.log(`| ${[name, shown, ...cells].join(' | ')} |`);
}

function ensurePackages() {
  const expected = JSON.stringify(packages);
  if (readText(installed) === expected) return;
  console.log(`Installing the clients and servers into ${cache}…`);
  mkdirSync(cache, { recursive: true });
  writeFileSync(join(cache, 'package.json'), JSON.stringify({ private: true, dependencies: packages }));
  const args = [
    '--prefix',
    cache,
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
    '--legacy-peer-deps',
  ];
  if (npm(['install', ...args], { stdio: 'inherit' }).status !== 0)
    fail('The installation failed; npm says why above.');
  writeFileSync(installed, expected);
}

const titles = (first) => `\n| ${first} | Directly | Connection | Run | Namespace |\n| --- | --- | --- | --- | --- |`;

async function main() {
  ensurePackages();
  const service = await startService();
  const list = node(['--list'], { program: 'client' });
  await new Promise((resolve) => list.once('close', resolve));
  console.log(titles('Client, with server-everything'));
  const names = JSON.parse(list.output).filter(isChosen);
  for (const [server, isSse] of [
    ['server-everything', false],
    ['server-everything (SSE)', true],
  ]) {
    const reference = await startPublished(servers[server]);
    for (const name of names.filter((name) => name.endsWith('(SSE)') === isSse))
      await row(service, name, name, reference);
    await end(reference.child);
  }
  console.log(titles('Server, with the SDK 1.32'));
  for (const [name, each] of Object.entries(servers).filter(([name]) => isChosen(name))) {
    const server = await startPublished(each);
    const client = each.path === '/sse' ? 'sdk 1.32 (SSE)' : 'sdk 1.32';
    await row(service, name, client, server, each);
    await end(server.child);
  }
  console.log(titles('Feature and server'));
  for (const folder of folders) mkdirSync(folder, { recursive: true });
  await build({
    entryPoints: [join(root, 'test', 'compat', 'module.mjs')],
    outfile: bundle,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'esnext',
    conditions: ['workerd', 'worker', 'browser'],
    logLevel: 'silent',
  });
  for (const [name, each] of Object.entries(features).filter(([name]) => isChosen(name))) {
    const server = await startPublished(each);
    await row(service, name, each.client ?? 'sdk 1.32', server, each);
    await end(server.child);
  }
  if (faults.length === 0) return;
  console.error(`\nDifferent through Slipway, or failed directly:\n${faults.join('\n')}`);
  process.exitCode = 1;
}

await runBench(main, { maxMs: runMaxMs });
