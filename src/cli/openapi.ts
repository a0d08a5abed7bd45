import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { renderDocuments } from '../app.render-docs.js';
import { createApp } from '../app.setup.js';
import { loadEnv } from '../config/env.js';

/**
 * Writes the documents of the API as they are served into the given folder. In a thread of the service it posts them, with
 * those of its external modules. Needs no database, and `node --conditions=api-docs`.
 */
const [, , folder = ''] = process.argv;
const env = loadEnv({
  DATABASE_URL: 'postgres://localhost/none',
  ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
  ...(parentPort && { SLIPWAY_MODULES: (workerData as string[]).join(), SLIPWAY_MODULES_CHECK: 'off' }),
});
const app = await createApp(env, { preview: true });
if (parentPort) parentPort.postMessage(await renderDocuments(app));
else {
  await mkdir(folder, { recursive: true });
  for (const [path, bytes] of Object.entries(await renderDocuments(app))) {
    await writeFile(join(folder, basename(path)), bytes);
  }
}
process.exit(0);
