import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DocBlock } from './doc-pages.js';
import { watchersIn } from '../releases/published-cli.js';

/** Time for all commands of one page. The first run downloads npm packages. */
const PAGE_MS_MAX = 600_000;
/** Time until a background command prints the output that its page documents. */
const READY_SECONDS_MAX = 180;

/** Variables of this process that reach the npm registry; nothing else of its environment is passed on. */
const networkVariables = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'];
const trustVariables = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'];

/** One run of the commands of a page. */
export interface PageRun {
  /** Runs the `sh test` blocks in order. @throws Error with the block's place and output when one fails */
  run(blocks: DocBlock[]): Promise<void>;
  /** The environment of the commands. */
  env: Record<string, string>;
  /** The documented addresses (ports 3000 and 3001) replaced by those of this run. */
  localize(text: string): string;
  /** Ends what the commands left running and removes their folder. */
  close(): Promise<void>;
}

/**
 * Prepares the commands of one page: an empty folder, an empty home folder, and the two documented variables.
 *
 * @param upstreamPort free port that replaces 3001, the documented port of the example server
 */
export async function openPageRun(service: { url: string; key: string }, upstreamPort: number): Promise<PageRun> {
  const folder = await mkdtemp(join(tmpdir(), 'slipway-docs-'));
  const [work, home, logs] = ['work', 'home', 'logs'].map((name) => join(folder, name));
  for (const path of [work, home, logs]) await mkdir(path);
  const passedOn = ['PATH', ...networkVariables, ...trustVariables].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  const env = {
    ...(Object.fromEntries(passedOn) as Record<string, string>),
    HOME: home,
    TMPDIR: folder,
    npm_config_userconfig: process.env.npm_config_userconfig ?? join(homedir(), '.npmrc'),
    npm_config_cache: process.env.npm_config_cache ?? join(homedir(), '.npm'),
    SLIPWAY_URL: service.url,
    SLIPWAY_KEY: service.key,
    LOGS: logs,
  };
  const localize = (text: string): string =>
    text.replaceAll('http://127.0.0.1:3000', service.url).replaceAll(/\b3001\b/g, String(upstreamPort));
  let shell: ChildProcess | null = null;

  const run = async (blocks: DocBlock[]): Promise<void> => {
    shell = spawn('bash', ['-c', scriptOf(blocks, localize)], {
      cwd: work,
      env,
      // A process group of its own, so that background commands can be ended with it.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let written = '';
    for (const stream of [shell.stdout, shell.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (written += text));
    }
    const timer = setTimeout(() => shell?.kill('SIGKILL'), PAGE_MS_MAX);
    const code = await new Promise<number | null>((resolve, reject) => {
      shell?.once('error', reject).once('close', resolve);
    }).finally(() => clearTimeout(timer));
    // eslint-disable-next-line no-control-regex -- colours begin with one
    const outputs = written.replace(/\x1b\[[\d;]*m/g, '').split(/^@@ block \d+\n/m);
    const last = outputs.length - 2;
    if (code !== 0) throw failure(blocks[last], outputs[last + 1], `ended with code ${code}`);
    for (const [index, block] of blocks.entries()) {
      const missing = expectedOf(block, localize).filter((line) => !outputs[index + 1].includes(line));
      if (isForeground(block) && missing.length > 0) {
        throw failure(block, outputs[index + 1], `did not print ${JSON.stringify(missing)}`);
      }
    }
  };
  const close = async (): Promise<void> => {
    if (shell?.pid !== undefined) signalGroup(shell.pid);
    for (const pid of await watchersIn(folder)) process.kill(pid, 'SIGKILL');
    await rm(folder, { recursive: true, force: true, maxRetries: 20 });
  };
  return { run, env, localize, close };
}

/** A block to run, with the `text output` block that follows it on the page. */
export interface CommandBlock extends DocBlock {
  expected: string;
}

/**
 * The versions that tests install of packages that the documentation names without one: somebody else's publication must not
 * decide a landing. `npm run lab search` sets DOC_VERSIONS=latest.
 */
const PINNED: Record<string, string> = {
  '@modelcontextprotocol/server-everything': '2026.8.31',
  '@modelcontextprotocol/sdk': '1.32.2',
  '@anthropic-ai/mcpb': '2.1.2',
  '@cfworker/json-schema': '4.1.6',
  'mcp-remote': '0.15.1',
  bestzip: '2.2.7',
  esbuild: '0.28.2',
  skills: '1.5.18',
  ws: '8.23.0',
  zod: '4.6.7',
};

/** Returns a package as the command names it, with the version of {@link PINNED} where it has none or only a major one. */
export function pinPackage(word: string): string {
  const [, name = ''] = /^((?:@[\w-]+\/)?[\w-]+)(?:@\d+)?$/.exec(word) ?? [];
  const isPinned = process.env.DOC_VERSIONS !== 'latest' && Object.hasOwn(PINNED, name);
  return isPinned ? `${name}@${PINNED[name]}` : word;
}

/** Pins the packages of each line that installs some. */
function pinPackages(text: string): string {
  return text.replace(/^.*\b(?:npx|npm install)\s.*$/gm, (line) => line.replace(/(?<= )\S+/g, pinPackage));
}

/** The `sh test` blocks of a page, each with the output that the page shows. */
export function commandsOf(blocks: DocBlock[]): CommandBlock[] {
  return blocks.flatMap((block, index) => {
    if (!/^sh test\b/.test(block.info)) return [];
    const next = blocks.at(index + 1);
    return [{ ...block, text: pinPackages(block.text), expected: next?.info === 'text output' ? next.text : '' }];
  });
}

function isForeground(block: DocBlock): boolean {
  return block.info !== 'sh test background';
}

function expectedOf(block: DocBlock, localize: (text: string) => string): string[] {
  const { expected = '' } = block as Partial<CommandBlock>;
  return localize(expected)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && line !== '…');
}

/**
 * One script for all blocks, so that variables and folders persist as in a terminal. A failing command ends the script.
 * An HTTP error status fails `curl`, except in `sh test fails` blocks, which demonstrate errors.
 */
function scriptOf(blocks: DocBlock[], localize: (text: string) => string): string {
  const head = ['exec 2>&1', 'set -eo pipefail', 'curl() { command curl -sS --fail-with-body "$@"; }'];
  const parts = blocks.map((block, index) => {
    const text = localize(block.text);
    const marker = `echo; echo "@@ block ${index}"`;
    if (block.info === 'sh test fails') return `${marker}\n(\ncurl() { command curl -sS "$@"; }\n${text}\n)`;
    if (isForeground(block)) return `${marker}\n${text}`;
    const log = `"$LOGS/${index}"`;
    const ready = expectedOf(block, localize).map(
      (line) => `until grep -qF ${quoted(line)} ${log}; do
  if [ $SECONDS -gt ${READY_SECONDS_MAX} ]; then cat ${log}; echo ${quoted(`Not ready: ${line}`)}; exit 1; fi
  sleep 0.2
done`,
    );
    // The subshell may open its log later than `cat` reads it.
    return `${marker}\n: >${log}\n(\n${text}\n) >>${log} 2>&1 &\nSECONDS=0\n${ready.join('\n')}\ncat ${log}`;
  });
  return [...head, ...parts].join('\n');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'"'"'`)}'`;
}

function failure(block: DocBlock | undefined, output: string | undefined, problem: string): Error {
  return new Error(`${block?.page}:${block?.line}: the commands ${problem}.\n${block?.text}\n--- output:\n${output}`);
}

function signalGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
