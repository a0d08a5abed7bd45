/**
 * A process of its own that asks for a token: `node credential-process.mjs <dist> <owner id> <upstream URL> <callers>`, with
 * the service's settings in its environment. It prints `ready`, waits for a line, and writes its outcome as one line of JSON.
 */
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';

const [dist, id, upstreamUrl, callers] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(`${dist}/src/${file}`).href);
const [{ createApp }, { loadEnv }, { chooseQueueBackend }, { CredentialsService }] = await Promise.all([
  load('app.setup.js'),
  load('config/env.js'),
  load('platform/queue/queue-backend.js'),
  load('modules/oauth/credentials.service.js'),
]);

const env = loadEnv();
chooseQueueBackend(env);
const app = await createApp(env, { logger: false });
await app.init();
const service = app.get(CredentialsService);
process.stdout.write('ready\n');
await once(process.stdin, 'data');
const asked = Array.from({ length: Number(callers) }, () =>
  service.accessToken({ kind: 'server', id }, upstreamUrl).catch((error) => `${error.name}: ${error.message}`),
);
process.stdout.write(`${JSON.stringify(await Promise.all(asked))}\n`);
await app.close();
process.exit(0);
