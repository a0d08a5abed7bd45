import { readFile } from 'node:fs/promises';
import { checkModule, type ModuleFacts } from '../../../hosting/hosted-module.js';
import { InvalidModuleError } from '../../../hosting/hosting.errors.js';

/** The message of the process, which checks the module in the file of its first argument, and ends. */
export type ModuleCheckAnswer = { facts: ModuleFacts } | { refused: string };

// Signals to the process group are ignored: the parent ends this process, and a stop must not look like a module fault.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);

const answer = check(await readFile(process.argv[2], 'utf8'));
process.send?.(answer, () => process.disconnect());

function check(source: string): ModuleCheckAnswer {
  try {
    return { facts: checkModule(source) };
  } catch (error) {
    if (error instanceof InvalidModuleError) return { refused: error.message };
    throw error;
  }
}
