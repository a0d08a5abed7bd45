/**
 * A process of its own that runs programs: `node placed-process.mjs <dist> <name> [--tuning <json>]`, with the service's settings in its
 * environment. It prints `ready` once it listens.
 */
import { pathToFileURL } from 'node:url';
import { PlacedPrograms } from './placed-programs.mjs';

const [dist, name] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(`${dist}/src/${file}`).href);
const [{ createApp }, { loadEnv }, { tuningOf }, { chooseQueueBackend }, { HostingRouter }] = await Promise.all([
  load('app.setup.js'),
  load('config/env.js'),
  load('config/tuning.js'),
  load('platform/queue/queue-backend.js'),
  load('hosting/cluster/hosting-router.js'),
]);

const env = loadEnv();
chooseQueueBackend(env);
const app = await createApp(env, { logger: ['error', 'warn'] }, tuningOf(process.argv));
const programs = await new PlacedPrograms({ name, dataDir: env.dataDir }).start();
await app.listen(env.port, env.host);
await app.get(HostingRouter, { strict: false }).runWith(programs);
process.on('SIGTERM', () => {
  void app
    .close()
    .then(() => programs.stop())
    .then(() => process.exit(0));
});
process.stdout.write('ready\n');
