/**
 * `npm run lab fuzz [-- --inputs 2000]`: sends so many generated inputs of each of three accounts to the service (`test/fuzz`) and
 * prints their counts and every failure. The inputs follow from `TEST_SEED`.
 */
import { register } from 'node:module';
import { parseArgs } from 'node:util';
import { prepare } from './lib.mjs';

prepare();
const { values } = parseArgs({ options: { inputs: { type: 'string', default: '2000' } } });

register('../test/support/jest/loader.mjs', import.meta.url);
const { default: startDatabase } = await import('../test/support/global-setup.mjs');
const { default: stopDatabase } = await import('../test/support/global-teardown.mjs');
await startDatabase();
try {
  const { fuzz } = await import('../test/fuzz/fuzz.ts');
  const report = await fuzz(Number(values.inputs));
  process.stdout.write(report.text);
  process.exitCode = report.faults.length > 0 ? 1 : 0;
} finally {
  await stopDatabase();
}
