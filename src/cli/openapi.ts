import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { createApp } from '../app.setup.js';
import { loadEnv } from '../config/env.js';
import { createOpenApi } from '../platform/http/openapi-document.js';

/** Writes the OpenAPI document to the path given; needs no database. */
const [, , file = 'openapi.json'] = process.argv;
const env = loadEnv({
  DATABASE_URL: 'postgres://localhost/none',
  ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
});
const app = await createApp(env, { preview: true });
await writeFile(file, `${JSON.stringify(createOpenApi(app), null, 2)}\n`);
process.exit(0);
