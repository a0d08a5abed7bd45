import type { Env } from '../config/env.js';
import { readModuleSettings } from '../extensions/settings/module-settings.js';
import { startDatabase } from '../infrastructure.js';
import { examine, type Part } from '../platform/checks/surroundings.js';
import { loadModules } from '../own-modules.js';
import { linesOf } from '../service-checks.js';

let failures = 0;

function printLine(level: string, name: string, text: string): void {
  process.stdout.write(`${`${level.padEnd(8)} ${name.padEnd(11)} ${text}`.trimEnd()}\n`);
}

/** @returns the result; null after a warning or a failure, which is printed */
export async function check<T>(
  name: string,
  ask: () => T | Promise<T>,
  tell: (result: T) => string = String,
): Promise<T | null> {
  try {
    const result = await ask();
    printLine('ok', name, tell(result));
    return result;
  } catch (error) {
    const lines = linesOf(name, error);
    if (lines[0].level === 'failed') failures += 1;
    for (const { level, text } of lines) printLine(level, name, text);
    return null;
  }
}

export function exitCode(): number {
  return failures > 0 ? 1 : 0;
}

/** @returns false when the start would be refused */
export async function checkSurroundings(env: Env, parts: Part[]): Promise<boolean> {
  const before = failures;
  for (const { part, found: summary, faults } of await examine(env, parts)) {
    if (faults.length === 0) printLine('ok', part, summary);
    for (const { text, isFatal } of faults) printLine(isFatal ? 'failed' : 'warning', part, text);
    failures += faults.filter(({ isFatal }) => isFatal).length;
  }
  return failures === before;
}

export async function checkDatabase(settings: Env, checkRest: (env: Env) => Promise<unknown>): Promise<void> {
  const started = await check(
    'database',
    () => startDatabase(settings),
    ({ env }) => (settings.databaseUrl === null ? `embedded, in ${env.embeddedFolder}` : 'of DATABASE_URL'),
  );
  if (started === null) return;
  try {
    if (await checkSurroundings(started.env, ['postgres'])) await checkRest(started.env);
  } finally {
    await started.stop();
  }
}

/** Checks the settings of modules. @param examines also runs the modules' own checks */
export async function modulesOf(env: Env, examines = false): Promise<string> {
  const read = readModuleSettings(env, await loadModules(env));
  for (const warning of read.flatMap(({ warnings }) => warnings)) printLine('warning', 'modules', warning);
  for (const { module, examine } of read) if (examine && examines) await check(module, examine);
  return read.map(({ summary }) => summary).join('; ') || 'without settings';
}
