import { readFile } from 'node:fs/promises';
import { checkModule, type ModuleFacts } from '../../../hosting/hosted-module.js';
import { InvalidModuleError } from '../../../hosting/hosting.errors.js';

/** The process checks the module file of its first argument, and exits. */
export type ModuleCheckAnswer = { facts: ModuleFacts } | { refused: string };

// Only the parent stops this process: a signal to the whole process group must not look like an error of the module.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);

let answer: ModuleCheckAnswer;
try {
  answer = { facts: checkModule(await readFile(process.argv[2], 'utf8')) };
} catch (error) {
  if (!(error instanceof InvalidModuleError)) throw error;
  answer = { refused: error.message };
}
process.send?.(answer, () => process.disconnect());
