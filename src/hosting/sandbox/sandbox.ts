import type { SpawnOptions } from 'node:child_process';

/** What a program may take of the host. */
export interface Confinement {
  /** What its code may allocate, in MiB. */
  memoryMb: number;
  /** Its own folder: where it starts, and all it may write to. */
  runDir: string;
}

/** How to spawn a confined program. */
export interface Launch {
  file: string;
  args: string[];
  options: SpawnOptions;
}

/** The walls around what this service runs for others. */
export class Sandbox {
  /** How to spawn `program` behind every wall that stands. Nothing of our environment goes with it. */
  async command(program: string, args: string[], confinement: Confinement): Promise<Launch> {
    return { file: program, args, options: { cwd: confinement.runDir, env: {} } };
  }
}
