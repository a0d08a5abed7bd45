#!/usr/bin/env node
/**
 * `npm run test:image`: builds docker/Dockerfile with buildah, runs the image as a container runs, and uses it.
 *
 * The file system of the image runs under bubblewrap: read-only but for /tmp and /data, uid 1000, no capabilities, its own
 * processes, the network of this machine. A Postgres of this repository and a redis-server run next to it. Where the base
 * image cannot be pulled, one is made of Debian packages and the npm package of the same Node.
 *
 * Prints the sizes of the parts and the time from the start to `/ready` (median of five), and publishes and calls hosted
 * code that tries to get out, at both isolation levels. Fails if the application takes more than 330 MB.
 *
 * Then the target `single`, with no other container: as uid 1000 with 512 MB where memory groups can be made, killed ten
 * times, without a network, next to a second container on its data; as root; as a user id without a name; on data of another
 * Postgres; with a module. Needs root.
 */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { apiOf, freePort, pairUplink, runBench, start, tempFolder, until } from '../bench/run.mjs';
import { ensureBuilt, ensureInstalled, root } from './lib.mjs';

const baseName = /^ARG NODE_IMAGE=(\S+)/m.exec(readFileSync(join(root, 'docker/Dockerfile'), 'utf8'))[1];
const applicationMbMax = 330;
const starts = 5;

/** Tools without which this cannot run: their names. */
function missingTools() {
  const isThere = (tool) => !spawnSync(tool, ['--version']).error;
  const missing = ['buildah', 'mmdebstrap', 'bwrap', 'redis-server'].filter((tool) => !isThere(tool));
  return process.getuid() === 0 ? missing : [...missing, 'root'];
}

/** Runs a tool to its end and gives its output. @throws Error with the end of its output */
function run(tool, args, input) {
  const env = { ...process.env, BUILDAH_ISOLATION: 'chroot', STORAGE_DRIVER: 'vfs' };
  const result = spawnSync(tool, args, { cwd: root, env, input, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  if (result.status !== 0) throw new Error(`${tool} ${args[0]}: ${(result.stdout + result.stderr).slice(-3000)}`);
  return result.stdout.trim();
}

/** Makes the base image as the Dockerfile names it, unless this machine has it or can pull it. */
function ensureBase() {
  if (run('buildah', ['images', '-q', '--filter', `reference=${baseName}`])) return;
  const pulled = spawnSync('buildah', ['pull', '-q', `docker.io/library/${baseName}`], {
    env: { ...process.env, STORAGE_DRIVER: 'vfs' },
  });
  if (pulled.status === 0) return;
  const [, major, suite] = /node:(\d+)-(\w+)/.exec(baseName);
  console.log(`${baseName} cannot be pulled: made of Debian ${suite} and the npm package of Node ${major}.`);
  const folder = tempFolder();
  const sources = ['/etc/apt/sources.list', '/etc/apt/sources.list.d/debian.sources'].filter(existsSync);
  const packages = '--include=ca-certificates,util-linux';
  run('mmdebstrap', ['--variant=minbase', packages, suite, join(folder, 'root.tar'), ...sources]);
  mkdirSync(join(folder, 'npm'));
  run('npm', ['install', '--prefix', join(folder, 'npm'), `node-linux-${process.arch}@${major}`, 'npm@10']);
  const certificates = process.env.NODE_EXTRA_CA_CERTS;
  if (certificates) writeFileSync(join(folder, 'ca.pem'), readFileSync(certificates));
  const lines = [
    'FROM scratch',
    'ADD root.tar /',
    `COPY npm/node_modules/node-linux-${process.arch}/bin/node /usr/local/bin/node`,
    'COPY npm/node_modules/npm /usr/local/lib/node_modules/npm',
    'RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm',
    'RUN ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx',
    'RUN useradd --uid 1000 --create-home node',
    // A company's registry may have a certificate of the company.
    ...(certificates ? ['COPY ca.pem /etc/ssl/ca.pem', 'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/ca.pem'] : []),
  ];
  writeFileSync(join(folder, 'Containerfile'), lines.join('\n'));
  run('buildah', ['build', '--pull-never', '-t', baseName, '-f', join(folder, 'Containerfile'), folder]);
}

const containers = [];

/** Builds a target of the image, or another file on top of it. @returns the folder that holds its file system, and its configuration */
function build(target, file = 'docker/Dockerfile', context = '.') {
  const commit = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).stdout.trim();
  const args = [
    'build',
    '--pull-never',
    '-f',
    file,
    ...(file === 'docker/Dockerfile' ? ['--target', target] : []),
    ...['--format', 'docker', '-t', `slipway-${target}`],
    '--build-arg',
    `COMMIT=${commit}`,
  ];
  run('buildah', [...args, context]);
  const container = run('buildah', ['from', '--pull-never', `slipway-${target}`]);
  containers.push(container);
  const folder = run('buildah', ['mount', container]);
  const { config } = JSON.parse(run('buildah', ['inspect', '--type', 'image', `slipway-${target}`])).Docker;
  return { container, folder, config };
}

/** MB of a folder of the image. */
const mbOf = (...paths) =>
  run('du', ['-scm', ...paths.filter(existsSync)])
    .split('\n')
    .at(-1)
    .split('\t')[0];

function measure(folder) {
  const app = join(folder, 'app');
  const packages = (...names) => mbOf(...names.map((name) => join(app, 'node_modules', name)));
  const whole = Number(mbOf(app));
  const parts = {
    workerd: packages('workerd', '@cloudflare'),
    esbuild: packages('esbuild', '@esbuild'),
    'AWS SDK': packages('@aws-sdk', '@smithy', '@aws-crypto'),
    'Swagger UI': packages('swagger-ui-dist'),
    'all packages': packages('.'),
    'code of Slipway': mbOf(join(app, 'dist')),
    'application, all': whole,
    'image, all': mbOf(folder),
  };
  console.log(
    Object.entries(parts)
      .map(([part, mb]) => `${part} ${mb} MB`)
      .join(', '),
  );
  if (whole > applicationMbMax) throw new Error(`The application takes ${whole} MB, more than ${applicationMbMax}.`);
  const { components } = JSON.parse(readFileSync(join(app, 'sbom.json'), 'utf8'));
  console.log(`sbom.json lists ${components.length} packages`);
}

/**
 * Runs the image's command, or another one.
 *
 * @param data the folder for /data; without one it is empty and goes with the container
 * @param uid 0 is root with the capabilities that Docker gives it; another one has none
 * @param group of memory, for all processes of the container
 * @param args further ones for bubblewrap
 */
async function startImage(
  { folder, config },
  settings,
  { command = config.Cmd, data, uid = 1000, group, args = [] } = {},
) {
  const port = await freePort();
  const env = Object.entries({ ...Object.fromEntries(config.Env.map((pair) => pair.split(/=(.*)/s))), ...settings });
  const key = settings.BOOTSTRAP_API_KEY;
  const bubblewrap = [
    ...['--ro-bind', folder, '/', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'],
    ...(data ? ['--bind', data, '/data'] : ['--tmpfs', '/data']),
    ...['--unshare-pid', '--unshare-ipc', '--die-with-parent', '--cap-drop', 'ALL', ...args],
    ...(uid === 0
      ? ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'KILL', 'SETGID', 'SETUID'].flatMap((name) => ['--cap-add', `CAP_${name}`])
      : ['--unshare-user', '--uid', String(uid), '--gid', uid === 1000 ? '1000' : '0']),
    ...['--clearenv', '--chdir', config.WorkingDir, ...env.flatMap(([name, value]) => ['--setenv', name, value])],
    ...['--setenv', 'PORT', String(port), '--setenv', 'PUBLIC_URL', `http://127.0.0.1:${port}`],
    ...command,
  ];
  const child = group
    ? start(
        'the image',
        ['-c', 'echo $$ > "$0" && exec bwrap "$@"', join(group, 'cgroup.procs'), ...bubblewrap],
        {},
        'sh',
      )
    : start('the image', bubblewrap, {}, 'bwrap');
  const url = `http://127.0.0.1:${port}`;
  return { child, url, key, ...apiOf({ child, url, key }) };
}

async function startReady(image, settings, options) {
  const startedAt = performance.now();
  const service = await startImage(image, settings, options);
  await until(service.child, 60_000, async () => (await fetch(`${service.url}/ready`)).ok);
  return { ...service, startMs: performance.now() - startedAt };
}

/** The process of the service, which bubblewrap started. */
function pidOf({ child }) {
  let { pid } = child;
  while (readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'bwrap') {
    pid = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'));
  }
  return pid;
}

/** Runs a command in a running container, as `docker exec` does. @throws Error when it fails */
function execIn(image, service, command) {
  const environment = readFileSync(`/proc/${pidOf(service)}/environ`, 'utf8')
    .split('\0')
    .filter(Boolean);
  const namespaces = ['-t', String(pidOf(service)), '-m', '-p', '-i', '-U', '--preserve-credentials'];
  return run('nsenter', [...namespaces, '--', 'env', '-i', '-C', image.config.WorkingDir, ...environment, ...command]);
}

/** Sends SIGTERM to the service, which bubblewrap does not pass on, and waits for its end. */
async function stopImage({ child }) {
  const ended = once(child, 'exit');
  process.kill(pidOf({ child }), 'SIGTERM');
  const [code] = await ended;
  if (code !== 0) throw new Error(`After SIGTERM the service ended with code ${code}: ${child.output}`);
}

/** Hosted code whose tool reports what it reached. */
const hostileModule = (addresses) => `
import fs from 'node:fs';
const attempt = async (work) => { try { return await work(); } catch (error) { return 'refused: ' + error.message; } };
const tools = [{ name: 'escape', description: 'Tries to get out', inputSchema: { type: 'object' } }];
const results = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'hostile', version: '1.0.0' },
  }),
  'tools/list': () => ({ tools }),
  'tools/call': async () => {
    console.log('trying to get out');
    const reached = {
      environment: Object.keys(process.env),
      files: ['/app/package.json', '/data', '/etc/passwd', '/proc/1/environ'].filter((path) => fs.existsSync(path)),
      process: await attempt(async () => String((await import('node:child_process')).execSync('id'))),
    };
    for (const address of ${JSON.stringify(addresses)}) {
      reached[address] = await attempt(async () => (await fetch('http://' + address + '/')).status);
    }
    return { content: [{ type: 'text', text: JSON.stringify(reached) }] };
  },
};
export default { async fetch(request) {
  const { id, method, params } = await request.json().catch(() => ({}));
  if (id === undefined) return new Response(null, { status: request.method === 'POST' ? 202 : 405 });
  const result = await results[method]?.(params);
  return Response.json({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'unknown' } }) });
} };`;

/** A module inside a connection, which the image compiles. */
const source = `import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
export default () => {
  const server = new McpServer({ name: 'source', version: '1.0.0' });
  server.registerTool('here', {}, async () => ({ content: [{ type: 'text', text: 'compiled' }] }));
  return server.server;
};`;

/** Publishes, calls over REST, reads the logs, calls a local server through an uplink, and a module inside a connection. */
async function use(service, level, neighbours) {
  const { request } = service;
  const metrics = await fetch(`${service.url}/metrics`).then((response) => response.text());
  if (!metrics.includes(`slipway_hosting_isolation{level="${level}"} 1`)) throw new Error(`The level is not ${level}.`);
  await request('PUT', '/namespaces/image');
  const server = `image/${level}`;
  const host = new URL(service.url).host;
  const addresses = [host, `localhost:${new URL(service.url).port}`, ...neighbours, '169.254.169.254', '[::1]:80'];
  const mcpUrl = await service.publish(server, { type: 'hosted' }, hostileModule(addresses));
  await service.connect('image', level, mcpUrl);
  const { content } = await request('POST', `/connect/image/${level}/.tools/escape`, {});
  const { environment, files, process: child, ...statuses } = JSON.parse(content[0].text);
  if (environment.length > 0 || files.length > 0 || !child.startsWith('refused')) {
    throw new Error(`Hosted code reached ${content[0].text}`);
  }
  for (const [address, status] of Object.entries(statuses)) {
    if (status !== 403) throw new Error(`Hosted code got ${status} from ${address}.`);
  }
  const logs = `/servers/${encodeURIComponent(server)}/logs`;
  await until(service.child, 20_000, async () =>
    JSON.stringify(await request('GET', logs)).includes('trying to get out'),
  );
  await request('PUT', `/connect/image/laptop-${level}`, { transport: 'uplink' });
  const socket = await pairUplink(service, `/image/laptop-${level}`);
  const answer = await request('POST', `/connect/image/laptop-${level}/.tools/here`, {});
  if (answer.content[0].text !== 'here') throw new Error(`The uplink answered ${JSON.stringify(answer)}`);
  socket.close();
  await request('PUT', `/connect/image/source-${level}`, {
    source: { kind: 'module', entrypoint: 'source.ts', sourceFiles: [{ path: 'source.ts', contents: source }] },
  });
  const compiled = await request('POST', `/connect/image/source-${level}/.tools/here`, {});
  if (compiled.content[0].text !== 'compiled') throw new Error(`The module answered ${JSON.stringify(compiled)}`);
  console.log(`level ${level}: published, called, logged, tunnelled and compiled; hosted code reached nothing`);
}

/** A new folder for /data, as a new volume has it. */
function newVolume() {
  const folder = tempFolder();
  chmodSync(folder, 0o775);
  return folder;
}

/** Waits until the service says its address. @returns that line of its log */
async function greetingOf({ child }) {
  let greeting;
  await until(child, 60_000, async () => {
    const line = child.output.split('\n').find((text) => text.includes('"msg":"Slipway listens"'));
    greeting = line && JSON.parse(line);
    return greeting !== undefined;
  });
  return greeting;
}

/** Starts the service where it must refuse to. @returns what it wrote */
async function refusalOf(image, data) {
  const { child } = await startImage(image, {}, { data });
  const [code] = await once(child, 'exit');
  if (code !== 1) throw new Error(`The service ended with code ${code}: ${child.output}`);
  return child.output;
}

/** A group with this much memory; undefined where this machine makes none. */
function memoryLimit(mb) {
  const group = '/sys/fs/cgroup/memory/slipway-image';
  try {
    if (!existsSync(group)) mkdirSync(group);
    writeFileSync(join(group, 'memory.limit_in_bytes'), String(mb * 1024 * 1024));
  } catch {
    console.log('skipped: 512 MB of memory (no memory groups can be made)');
    return undefined;
  }
  return group;
}

/** A module with one route. */
const starsModule = `
import { Controller, Get, Module } from '@nestjs/common';
import { Public } from '@slipway/module';
class StarsController { read() { return { stars: 5 }; } }
const method = [StarsController.prototype, 'read', Object.getOwnPropertyDescriptor(StarsController.prototype, 'read')];
Get()(...method);
Public()(...method);
Controller('stars')(StarsController);
class StarsModule {}
Module({ controllers: [StarsController] })(StarsModule);
export default { name: 'stars', apiVersion: 1, module: () => StarsModule };`;

/** The image of one container. */
async function useSingle() {
  const single = build('single');
  const data = newVolume();
  const startedAt = performance.now();
  const settings = { METRICS_TOKEN: 'open', HOSTING_ISOLATION: 'container', LOG_LEVEL: 'warn' };
  const group = memoryLimit(512);
  let service = await startImage(single, settings, { data, group });
  const { signInUrl } = await greetingOf(service);
  console.log(`single: start to the link in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  if ((await fetch(signInUrl)).status !== 200) throw new Error(`The link ${signInUrl} does not work.`);
  if (service.child.output.includes('slipway_')) throw new Error('A key is in the log.');
  execIn(single, service, single.config.Healthcheck.Test.slice(1));
  const key = /^slipway_\S+$/m.exec(execIn(single, service, ['slipway', 'keys', '--account', 'operator']))[0];
  const again = async (options = {}) => {
    const next = await startImage(single, settings, { data, ...options });
    await greetingOf(next);
    return { ...next, ...apiOf({ ...next, key }) };
  };
  service = { ...service, ...apiOf({ ...service, key }) };
  const second = refusalOf(single, data);
  await use({ ...service, key }, 'container', []);
  if (group) {
    const maxMb = Number(readFileSync(join(group, 'memory.max_usage_in_bytes'), 'utf8')) / 1024 / 1024;
    console.log(`single: ${maxMb.toFixed(0)} MB at most, with page cache, of 512`);
  }
  const refusal = await second;
  if (!refusal.includes('Another process holds')) throw new Error(`A second container said ${refusal}`);
  for (let n = 0; n < 10; n += 1) {
    await service.request('PUT', `/namespaces/kept-${n}`);
    const ended = once(service.child, 'exit');
    service.child.kill('SIGKILL');
    await ended;
    service = await again();
    const { namespaces } = await service.request('GET', '/namespaces');
    const kept = namespaces.filter(({ name }) => name.startsWith('kept-')).length;
    if (kept !== n + 1) throw new Error(`${kept} of ${n + 1} namespaces are left.`);
  }
  await stopImage(service);
  console.log('single: killed ten times, nothing lost');
  await stopImage(await again({ args: ['--unshare-net'] }));

  for (const uid of [0, 1000660000]) {
    const other = await startImage(single, {}, { data: newVolume(), uid });
    await greetingOf(other);
    await stopImage(other);
    console.log(`single: started as user ${uid}`);
  }
  writeFileSync(join(data, 'pg/PG_VERSION'), '17\n');
  const older = await refusalOf(single, data);
  if (!older.includes('slipway backup')) throw new Error(`Data of Postgres 17: ${older}`);

  const context = tempFolder();
  mkdirSync(join(context, 'stars'));
  writeFileSync(join(context, 'stars/package.json'), '{"name":"stars","type":"module","main":"main.js"}');
  writeFileSync(join(context, 'stars/main.js'), starsModule);
  const [, recipe] = /```dockerfile\n(FROM slipway\n[^`]+)```/.exec(
    readFileSync(join(root, 'docs/guides/extend.md'), 'utf8'),
  );
  writeFileSync(join(context, 'Dockerfile'), recipe.replace('FROM slipway', 'FROM localhost/slipway-single'));
  const extended = await startImage(build('stars', join(context, 'Dockerfile'), context), {});
  await greetingOf(extended);
  const stars = await fetch(`${extended.url}/stars`).then((response) => response.text());
  if (stars !== '{"stars":5}') throw new Error(`The module in the image answered ${stars}`);
  await stopImage(extended);
  console.log(
    'single: as root, without a name, offline, next to a second one, on data of Postgres 17, with a module: ok',
  );
}

async function main() {
  const missing = missingTools();
  if (missing.length > 0) {
    console.log(`skipped: the image (no ${missing.join(', ')})`);
    return;
  }
  ensureInstalled();
  ensureBuilt();
  ensureBase();
  const image = build('runtime');
  measure(image.folder);

  const { startEmbeddedPostgres } = await import('../dist/src/platform/embedded/embedded-postgres.js');
  const database = await startEmbeddedPostgres({ dataDir: tempFolder(), log: () => {}, throwaway: true });
  const redisPort = await freePort();
  const redisArgs = ['--port', String(redisPort), '--save', '', '--maxmemory-policy', 'noeviction'];
  start('redis', [...redisArgs, '--dir', tempFolder()], {}, 'redis-server');
  try {
    const settings = {
      DATABASE_URL: database.url,
      REDIS_URL: `redis://127.0.0.1:${redisPort}`,
      ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
      BOOTSTRAP_API_KEY: `slipway_${randomBytes(32).toString('base64url')}`,
      METRICS_TOKEN: 'open',
      LOG_LEVEL: 'warn',
    };
    const cli = ['node', 'dist/src/cli/slipway.js', 'migrate'];
    const migration = await startImage(image, settings, { command: cli });
    const [code] = await once(migration.child, 'exit');
    if (code !== 0) throw new Error(`slipway migrate: ${migration.child.output}`);

    const times = [];
    for (let n = 0; n < starts; n += 1) {
      const service = await startReady(image, settings);
      times.push(service.startMs);
      await stopImage(service);
    }
    times.sort((a, b) => a - b);
    console.log(`start to /ready: ${times.map((ms) => (ms / 1000).toFixed(2)).join(', ')} s`);

    const neighbours = [new URL(database.url).host, `127.0.0.1:${redisPort}`];
    for (const level of ['isolated', 'container']) {
      const service = await startReady(image, { ...settings, HOSTING_ISOLATION: level });
      await use(service, level, neighbours);
      await stopImage(service);
    }
  } finally {
    await database.stop();
  }
  await useSingle();
}

await runBench(main, {
  cleanUp: async () => {
    if (containers.length > 0) run('buildah', ['rm', ...containers]);
    if (existsSync('/sys/fs/cgroup/memory/slipway-image')) rmdirSync('/sys/fs/cgroup/memory/slipway-image');
  },
});
