import { mkdtemp, rm, writeFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { Dispatcher } from 'undici';
import type { EngineContext, Instance } from '../../../src/hosting/engine.js';
import type { Program, ProgramLimits, Trace } from '../../../src/hosting/hosting.types.js';
import { loadEnv } from '../../../src/config/env.js';
import { Sandbox } from '../../../src/hosting/sandbox/sandbox.js';
import { WorkerdEngine } from '../../../src/hosting/worker/workerd-engine.js';

const LIMITS: ProgramLimits = {
  cpuMs: 5_000,
  wallMs: 50_000,
  memoryMb: 128,
  responseBytes: 16_777_216,
  logBytes: 262_144,
  concurrency: 64,
};

/** Values of a program. The others have defaults. */
export interface ProgramWishes {
  ownerId?: string;
  isStateful?: boolean;
  secrets?: Record<string, string>;
  configSchema?: Record<string, unknown>;
  egressAllow?: string[];
  limits?: Partial<ProgramLimits>;
}

/** A running program, and everything that it reported. */
export interface HostedProgram extends Instance {
  traces: Trace[];
  runDir: string;
}

/** Runs modules in real workerd processes, and ends them all. */
export class HostedPrograms {
  private readonly running: Instance[] = [];
  private root: Promise<string> | undefined;

  constructor(private readonly engine = new WorkerdEngine(new Sandbox(loadEnv({})))) {}

  /** Starts a module given as its text. */
  async start(module: string, wishes: ProgramWishes = {}): Promise<HostedProgram> {
    const root = await (this.root ??= mkdtemp(path.join(tmpdir(), 'slipway-hosted-')));
    const runDir = await mkdtemp(path.join(root, 'run-'));
    const file = path.join(root, `${path.basename(runDir)}.js`);
    await writeFile(file, module);
    const ownerId = wishes.ownerId ?? crypto.randomUUID();
    const stateDir = path.join(root, 'state', ownerId);
    await mkdir(stateDir, { recursive: true });
    const traces: Trace[] = [];
    const program: Program = {
      ref: {
        kind: 'release',
        id: crypto.randomUUID(),
        ownerId,
        engine: 'worker',
        isStateful: wishes.isStateful ?? false,
      },
      file,
      secrets: wishes.secrets ?? {},
      configSchema: wishes.configSchema ?? null,
      egressAllow: wishes.egressAllow ?? null,
    };
    const limits = { ...LIMITS, ...wishes.limits };
    const context: EngineContext = {
      limits,
      runDir,
      stateDir,
      log: () => undefined,
      onTrace: (trace) => traces.push(trace),
      redact: (text) => text,
    };
    const instance = await this.engine.start(program, context);
    this.running.push(instance);
    return Object.assign(instance, { traces, runDir });
  }

  async stopAll(): Promise<void> {
    await Promise.all(this.running.map((instance) => instance.stop(2_000)));
    if (this.root) await rm(await this.root, { recursive: true, force: true });
  }
}

/** Sends a request and reads the answer. */
export async function ask(
  { dispatcher }: { dispatcher: Dispatcher },
  request: { path?: string; method?: Dispatcher.HttpMethod; headers?: Record<string, string>; body?: unknown } = {},
) {
  const { statusCode, headers, body } = await dispatcher.request({
    origin: 'http://program.test',
    path: request.path ?? '/',
    method: request.method ?? (request.body === undefined ? 'GET' : 'POST'),
    headers: {
      host: 'program.test',
      ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...request.headers,
    },
    body: request.body === undefined ? undefined : JSON.stringify(request.body),
  });
  const text = await body.text();
  return { status: statusCode, headers, text, json: () => JSON.parse(text) };
}

/** Sends one JSON-RPC message as MCP clients do, and returns the reply, whichever way it came. */
export async function rpc(
  program: { dispatcher: Dispatcher },
  method: string,
  params: unknown = {},
  { headers, path, id = 1 }: { headers?: Record<string, string>; path?: string; id?: number } = {},
) {
  const answer = await ask(program, {
    path,
    headers: { accept: 'application/json, text/event-stream', ...headers },
    body: { jsonrpc: '2.0', id, method, params },
  });
  const data = /^data: (.+)$/m.exec(answer.text)?.[1] ?? answer.text;
  return { ...answer, reply: data.startsWith('{') ? JSON.parse(data) : null };
}

/** The bundle the published tool would make of a server's TypeScript. */
export async function bundled(source: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: source, loader: 'ts', resolveDir: fileURLToPath(new URL('../..', import.meta.url)) },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'esnext',
    conditions: ['workerd', 'worker', 'browser'],
    define: { 'process.env.NODE_ENV': '"production"' },
    minify: true,
    logLevel: 'silent',
  });
  return outputFiles[0].text;
}
