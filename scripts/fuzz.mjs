/**
 * `npm run fuzz [-- --seconds 20] [--seed text]`: sends generated inputs to the service (`test/fuzz`) and prints their
 * counts and every fault. The seed of a run is printed; with it the same inputs are sent again.
 */
import { register } from 'node:module';
import { parseArgs } from 'node:util';
import { prepare } from './lib.mjs';

prepare();
const { values } = parseArgs({ options: { seconds: { type: 'string' }, seed: { type: 'string' } } });
const seconds = Number(values.seconds ?? 20);
const seed = values.seed ?? String(Math.floor(Math.random() * 1e9));
process.stdout.write(`Seed ${seed}, ${seconds} s. Again: npm run fuzz -- --seed ${seed} --seconds ${seconds}\n`);

register('../test/support/jest/loader.mjs', import.meta.url);
const { default: startDatabase } = await import('../test/support/global-setup.mjs');
const { default: stopDatabase } = await import('../test/support/global-teardown.mjs');
await startDatabase();
try {
  const { fuzz } = await import('../test/fuzz/fuzz.ts');
  const report = await fuzz({ seed, seconds });
  process.stdout.write(report.text);
  process.exitCode = report.faults.length > 0 ? 1 : 0;
} finally {
  await stopDatabase();
}
