import { mkdir, rm, writeFile } from 'node:fs/promises';
import { copyFile } from 'node:fs/promises';
import path from 'node:path';
import type { Program } from '../hosting.types.js';
import type { EngineContext } from '../engine.js';
import { workerCode } from './worker-code.js';
import { FILES, MAIN, workerdConfig } from './workerd-config.js';

/** Only its owner reads what lies in a run folder. */
const PRIVATE = { mode: 0o600 };

/** The folder of sessions within an owner's state. */
export function sessionsDir(stateDir: string): string {
  return path.join(stateDir, 'sessions');
}

/** Writes all that workerd reads at start into the run folder. */
export async function writeRunFiles(program: Program, context: EngineContext, socketsAt: string): Promise<void> {
  const { runDir, limits } = context;
  const code = await workerCode();
  const secrets = Object.entries(program.secrets);
  const stateDir = sessionsDir(context.stateDir);
  if (program.ref.isStateful) await mkdir(stateDir, { recursive: true, mode: 0o700 });
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
        sessions: program.ref.isStateful ? { uniqueKey: `${program.ref.ownerId}-McpSession`, stateDir } : null,
        memoryMb: limits.memoryMb,
        socketsAt,
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
