import { createRequire } from 'node:module';
import path from 'node:path';
import { Engine, type EngineContext, type Instance } from '../engine.js';
import { openEgress } from '../egress/egress-proxy.js';
import { ProgramStartError } from '../hosting.errors.js';
import type { Program, TraceLine } from '../hosting.types.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { InFlight } from './in-flight.js';
import { ProgramLog } from './program-log.js';
import { removeRunFiles, writeRunFiles } from './run-files.js';
import { socketFolder } from './socket-folder.js';
import { openTraceSink } from './trace-sink.js';
import { FILES, SOCKETS } from './workerd-config.js';
import { WorkerdInstance } from './workerd-instance.js';
import { WorkerdProcess, type ProcessEnd } from './workerd-process.js';

/** A module that loads longer than this does not start; an ordinary one takes a tenth of a second. */
const START_MS_MAX = 10_000;

/** Runs ES modules, each in its own process of workerd. */
export class WorkerdEngine extends Engine {
  readonly name = 'worker';

  constructor(private readonly sandbox: Sandbox) {
    super();
  }

  async start(program: Program, context: EngineContext): Promise<Instance> {
    const { ref, egressAllow } = program;
    const open: (() => Promise<void>)[] = [];
    const cleanUp = async () => {
      for (const close of open.splice(0).reverse()) await close();
    };
    try {
      const inFlight = new InFlight();
      const log = new ProgramLog(ref, inFlight, context.limits.logBytes, (trace) => context.onTrace(trace));
      open.push(async () => log.close());
      const sockets = await socketFolder(context.runDir);
      open.push(() => sockets.remove());
      const at = (name: string) => path.join(sockets.path, name);
      const sink = await openTraceSink(at(SOCKETS.sink), (items) => log.tell(items));
      open.push(() => sink.close());
      const egress = await openEgress(at(SOCKETS.egress), { allow: egressAllow, told: (line) => log.add(line) });
      open.push(() => egress.close());
      await writeRunFiles(program, context, sockets.fromRunDir);
      const process = await this.launch(program, context, (line) => log.print(line));
      log.loaded();
      return new WorkerdInstance(process, inFlight, sockets.path, cleanUp);
    } catch (error) {
      await cleanUp();
      throw error;
    }
  }

  private async launch(
    program: Program,
    { runDir, limits }: EngineContext,
    onConsole: (line: TraceLine) => void,
  ): Promise<WorkerdProcess> {
    const args = ['serve', '--control-fd=3', FILES.config];
    const launch = await this.sandbox.command(workerdPath(), args, { memoryMb: limits.memoryMb, runDir });
    const process = new WorkerdProcess(launch, ['requests', 'health'], onConsole);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      process.signal('SIGKILL');
    }, START_MS_MAX);
    const isReady = await process.ready();
    clearTimeout(timer);
    await removeRunFiles(program, runDir);
    if (!isReady) throw new ProgramStartError(whyNotStarted(await process.ended, isLate));
    return process;
  }
}

/** Where the package keeps its binary. @throws Error when it is not installed for this platform */
function workerdPath(): string {
  return (createRequire(import.meta.url)('workerd') as { default: string }).default;
}

function whyNotStarted({ by, hasRunOutOfMemory, lastWords }: ProcessEnd, isLate: boolean): string {
  if (isLate) return `The module did not finish loading within ${START_MS_MAX / 1_000} seconds.`;
  if (hasRunOutOfMemory) return 'The module took more memory than it may while it loaded.';
  return lastWords.length > 0 ? lastWords.join('\n') : `The module could not be started (${by}).`;
}
