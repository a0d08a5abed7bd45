import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from '@jest/globals';
import { builtFile } from '../../support/built.js';
import { verifies } from '../../support/verifies.js';

const run = promisify(execFile);

/** Imports what a process with these settings imports at its start, without a database, and prints the files. */
const script = `
import { Session } from 'node:inspector';
const files = [];
const session = new Session();
session.connect();
session.on('Debugger.scriptParsed', ({ params }) => files.push(params.url));
session.post('Debugger.enable');
await import(process.argv[1] + 'infrastructure.js');
const { loadEnv } = await import(process.argv[1] + 'config/env.js');
const { createApp } = await import(process.argv[1] + 'app.setup.js');
await createApp(loadEnv(), { preview: true });
process.stdout.write(files.join('\\n'), () => process.exit(0));
`;

/** Of these parts of file names, those that a process of the role loads. */
async function loadedBy(role: string, parts: string[]): Promise<string[]> {
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script, builtFile('src/')], {
    env: { ROLES: role, ENCRYPTION_KEYS: `k1:${Buffer.alloc(32).toString('base64')}` },
    maxBuffer: 10 * 1024 * 1024,
  });
  return parts.filter((part) => stdout.includes(part));
}

/** Packages for rare work. */
const rare = [
  '/@aws-sdk/',
  '/@nestjs/swagger/',
  // prom-client imports /@opentelemetry/api.
  '/@opentelemetry/exporter-',
  '/@opentelemetry/sdk-',
  '/acorn/',
  '/es-toolkit/',
  '/esbuild/',
  '/js-yaml/',
  '/pino-pretty/',
  '/protobufjs/',
  '/re2js/',
  '/ws/',
  '/yaml/',
  '/yauzl/',
  '/yazl/',
  '/zod/',
  '/@modelcontextprotocol/',
].map((name) => `/node_modules${name}`);
const embedded = '/platform/embedded/embedded-postgres.js';
const programs = [
  '/hosting/runtime/runtime.js',
  '/hosting/worker/workerd-engine.js',
  '/hosting/egress/egress-proxy.js',
];
const bundles = '/hosting/bundle/bundle-engine.js';
const pipeline = '/modules/releases/pipeline/release-pipeline.js';

verifies('start:loaded-code', 'a process imports no code of roles and features that are off', async () => {
  const all = [...rare, embedded, ...programs, bundles, pipeline];
  const [api, worker, host] = await Promise.all(['api', 'worker', 'host'].map((role) => loadedBy(role, all)));
  expect({ api, worker, host }).toEqual({ api: [], worker: [pipeline], host: programs });
});
