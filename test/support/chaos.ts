import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { endAfterFile } from './jest/leftovers.mjs';

/** Exit code and output of a run. */
export interface ChaosRun {
  code: number | null;
  output: string;
}

/** Runs `npm run lab chaos` with so many faults. */
export function runChaos(faults: number): Promise<ChaosRun> {
  return runScript('chaos.mjs', ['--faults', String(faults), '--callers', '1']);
}

/** Runs `npm run lab rolling`. */
export function runRolling(): Promise<ChaosRun> {
  return runScript('rolling.mjs', []);
}

function runScript(name: string, args: string[]): Promise<ChaosRun> {
  const script = fileURLToPath(new URL(`../../scripts/${name}`, import.meta.url));
  const child = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const forget = endAfterFile(() => child.kill('SIGTERM'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      forget();
      resolve({ code, output });
    });
  });
}
