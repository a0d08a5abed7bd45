/**
 * `npm run dev`: the service from its sources, without a build, restarted after each change in `src` and in the folders of
 * SLIPWAY_MODULES. The embedded Postgres belongs to this process, so that it outlives the restarts. Types are not checked, and
 * `/docs` lacks the comments of DTOs, which a build adds.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { register } from 'node:module';
import process from 'node:process';
import { checkNode, ensureInstalled } from './lib.mjs';

checkNode();
ensureInstalled();
register('../test/support/jest/loader.mjs', import.meta.url);
const { loadEnv } = await import('../src/config/env.ts');
const { startDatabase } = await import('../src/infrastructure.ts');
const env = loadEnv();
const { stop } = await startDatabase(env);

const loader = `data:text/javascript,import { register } from 'node:module'; register('./loader.mjs', '${new URL('../test/support/jest/runner.mjs', import.meta.url)}');`;
const watched = ['src', ...(env.modules ?? [])].map((folder) => `--watch-path=${folder}`);
const args = [...watched, '--watch-preserve-output', '--enable-source-maps', '--import', loader, 'src/main.ts'];
const service = spawn(process.execPath, [...args, ...process.argv.slice(2)], { stdio: 'inherit' });
// A terminal sends SIGINT to all processes of the group.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => service.kill('SIGTERM'));
const [code] = await once(service, 'exit');
await stop();
process.exitCode = code ?? 0;
