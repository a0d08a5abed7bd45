import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { until } from '../until.js';

/** Result of a run of a command line tool. */
export interface Run {
  code: number;
  /** Both outputs, without colours. */
  output: string;
}

/** A run under way. */
export interface RunningCli {
  pid: number;
  /** Both outputs so far, without colours. */
  output(): string;
  kill(signal: NodeJS.Signals): void;
  /** Its exit code, or -1 when a signal ended it. */
  ended: Promise<number>;
}

/** The published command line tool against one service and nothing else, with a folder of its own. */
export interface PublishedCli {
  /** Folder of the tool: settings, logs and files of the test. */
  folder: string;
  /** Runs it, without a terminal. */
  run(...args: string[]): Promise<Run>;
  /** Starts it, without a terminal, and leaves it running; {@link close} ends it. */
  start(...args: string[]): RunningCli;
  /** The processes it left behind, which follow releases. */
  watchers(): Promise<number[]>;
  /** Ends the watchers it left behind, and removes its folder. */
  close(): Promise<void>;
}

/** The programs under which it was published, the newest first. */
export const publishedClis = { 'smithery 1.1.1': 'smithery', '@smithery/cli 4.11.1': '@smithery/cli' } as const;

/** The program that `npm test` runs; the older ones run in test:long. */
export const newestCli = 'smithery 1.1.1';

/** All programs there are: the last one that still builds the modules of hosted servers is for that alone. */
const programs = { ...publishedClis, '@smithery/cli 4.7.4': '@smithery/cli-4.7' } as const;

const RUN_MS_MAX = 150_000;

const programOf = (name: string): string =>
  fileURLToPath(new URL(`../../../node_modules/${name}/dist/index.js`, import.meta.url));

/** Prepares the tool: sets every address that it can be configured with. */
export async function openCli(
  name: keyof typeof programs,
  { url, key }: { url: string; key: string },
): Promise<PublishedCli> {
  const folder = await mkdtemp(join(tmpdir(), 'slipway-cli-'));
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    // Its watchers write there, which is how they are found again.
    TMPDIR: folder,
    SMITHERY_BASE_URL: url,
    SMITHERY_CONNECT_BASE_URL: url,
    SMITHERY_UPLINK_BASE_URL: url,
    SMITHERY_URL: url,
    SMITHERY_API_KEY: key,
    SMITHERY_CONFIG_PATH: join(folder, 'settings'),
  };
  const running = new Set<ChildProcess>();
  const start = (...args: string[]): RunningCli => {
    const child = spawn(process.execPath, [programOf(programs[name]), ...args], {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running.add(child);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    }
    const ended = new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => {
        running.delete(child);
        resolve(code ?? -1);
      });
    });
    return {
      pid: child.pid ?? -1,
      // eslint-disable-next-line no-control-regex -- colours begin with one
      output: () => output.replace(/\x1b\[[\d;]*m/g, ''),
      kill: (signal) => child.kill(signal),
      ended,
    };
  };
  const run = async (...args: string[]): Promise<Run> => {
    const started = start(...args);
    const timer = setTimeout(() => started.kill('SIGKILL'), RUN_MS_MAX);
    const code = await started.ended.finally(() => clearTimeout(timer));
    return { code, output: started.output() };
  };
  return {
    folder,
    run,
    start,
    watchers: () => watchersIn(folder),
    close: async () => {
      for (const child of running) child.kill('SIGKILL');
      for (const pid of await watchersIn(folder)) process.kill(pid, 'SIGKILL');
      await until(async () => (await watchersIn(folder)).length === 0, 'no watcher is left');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The processes that write their log into this folder. */
export async function watchersIn(folder: string): Promise<number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,args=']);
  return stdout
    .split('\n')
    .filter((line) => line.includes('_watch-deploy') && line.includes(folder))
    .map((line) => Number.parseInt(line, 10));
}
