import { readFile } from 'node:fs/promises';
import { checkModule, type ModuleFacts } from '../../../hosting/hosted-module.js';
import { InvalidModuleError } from '../../../hosting/hosting.errors.js';

/** The message of the process, which checks the module in the file of its first argument, and ends. */
export type ModuleCheckAnswer = { facts: ModuleFacts } | { refused: string };

// Signals to the process group are ignored: the parent ends this process, and a stop must not look like a module fault.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);

let answer: ModuleCheckAnswer;
try {
  answer = { facts: checkModule(await readFile(process.argv[2], 'utf8')) };
} catch (error) {
  if (!(error instanceof InvalidModuleError)) throw error;
  answer = { refused: error.message };
}
process.send?.(answer, () => process.disconnect());
