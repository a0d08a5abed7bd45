import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { ProgramRef } from '../../../src/hosting/hosting.types.js';
import { RunDirs } from '../../../src/hosting/runtime/run-dirs.js';
import { builtFile } from '../../support/built.js';
import { HostedRuntime, workerdEngine } from '../../support/hosting/hosted-runtime.js';
import { until } from '../../support/until.js';
import { longIt } from '../../support/jest/globals.mjs';
import { longVerifies, verifies } from '../../support/verifies.js';

/** Everything a module may do to those around it, by path. */
const HOSTILE = `
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const burn = (ms) => { for (const end = Date.now() + ms; Date.now() < end; ) for (let i = 0; i < 1e5; i++); };
const kept = [];
export default {
  async fetch(request, env, context) {
    const { pathname, searchParams } = new URL(request.url);
    switch (pathname) {
      case '/loop': console.log('before the loop'); for (;;);
      case '/late-loop': context.waitUntil(sleep(50).then(() => { for (;;); })); return new Response('answered');
      case '/regex': return new Response(String(/^(a+)+$/.test('a'.repeat(40) + 'b')));
      case '/microtasks': { const turn = () => Promise.resolve().then(turn); await turn(); break; }
      case '/polite-loop': for (;;) { let n = 0; for (let i = 0; i < 2e7; i++) n += i; await sleep(1); }
      case '/heap': for (;;) kept.push({ text: 'x'.repeat(100) + kept.length, list: new Array(1000).fill(kept.length) });
      case '/buffers': for (;;) { kept.push(new Uint8Array(16 * 1024 * 1024).fill(7)); await sleep(1); }
      case '/lines': for (let line = 0; line < 1000; line += 1) console.log('line ' + line); return new Response('printed');
      case '/never': return new Promise(() => undefined);
      case '/slow': await sleep(Number(searchParams.get('ms'))); return new Response('slow');
      case '/forever': for (;;) await sleep(100);
      case '/large': return new Response(new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(65536)) }));
      case '/hold': return new Response(new ReadableStream({ start: (to) => to.enqueue(new TextEncoder().encode('open')) }));
      case '/fetches': {
        const results = await Promise.allSettled(Array.from({ length: 500 }, (_, i) => fetch('http://127.0.0.1:' + (i + 1000))));
        return new Response(String(results.filter(({ status, value }) => status === 'fulfilled' && value.status === 200).length));
      }
      case '/throw': throw new TypeError('not today');
    }
    return new Response('alive');
  },
};`;

const LIMITS = { RUNTIME_CPU_MS: '1000', RUNTIME_WALL_MS: '120000', RUNTIME_MEMORY_MB: '64' };
const TUNING = { runtimeStallMs: 700, runtimeResponseBytes: 1024 * 1024, runtimeConcurrency: 8 };

beforeAll(() => Logger.overrideLogger(false));

describe('a program that misbehaves', () => {
  let hosted: HostedRuntime;
  let neighbour: ProgramRef;
  let isOver = false;
  let neighbourAnswers = 0;
  let neighbours: Promise<void>;

  beforeAll(async () => {
    hosted = await HostedRuntime.start(workerdEngine(), LIMITS, TUNING);
    neighbour = await hosted.add(`export default { fetch: () => new Response('neighbour') }`);
    await hosted.ask(neighbour);
    const call = async () => {
      while (!isOver) {
        const { error, body } = await hosted.ask(neighbour);
        if (error || body !== 'neighbour') throw error ?? new Error(`the neighbour said ${body}`);
        neighbourAnswers += 1;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    neighbours = call();
    neighbours.catch(() => undefined);
  });
  afterAll(() => hosted.close());

  /** One request to a fresh program, and how its owner hears of it. */
  async function tried(path: string, outcome: string | undefined) {
    const ref = await hosted.add(HOSTILE);
    const answer = await hosted.ask(ref, path);
    const told = await hosted.toldOutcome(answer.invocationId, outcome as never);
    return { ref, answer, told };
  }

  const isAlive = async (ref: ProgramRef) =>
    expect(await hosted.ask(ref)).toMatchObject({ status: 200, body: 'alive' });

  for (const path of ['/loop', '/regex']) {
    verifies('runtime:limit:cpu', `${path}: is killed, keeps its lines, and serves the next request`, async () => {
      const { ref, answer, told } = await tried(path, 'exceededCpu');
      expect(answer.error).toMatchObject({ name: 'LimitExceededError', outcome: 'exceededCpu' });
      expect(answer.error?.message).toMatch(/let nothing else run for 700 ms|used more than 1000 ms of CPU time/);
      expect(told.exceptions).toMatchObject([{ name: 'LimitExceededError', message: answer.error?.message }]);
      expect(told.cpuMs).toBeGreaterThan(50);
      expect(told.wallMs).toBeGreaterThan(600);
      if (path === '/loop') {
        const lines = () => hosted.told(answer.invocationId)?.lines.map(({ message }) => message);
        await until(() => lines()?.includes('before the loop'), 'the line before the loop is told');
      }
      await isAlive(ref);
    });
  }

  verifies(
    'runtime:limit:cpu',
    'loops after its response: the response is delivered, and its record has the outcome',
    async () => {
      const { answer, told, ref } = await tried('/late-loop', 'exceededCpu');
      expect(answer).toMatchObject({ status: 200, body: 'answered', error: null });
      expect(told.exceptions).toMatchObject([{ name: 'LimitExceededError' }]);
      await isAlive(ref);
    },
  );

  longVerifies(
    'runtime:limit:cpu',
    'floods itself with microtasks: is killed for its CPU time or its memory',
    async () => {
      const ref = await hosted.add(HOSTILE);
      const answer = await hosted.ask(ref, '/microtasks');
      expect(['exceededCpu', 'exceededMemory']).toContain(answer.error?.outcome);
      expect(hosted.told(answer.invocationId)?.outcome).toBe(answer.error?.outcome);
      await isAlive(ref);
    },
  );

  longVerifies('runtime:limit:cpu', 'lets others run, but never ends: is killed for its CPU time', async () => {
    // On a busy machine it may get so little that it seems to let nothing run.
    const patient = await HostedRuntime.start(workerdEngine(), LIMITS, { ...TUNING, runtimeStallMs: 60_000 });
    const answer = await patient.ask(await patient.add(HOSTILE), '/polite-loop');
    const told = await patient.toldOutcome(answer.invocationId, 'exceededCpu');
    expect(answer.error?.message).toContain('used more than 1000 ms of CPU time');
    expect(told.cpuMs).toBeGreaterThanOrEqual(1_000);
    await patient.close();
  });

  verifies('runtime:limit:cpu', 'waits in a timer while this process is blocked: is not ended', async () => {
    const engine = workerdEngine();
    const start = engine.start.bind(engine);
    let isHeldUp = false;
    engine.start = async (...given) => {
      const instance = await start(...given);
      const ping = instance.ping.bind(instance);
      // The process stops while it waits for a sign of life, for longer than a program may be silent.
      instance.ping = (timeoutMs) => {
        const answer = ping(timeoutMs);
        for (const end = performance.now() + 1_500; !isHeldUp && performance.now() < end;);
        isHeldUp = true;
        return answer;
      };
      return instance;
    };
    const heldUp = await HostedRuntime.start(engine, LIMITS, TUNING);
    expect(await heldUp.ask(await heldUp.add(HOSTILE), '/slow?ms=1000')).toMatchObject({ body: 'slow', error: null });
    expect([isHeldUp, heldUp.runtime.stats().kills.stall]).toEqual([true, 0]);
    await heldUp.close();
  });

  verifies('runtime:limit:wall', 'responds without end: the response is cut', async () => {
    const { ref, answer, told } = await tried('/large', 'exceededResponse');
    expect(answer.status).toBe(200);
    expect(answer.body.length).toBeLessThanOrEqual(1_048_576);
    expect(told.exceptions[0]?.message).toContain('larger than 1 MB');
    await isAlive(ref);
    expect(hosted.runtime.stats().inFlight).toBeLessThanOrEqual(1);
  });

  verifies('runtime:request:record', 'throws: its own view of the end counts', async () => {
    const { answer, told } = await tried('/throw', 'exception');
    expect(answer.status).toBe(500);
    expect(told.exceptions).toMatchObject([{ name: 'TypeError', message: 'not today' }]);
  });

  verifies(
    'runtime:limit:concurrency',
    'gets more concurrent requests than it may serve: the rest is rejected immediately',
    async () => {
      const ref = await hosted.add(HOSTILE);
      await hosted.ask(ref);
      const answers = await Promise.all(Array.from({ length: 100 }, () => hosted.ask(ref, '/slow?ms=300')));
      const refused = answers.filter(({ error }) => error);
      expect(refused.length).toBe(92);
      for (const { error, invocationId } of refused) {
        expect(error).toMatchObject({ name: 'ProgramBusyError', mayHaveRun: false, retryAfterSeconds: 1 });
        expect(hosted.told(invocationId)?.outcome).toBe('exception');
      }
      expect(answers.filter(({ body }) => body === 'slow')).toHaveLength(8);
    },
  );

  verifies('runtime:request:record', 'loses its client: the request is canceled', async () => {
    const ref = await hosted.add(HOSTILE);
    const exchange = hosted.request(ref, '/hold');
    await exchange.head;
    exchange.leave();
    await hosted.toldOutcome((await exchange.answer).invocationId, 'canceled');
    await isAlive(ref);
  });

  it('floods others with requests: reaches nothing here, and delays no other program', async () => {
    const { body, error } = await hosted.ask(await hosted.add(HOSTILE), '/fetches');
    expect(error).toBeNull();
    expect(body).toBe('0');
  });

  verifies(
    'runtime:limit:cpu',
    'ends concurrent requests with it: their error states that, and permits a retry',
    async () => {
      const ref = await hosted.add(HOSTILE);
      const innocent = hosted.ask(ref, '/slow?ms=100000');
      expect(await hosted.ask(ref)).toMatchObject({ body: 'alive' });
      const guilty = await hosted.ask(ref, '/loop');
      expect(guilty.error?.outcome).toBe('exceededCpu');
      expect((await innocent).error).toMatchObject({ name: 'ProgramCrashedError', outcome: 'exception' });
      expect((await innocent).error?.message).toContain('another request');
      await isAlive(ref);
    },
  );

  verifies('runtime:limit:neighbours', 'has kept no neighbour from answering', async () => {
    isOver = true;
    await neighbours;
    expect(neighbourAnswers).toBeGreaterThan(hosted.runtime.stats().kills.cpu);
    const stats = hosted.runtime.stats();
    expect(stats.kills.stall + stats.kills.cpu).toBeGreaterThanOrEqual(4);
    expect(stats.inFlight).toBe(0);
  });
});

describe('a program that takes too much memory', () => {
  let hosted: HostedRuntime;
  // Filling it takes CPU time, and collections hold everything up: here neither ends it first.
  const settings = { RUNTIME_MEMORY_MB: '64', RUNTIME_CPU_MS: '60000' };
  beforeAll(async () => {
    hosted = await HostedRuntime.start(workerdEngine(), settings, { runtimeStallMs: 20_000 });
  });
  afterAll(() => hosted.close());

  const isAlive = (ref: ProgramRef) => until(async () => (await hosted.ask(ref)).body === 'alive', 'it answers again');

  verifies('runtime:limit:memory', 'fills its heap: is killed with exceededMemory', async () => {
    const ref = await hosted.add(HOSTILE);
    const answer = await hosted.ask(ref, '/heap');
    await hosted.toldOutcome(answer.invocationId, 'exceededMemory');
    expect(answer.error?.message).toContain('64 MB of memory');
    await isAlive(ref);
  });

  longVerifies('runtime:limit:memory', 'fills its memory with buffers: is held back or ended', async () => {
    const ref = await hosted.add(HOSTILE);
    const answer = await hosted.ask(ref, '/buffers');
    const told = await until(
      () => hosted.told(answer.invocationId)?.outcome && hosted.told(answer.invocationId),
      'it is told',
    );
    if (answer.error) expect(told.outcome).toBe('exceededMemory');
    else expect(told).toMatchObject({ outcome: 'exception', exceptions: [{ name: 'RangeError' }] });
    await isAlive(ref);
  });
});

describe('programs in workerd', () => {
  longIt('do not grow with the requests they answer', async () => {
    const hosted = await HostedRuntime.start(workerdEngine(), { RUNTIME_MEMORY_MB: '64' });
    const ref = await hosted.add(`export default { fetch: () => new Response('alive') }`);
    let left = 12_000;
    const call = async () => {
      while (left-- > 0) {
        const { error } = await hosted.ask(ref);
        if (error) throw error;
      }
    };
    await Promise.all(Array.from({ length: 16 }, call));
    expect(hosted.runtime.stats()).toMatchObject({ starts: 1, crashes: 0, kills: { memory: 0 } });
    await hosted.close();
  });

  verifies(
    'runtime:limit:wall',
    'are cancelled by workerd or killed after the time of a request when they wait for what never comes',
    async () => {
      const hosted = await HostedRuntime.start(workerdEngine(), { RUNTIME_WALL_MS: '1000' });
      const ref = await hosted.add(HOSTILE);
      await until(async () => (await hosted.ask(ref)).error === null, 'it runs');
      const { error, invocationId } = await hosted.ask(ref, '/forever');
      expect(error).toMatchObject({ name: 'LimitExceededError', message: expect.stringContaining('within 1000 ms') });
      const told = await hosted.toldOutcome(invocationId, 'exceededWall');
      expect(told.wallMs).toBeGreaterThanOrEqual(990);
      const hung = await hosted.ask(ref, '/never');
      const ended = await until(() => hosted.told(hung.invocationId)?.outcome, 'it is told');
      expect(['exception', 'exceededWall']).toContain(ended);
      await hosted.close();
    },
  );
});

describe('the service killed with SIGKILL', () => {
  longVerifies('runtime:stop:killed', 'leaves no process, and the next start removes its folders', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'slipway-killed-'));
    const file = join(folder, 'module.mjs');
    await writeFile(file, HOSTILE);
    const script = fileURLToPath(new URL('../../support/hosting/hosting-process.mjs', import.meta.url));
    const child = spawn(process.execPath, [script, builtFile(''), file, '5'], {
      env: { PATH: process.env.PATH, DATA_DIR: folder, TMPDIR: folder },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await Promise.race([
      new Promise<string[]>((resolve) =>
        createInterface({ input: child.stdout }).once('line', (text) => resolve([text])),
      ),
      new Promise<never>((_, reject) => child.once('exit', (code) => reject(new Error(`it ended with ${code}`)))),
    ])) as [string];
    const pids = JSON.parse(line) as number[];
    expect(pids).toHaveLength(5);
    const lives = () => pids.filter((pid) => existsSync(`/proc/${pid}/exe`));
    expect(lives()).toEqual(pids);
    child.kill('SIGKILL');
    try {
      await until(() => lives().length === 0, 'no process of a program is left');
    } finally {
      for (const pid of lives()) process.kill(pid, 'SIGKILL');
    }
    const left = async () => (await readdir(folder)).filter((name) => name.startsWith('slipway-run-'));
    expect(await left()).toHaveLength(1);
    await new RunDirs(folder).removeStale();
    expect(await left()).toEqual([]);
    await rm(folder, { recursive: true, force: true });
  });
});
