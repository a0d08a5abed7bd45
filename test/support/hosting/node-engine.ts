import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, Pool } from 'undici';
import { Engine, type EngineContext, type Instance, type InstanceExit } from '../../../src/hosting/engine.js';
import { ProgramStartError } from '../../../src/hosting/hosting.errors.js';
import type { Program } from '../../../src/hosting/hosting.types.js';

/** The module answers requests with `default(request, response)` and may print before. */
const host = `
import { createServer } from 'node:http';
import handle from './module.mjs';
const health = createServer((request, response) => response.end()).listen('health.sock', () =>
  createServer(handle).listen('in.sock', () => console.log('@ready')));
`;

/** Runs programs in Node, a process each: for tests of what does not depend on how code is run. */
export class NodeEngine extends Engine {
  readonly name = 'worker';
  /** Ids of versions, in the order they were started. */
  readonly started: string[] = [];

  async start({ file, ref, secrets }: Program, { runDir, onTrace }: EngineContext): Promise<Instance> {
    await writeFile(
      join(runDir, 'module.mjs'),
      `export * from ${JSON.stringify(file)};export { default } from ${JSON.stringify(file)};`,
    );
    await writeFile(join(runDir, 'host.mjs'), host);
    const child = spawn(process.execPath, ['host.mjs'], {
      cwd: runDir,
      env: secrets,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let words = '';
    let isStopping = false;
    let ready: () => void = () => undefined;
    const isReady = new Promise<boolean>((resolve) => (ready = () => resolve(true)));
    child.stdout.on('data', (chunk: Buffer) => {
      for (const message of chunk.toString().split('\n').filter(Boolean)) {
        if (message === '@ready') ready();
        else onTrace({ ref, invocationId: '', lines: [{ at: Date.now(), level: 'log', message }], exceptions: [] });
      }
    });
    child.stderr.on('data', (chunk: Buffer) => (words = (words + chunk.toString()).slice(-2_000)));
    const exited = once(child, 'close').then((): InstanceExit => ({
      reason: isStopping ? 'stopped' : 'crashed',
      detail: words,
    }));
    if (!(await Promise.race([isReady, exited.then(() => false)])))
      throw new ProgramStartError('It does not start.', undefined, words);
    this.started.push(ref.id);
    const dispatcher = new Pool('http://program', { socketPath: join(runDir, 'in.sock'), connections: null });
    const health = new Client('http://program', { socketPath: join(runDir, 'health.sock') });
    for (const pool of [dispatcher, health]) pool.on('disconnect', () => undefined);
    void exited.then(() => Promise.all([dispatcher.destroy(), health.destroy()]));
    return {
      pid: child.pid ?? null,
      dispatcher,
      exited,
      ping: async (timeoutMs) => {
        const answer = await health.request({ method: 'GET', path: '/', signal: AbortSignal.timeout(timeoutMs) });
        await answer.body.dump();
      },
      stop: async (graceMs) => {
        isStopping = true;
        child.kill('SIGTERM');
        const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
        await exited;
        clearTimeout(timer);
      },
      kill: () => void child.kill('SIGKILL'),
    };
  }
}
