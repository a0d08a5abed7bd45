import { readFile } from 'node:fs/promises';
import { checkModule, InvalidModuleError, type ModuleFacts } from '../../../hosting/hosted-module.js';

/** What the process answers: it reads the file it is given the path of, looks at the module in it, and ends. */
export type ModuleCheckAnswer = { facts: ModuleFacts } | { refused: string };

// Who started it ends it. A stop of the service reaches both, and would look like a fault of the module.
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
