#!/usr/bin/env node
/**
 * `npm run test:image`: builds docker/Dockerfile with buildah, runs the image as a container runs, and uses it.
 *
 * The file system of the image runs under bubblewrap: read-only but for /tmp and /data, uid 1000, no capabilities, its own
 * processes, the network of this machine. A Postgres of this repository and a redis-server stand beside it. Where the base
 * image cannot be pulled, one is made of Debian packages and the npm package of the same Node.
 *
 * Prints the sizes of the parts and the time from the start to `/ready` (median of five), and publishes and calls hosted
 * code that tries to get out, at both isolation levels. Fails if the application takes more than 330 MB. Needs root.
 */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { apiOf, freePort, pairUplink, runBench, start, tempFolder, until } from '../bench/run.mjs';
import { ensureBuilt, ensureInstalled, root } from './lib.mjs';

const baseName = /^FROM (\S+)/m.exec(readFileSync(join(root, 'docker/Dockerfile'), 'utf8'))[1];
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

/** Builds the image. @returns the folder that holds its file system, and its configuration */
function build() {
  const commit = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).stdout.trim();
  const args = [
    'build',
    '--pull-never',
    '-f',
    'docker/Dockerfile',
    '-t',
    'slipway-test',
    '--build-arg',
    `COMMIT=${commit}`,
  ];
  run('buildah', [...args, '.']);
  const container = run('buildah', ['from', '--pull-never', 'slipway-test']);
  const folder = run('buildah', ['mount', container]);
  const { config } = JSON.parse(run('buildah', ['inspect', '--type', 'image', 'slipway-test'])).OCIv1;
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

/** Runs the image's command, or another one. */
async function startImage({ folder, config }, settings, command = config.Cmd) {
  const port = await freePort();
  const env = Object.entries({ ...Object.fromEntries(config.Env.map((pair) => pair.split(/=(.*)/s))), ...settings });
  const key = settings.BOOTSTRAP_API_KEY;
  const child = start(
    'the image',
    [
      ...['--ro-bind', folder, '/', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--tmpfs', '/data'],
      ...[
        '--unshare-user',
        '--unshare-pid',
        '--uid',
        '1000',
        '--gid',
        '1000',
        '--cap-drop',
        'ALL',
        '--die-with-parent',
      ],
      ...['--clearenv', '--chdir', config.WorkingDir, ...env.flatMap(([name, value]) => ['--setenv', name, value])],
      ...['--setenv', 'PORT', String(port), '--setenv', 'PUBLIC_URL', `http://127.0.0.1:${port}`],
      ...command,
    ],
    {},
    'bwrap',
  );
  const url = `http://127.0.0.1:${port}`;
  return { child, url, key, ...apiOf({ child, url, key }) };
}

async function startReady(image, settings) {
  const startedAt = performance.now();
  const service = await startImage(image, settings);
  await until(service.child, 60_000, async () => (await fetch(`${service.url}/ready`)).ok);
  return { ...service, startMs: performance.now() - startedAt };
}

/** Sends SIGTERM to the service, which bubblewrap does not pass on, and waits for its end. */
async function stopImage({ child }) {
  const ended = once(child, 'exit');
  let { pid } = child;
  while (readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'bwrap') {
    pid = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'));
  }
  process.kill(pid, 'SIGTERM');
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

let image;

async function main() {
  const missing = missingTools();
  if (missing.length > 0) {
    console.log(`skipped: the image (no ${missing.join(', ')})`);
    return;
  }
  ensureInstalled();
  ensureBuilt();
  ensureBase();
  image = build();
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
    const migration = await startImage(image, settings, cli);
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
}

await runBench(main, {
  cleanUp: async () => {
    if (image) run('buildah', ['rm', image.container]);
  },
});
