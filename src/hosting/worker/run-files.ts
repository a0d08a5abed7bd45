import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Program } from '../hosting.types.js';
import type { EngineContext } from '../engine.js';
import { workerCode } from './worker-code.js';
import { FILES, MAIN, workerdConfig } from './workerd-config.js';

/** Only its owner reads what lies in a run folder. */
const PRIVATE = { mode: 0o600 };

/** Makes the folder of sessions within an owner's state, and returns it. */
export async function makeSessionsDir(stateDir: string): Promise<string> {
  const folder = path.join(stateDir, 'sessions');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/**
 * Writes all that workerd reads at start into the run folder.
 *
 * @param at where workerd finds the sockets, from its run folder, and the state; null without sessions
 */
export async function writeRunFiles(
  program: Program,
  { runDir, limits }: Pick<EngineContext, 'runDir' | 'limits'>,
  at: { sockets: string; state: string | null },
): Promise<void> {
  const code = await workerCode();
  const secrets = Object.entries(program.secrets);
  const write = (name: string, text: string) => writeFile(path.join(runDir, name), text, PRIVATE);
  await Promise.all([
    write(FILES.main, MAIN),
    write(FILES.prelude, code.prelude),
    write(FILES.wrapper, code.wrapper),
    write(FILES.tail, code.tail),
    write(FILES.schema, JSON.stringify(program.configSchema)),
    copyFile(program.file, path.join(runDir, FILES.module)),
    ...secrets.map(([, value], index) => write(FILES.secret(index), value)),
    write(
      FILES.config,
      workerdConfig({
        secretNames: secrets.map(([name]) => name),
        sessions: at.state === null ? null : { uniqueKey: `${program.ref.ownerId}-McpSession`, stateDir: at.state },
        memoryMb: limits.memoryMb,
        socketsAt: at.sockets,
      }),
    ),
  ]);
}

/** Removes what workerd has read: the secrets, the code and the configuration. */
export async function removeRunFiles(program: Program, runDir: string): Promise<void> {
  const { secret, ...others } = FILES;
  const names = [...Object.values(others), ...Object.keys(program.secrets).map((_, index) => secret(index))];
  await Promise.all(names.map((name) => rm(path.join(runDir, name), { force: true })));
}
