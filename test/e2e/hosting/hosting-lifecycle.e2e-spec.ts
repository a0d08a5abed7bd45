import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { Tuning } from '../../../src/config/tuning.js';
import type { ProgramRef } from '../../../src/hosting/hosting.types.js';
import { HostedRuntime } from '../../support/hosting/hosted-runtime.js';
import { NodeEngine } from '../../support/hosting/node-engine.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

/** Says its name; waits, streams, dies or prints as the path asks. */
const program = (name: string) => `
import { existsSync } from 'node:fs';
console.log('loaded ${name}');
export default (request, response) => {
  response.setHeader('x-name', '${name}');
  const path = request.url.split('?')[0];
  if (path === '/die') { console.error('last words of ${name}'); process.exit(3); }
  if (path === '/loop') for (;;);
  if (path === '/wait') { response.write('begun '); setTimeout(() => response.end('${name}'), Number(new URL(request.url, 'http://x').searchParams.get('ms') ?? 300)); return; }
  if (path === '/until') {
    response.write('begun ');
    const file = new URL(request.url, 'http://x').searchParams.get('file');
    const timer = setInterval(() => { if (existsSync(file)) { clearInterval(timer); response.end('${name}'); } }, 10);
    return;
  }
  if (path === '/hold') { response.write('open'); return; }
  if (path === '/key') return response.end(process.env.KEY ?? 'none');
  if (path === '/headers') return response.end(JSON.stringify(request.headers));
  if (path === '/echo') return request.pipe(response);
  if (path === '/print') { console.log('printed'); return setTimeout(() => response.end('${name}'), 100); }
  if (path === '/slow-die') { response.write('half'); setTimeout(() => process.exit(1), 50); return; }
  response.end('${name}');
};`;

let hosted: HostedRuntime;
let engine: NodeEngine;

async function start(settings: NodeJS.ProcessEnv = {}, tuning: Partial<Tuning> = {}): Promise<void> {
  engine = new NodeEngine();
  hosted = await HostedRuntime.start(engine, settings, tuning);
}

afterEach(() => hosted.close());

const live = () => hosted.runtime.stats().live;

describe('the start of a program', () => {
  verifies(
    'runtime:stop:idle',
    'happens at the first request, once for all concurrent ones, and each gets its own response',
    async () => {
      await start();
      const ref = await hosted.add(program('a'));
      const answers = await Promise.all(Array.from({ length: 20 }, () => hosted.ask(ref)));
      for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: 'a', error: null });
      expect(engine.started).toEqual([ref.id]);
      expect(hosted.runtime.stats()).toMatchObject({ live: 1, starting: 0, inFlight: 0, starts: 1, crashes: 0 });
    },
  );

  verifies(
    'runtime:start:failure',
    'adds the output of loading to the request that waits for the program',
    async () => {
      await start();
      const ref = await hosted.add(program('a'));
      const { invocationId } = await hosted.ask(ref);
      expect(hosted.told(invocationId)?.lines.map(({ message }) => message)).toEqual(['loaded a']);
    },
  );

  verifies('runtime:start:failure', 'is recorded on its own, if no request waits', async () => {
    await start();
    const old = await hosted.add(program('a'));
    await hosted.ask(old);
    await hosted.runtime.current(await hosted.add(program('b'), { of: old }));
    const own = hosted.traces.find(({ request }) => request?.method === 'START');
    expect(own).toMatchObject({ request: { path: '/', status: 200 }, lines: [{ message: 'loaded b' }] });
    expect(own?.invocationId).toMatch(/^[0-9a-f-]{36}$/);
  });

  verifies('runtime:start:failure', 'is reported to the owner with its output when it fails', async () => {
    await start();
    const ref = await hosted.add('throw new Error("no database"); export default () => {};');
    const { error, invocationId } = await hosted.ask(ref);
    expect(error).toMatchObject({ code: 'upstream_error', mayHaveRun: false });
    expect(error?.message).not.toContain('no database');
    expect(hosted.told(invocationId)).toMatchObject({
      outcome: 'exception',
      exceptions: [{ name: 'ProgramStartError', message: expect.stringContaining('no database') }, {}],
    });
  });
});

describe('a request', () => {
  verifies('runtime:request:streams', 'streams both ways', async () => {
    await start();
    const ref = await hosted.add(program('a'));
    const body = new Readable({ read: () => undefined });
    const push = (chunk: string | null) => void body.push(chunk);
    const exchange = hosted.request(ref, '/echo', { method: 'POST', body });
    push('one ');
    await until(() => exchange.soFar() === 'one ', 'the first chunk came back before the second was sent');
    push('two');
    push(null);
    expect(await exchange.answer).toMatchObject({ status: 200, body: 'one two', error: null });
  });

  verifies('runtime:request:streams', 'stops the program from sending while its reader takes nothing', async () => {
    await start();
    const ref = await hosted.add(`export default (request, response) => {
      let sent = 0;
      const more = () => { for (;;) { if (sent >= 8e6) return response.end(); sent += 65536; globalThis.sent = sent; if (!response.write(Buffer.alloc(65536))) return response.once('drain', more); } };
      if (request.url === '/sent') response.end(String(globalThis.sent)); else more();
    };`);
    let resume: () => void = () => undefined;
    let bytes = 0;
    const answer = hosted.ask(ref, '/', {
      handler: {
        onResponseData: (controller, chunk) => {
          if (bytes === 0) controller.pause();
          bytes += chunk.length;
          resume = () => controller.resume();
        },
      },
    });
    await until(() => bytes > 0, 'the answer begins');
    let sent = 0;
    await until(async () => {
      const before = sent;
      sent = Number((await hosted.ask(ref, '/sent')).body);
      return sent === before;
    }, 'the program waits');
    expect(sent).toBeLessThan(4e6);
    resume();
    expect((await answer).error).toBeNull();
    expect(bytes).toBeGreaterThanOrEqual(8e6);
  });

  verifies(
    ['runtime:request:streams', 'runtime:request:record'],
    'keeps its invocation id, and without a valid one gets a new one and a record',
    async () => {
      await start();
      const ref = await hosted.add(program('a'));
      const given = await hosted.ask(ref, '/headers?key=secret', {
        headers: { connection: 'x-a', 'x-a': '1', 'x-slipway-internal': '1' },
      });
      const seen = JSON.parse(given.body) as Record<string, string>;
      expect(seen).toMatchObject({ 'x-slipway-invocation': given.invocationId, host: 'program' });
      expect(seen).not.toHaveProperty('x-a');
      expect(seen).not.toHaveProperty('x-slipway-internal');
      expect(hosted.told(given.invocationId)?.request).toBeUndefined();

      const headers = { 'x-slipway-invocation': 'forged', 'x-slipway-rpc-method': 'tools/list' };
      const own = JSON.parse((await hosted.ask(ref, '/headers?key=secret', { headers })).body) as Record<
        string,
        string
      >;
      expect(own['x-slipway-invocation']).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
      expect(own).not.toHaveProperty('x-slipway-rpc-method');
      expect(hosted.told(own['x-slipway-invocation'] ?? '')).toMatchObject({
        request: { method: 'GET', path: '/headers', status: 200, rpcMethod: 'tools/list' },
        lines: [],
        exceptions: [],
      });
    },
  );

  verifies('runtime:request:record', 'is canceled at the program when its client leaves', async () => {
    await start();
    const ref = await hosted.add(program('a'));
    const exchange = hosted.request(ref, '/hold');
    await exchange.head;
    exchange.leave();
    const { invocationId } = await exchange.answer;
    expect(hosted.told(invocationId)).toMatchObject({ outcome: 'canceled', exceptions: [] });
    expect(hosted.runtime.stats().inFlight).toBe(0);
  });

  it('fails alone when its body breaks while the program starts', async () => {
    await start();
    const ref = await hosted.add(program('a'));
    const body = new Readable({ read: () => undefined });
    const broken = hosted.ask(ref, '/echo', { method: 'POST', body });
    body.destroy(new Error('the upload broke'));
    expect((await broken).error?.message).toBe('the upload broke');
    expect(await hosted.ask(ref)).toMatchObject({ body: 'a' });
  });
});

describe('programs are stopped', () => {
  verifies('runtime:stop:idle', 'without requests for the idle time', async () => {
    await start({}, { runtimeIdleMs: 300 });
    const ref = await hosted.add(program('a'));
    await hosted.ask(ref);
    await until(() => live() === 0, 'the idle program stopped');
    expect(await hosted.ask(ref)).toMatchObject({ body: 'a' });
    expect(hosted.runtime.stats().starts).toBe(2);
  });

  verifies('runtime:stop:idle', 'when others need room: the longest idle one, never an active one', async () => {
    await start({ RUNTIME_LIVE_MAX: '3' });
    const [busy, first, second, third] = (await Promise.all(
      ['busy', 'first', 'second', 'third'].map((name) => hosted.add(program(name))),
    )) as [ProgramRef, ProgramRef, ProgramRef, ProgramRef];
    const held = hosted.request(busy, '/hold');
    await held.head;
    await hosted.ask(second);
    await hosted.ask(first);
    await hosted.ask(third);
    expect(live()).toBe(3);
    await hosted.ask(first);
    expect(engine.started).toEqual([busy.id, second.id, first.id, third.id]);
    const more = await Promise.all(
      [hosted.request(first, '/hold'), hosted.request(third, '/hold')].map(async (one) => (await one.head, one)),
    );
    const { error } = await hosted.ask(second);
    expect(error).toMatchObject({ code: 'hosting_unavailable', message: expect.stringContaining('try again') });
    for (const one of [held, ...more]) one.leave();
    expect(await hosted.ask(second)).toMatchObject({ body: 'second' });
  });
});

describe('the memory of the service', () => {
  verifies('runtime:stop:memory', 'is kept by ending idle programs, the longest idle one first', async () => {
    await start();
    const [busy, first, second] = (await Promise.all(
      ['busy', 'first', 'second'].map((name) => hosted.add(program(name))),
    )) as [ProgramRef, ProgramRef, ProgramRef];
    const held = hosted.request(busy, '/hold');
    await held.head;
    await hosted.ask(first);
    await hosted.ask(second);
    const used = hosted.runtime.memoryMb() * 1_048_576;
    expect(used).toBeGreaterThan(0);
    hosted.memory.own = () => 0;
    // Three programs are too many, two are not.
    hosted.memory.total = used * 0.95;
    await until(() => live() === 2, 'one program was ended');
    expect(await hosted.ask(second)).toMatchObject({ body: 'second' });
    expect(engine.started).toEqual([busy.id, first.id, second.id]);

    // The next start takes the place of the idle one, and none is left for another.
    hosted.memory.total = used * 0.5;
    expect(await hosted.ask(first)).toMatchObject({ body: 'first' });
    const alsoHeld = hosted.request(first, '/hold');
    await alsoHeld.head;
    const { error } = await hosted.ask(second);
    expect(error).toMatchObject({
      kind: 'unavailable',
      retryAfterSeconds: 5,
      message: expect.stringContaining('memory'),
    });
    expect(live()).toBe(2);
    for (const call of [held, alsoHeld]) call.leave();
  });
});

describe('a program of an account at its limit', () => {
  verifies('runtime:stop:quota', 'takes the place of its own longest idle one, or is refused', async () => {
    await start();
    const [busy, idle, third, foreign] = (await Promise.all(
      ['busy', 'idle', 'third', 'foreign'].map((name) => hosted.add(program(name))),
    )) as [ProgramRef, ProgramRef, ProgramRef, ProgramRef];
    for (const { ownerId } of [busy, idle, third]) hosted.quotas.set(ownerId, { accountId: 'small', max: 2 });
    const held = hosted.request(busy, '/hold');
    await held.head;
    for (const one of [foreign, idle]) await hosted.ask(one);
    expect(hosted.runtime.livePrograms()).toEqual({ small: 2, 'an-account': 1 });

    expect(await hosted.ask(third)).toMatchObject({ body: 'third' });
    expect(hosted.runtime.livePrograms()).toEqual({ small: 2, 'an-account': 1 });

    const alsoHeld = hosted.request(third, '/hold');
    await alsoHeld.head;
    const { error } = await hosted.ask(idle);
    expect(error).toMatchObject({ kind: 'rate_limited', code: 'rate_limited', retryAfterSeconds: 1 });
    expect(error?.message).toMatch(/^This account is at its limit of livePrograms: 2 /);
    expect(await hosted.ask(foreign)).toMatchObject({ body: 'foreign' });

    // A new version replaces the old one and needs no further place.
    const next = await hosted.add(program('next'), { of: third });
    expect(await hosted.ask(next)).toMatchObject({ body: 'next' });
    for (const one of [held, alsoHeld]) one.leave();
  });
});

describe('a new version', () => {
  verifies(
    'runtime:swap:lossless',
    'takes over under load without losing a request, and the old one finishes its own first',
    async () => {
      await start();
      const old = await hosted.add(program('old'));
      await hosted.ask(old);
      const next = await hosted.add(program('new'), { of: old });
      const isOver = join(hosted.stateRoot, '..', 'over');
      const long = hosted.request(old, `/until?file=${encodeURIComponent(isOver)}`);
      await long.head;
      let isSwapped = false;
      const bodies: string[] = [];
      const callers = Array.from({ length: 8 }, async () => {
        for (let after = 0; after < 20; after += isSwapped ? 1 : 0) {
          const answer = await hosted.ask(old);
          if (answer.error) throw answer.error;
          bodies.push(answer.body);
        }
      });
      await hosted.runtime.current(next);
      isSwapped = true;
      await Promise.all(callers);
      expect(new Set(bodies)).toEqual(new Set(['old', 'new']));
      expect(bodies.at(-1)).toBe('new');
      expect(live()).toBe(2);
      await mkdir(dirname(isOver), { recursive: true });
      await writeFile(isOver, '');
      expect(await long.answer).toMatchObject({ body: 'begun old', error: null });
      await until(() => live() === 1, 'the old version is gone');
      expect(engine.started).toEqual([old.id, next.id]);
    },
  );

  verifies('runtime:swap:stateful', 'starts only after the old one has exited if it keeps sessions', async () => {
    await start();
    const old = await hosted.add(program('old'), { isStateful: true });
    await hosted.ask(old);
    const next = { ...(await hosted.add(program('new'), { of: old })), isStateful: true };
    const long = hosted.request(old, '/wait?ms=600');
    await long.head;
    const asked = hosted.ask(next);
    expect(hosted.runtime.stats()).toMatchObject({ live: 1, starting: 1 });
    expect(await long.answer).toMatchObject({ body: 'begun old', error: null });
    expect(await asked).toMatchObject({ body: 'new' });
    expect(live()).toBe(1);
  });

  it('is given the time of one request to end those of the old one', async () => {
    await start({ RUNTIME_WALL_MS: '500' });
    const old = await hosted.add(program('old'));
    await hosted.ask(old);
    const stream = hosted.request(old, '/hold', { isStream: true });
    await stream.head;
    await hosted.runtime.current(await hosted.add(program('new'), { of: old }));
    expect(await stream.answer).toMatchObject({ body: 'open', error: null });
    await until(() => live() === 1, 'the old version is gone');
  });

  verifies('runtime:swap:bounded', 'does not let an owner have more than two programs', async () => {
    await start();
    const first = await hosted.add(program('1'));
    const answers = [];
    let ref = first;
    for (let version = 1; version <= 4; version += 1) {
      answers.push(hosted.ask(ref, '/wait?ms=300'));
      ref = await hosted.add(program(String(version + 1)), { of: first });
    }
    let most = 0;
    const all = Promise.all(answers).then((list) => list.map(({ error }) => error));
    await until(() => {
      most = Math.max(most, live());
      return hosted.runtime.stats().inFlight === 0;
    }, 'all have their answer');
    expect(await all).toEqual([null, null, null, null]);
    expect(most).toBeLessThanOrEqual(2);
    await until(() => live() === 1, 'one is left');
  });
});

describe('new values', () => {
  verifies('runtime:renew', 'reach a running program under load without losing a request', async () => {
    await start();
    hosted.secrets = { KEY: 'old' };
    const ref = await hosted.add(program('a'));
    await hosted.ask(ref);
    const long = hosted.request(ref, '/wait?ms=1000');
    await long.head;
    hosted.secrets = { KEY: 'new' };
    let isRenewed = false;
    const bodies: string[] = [];
    const callers = Array.from({ length: 8 }, async () => {
      for (let after = 0; after < 10; after += isRenewed ? 1 : 0) {
        const { error, body } = await hosted.ask(ref, '/key');
        if (error) throw error;
        bodies.push(body);
      }
    });
    await hosted.runtime.renew(ref.ownerId);
    isRenewed = true;
    expect((await hosted.ask(ref, '/key')).body).toBe('new');
    await Promise.all(callers);
    expect(bodies.at(-1)).toBe('new');
    expect(await long.answer).toMatchObject({ body: 'begun a', error: null });
    await until(() => live() === 1, 'the one before is gone');
    expect(engine.started).toEqual([ref.id, ref.id]);
  });

  verifies('runtime:renew', 'restart nothing that has them already, and start nothing that does not run', async () => {
    await start();
    hosted.secrets = { KEY: 'one', OTHER: 'two' };
    const ref = await hosted.add(program('a'));
    await hosted.runtime.renew(ref.ownerId);
    expect(engine.started).toEqual([]);
    await hosted.ask(ref);
    hosted.secrets = { OTHER: 'two', KEY: 'one' };
    await hosted.runtime.renew(ref.ownerId);
    expect(engine.started).toEqual([ref.id]);
  });

  verifies('runtime:renew', 'wait with a program that keeps sessions until the previous one has exited', async () => {
    await start();
    const ref = await hosted.add(program('a'), { isStateful: true });
    const long = hosted.request(ref, '/wait?ms=600');
    await long.head;
    hosted.secrets = { KEY: 'new' };
    const renewed = hosted.runtime.renew(ref.ownerId);
    await until(() => hosted.runtime.stats().starting === 1, 'it waits');
    expect(hosted.runtime.stats().live).toBe(1);
    expect(await long.answer).toMatchObject({ body: 'begun a', error: null });
    await renewed;
    expect(hosted.runtime.stats()).toMatchObject({ live: 1, starts: 2 });
    expect((await hosted.ask(ref, '/key')).body).toBe('new');
  });

  verifies('runtime:renew:lost', 'reach a program that is never idle although the message is lost', async () => {
    await start({}, { runtimeLeaseMs: 600 });
    hosted.secrets = { KEY: 'taken away' };
    const ref = await hosted.add(program('a'));
    expect((await hosted.ask(ref, '/key')).body).toBe('taken away');
    hosted.secrets = {};
    await until(async () => (await hosted.ask(ref, '/key')).body === 'none', 'it has what it is given now');
    expect(engine.started).toEqual([ref.id, ref.id]);
    hosted.failing = new Error('the database is away');
    const checks = hosted.asked;
    await until(() => hosted.asked > checks + 1, 'it was looked at again');
    expect((await hosted.ask(ref, '/key')).body).toBe('none');
    expect(engine.started).toHaveLength(2);
  });

  verifies('runtime:renew', 'cancel the back-off of a program that crashed without them', async () => {
    await start();
    const ref = await hosted.add(
      "if (!process.env.KEY) throw new Error('no key'); export default (_, r) => r.end('ok');",
    );
    for (let crashes = 0; crashes < 2; crashes += 1) await hosted.ask(ref);
    expect((await hosted.ask(ref)).error).toMatchObject({ name: 'ProgramRestingError' });
    hosted.secrets = { KEY: 'there' };
    await hosted.runtime.renew(ref.ownerId);
    expect(await hosted.ask(ref)).toMatchObject({ body: 'ok', error: null });
  });
});

describe('a program that crashes', () => {
  verifies(
    'runtime:crash:back-off',
    'fails its requests without its output, is restarted by the next one, and backs off after repeated crashes',
    async () => {
      await start();
      const ref = await hosted.add(program('a'));
      await hosted.ask(ref);
      const dead = await hosted.ask(ref, '/die');
      expect(dead.error).toMatchObject({ name: 'ProgramCrashedError', mayHaveRun: true });
      expect(dead.error?.message).not.toContain('last words of a');
      expect(hosted.told(dead.invocationId)).toMatchObject({
        outcome: 'exception',
        exceptions: [{ name: 'ProgramCrashedError', message: expect.stringContaining('last words of a') }, {}],
      });
      await hosted.ask(ref, '/die');
      const resting = await hosted.ask(ref);
      expect(resting.error).toMatchObject({ name: 'ProgramRestingError', retryAfterSeconds: 1, mayHaveRun: false });
      expect(await until(async () => (await hosted.ask(ref)).body === 'a', 'it runs again')).toBe(true);
      expect(await hosted.ask(ref, '/die')).toMatchObject({ error: { name: 'ProgramCrashedError' } });
      expect(await hosted.ask(ref)).toMatchObject({ body: 'a' });
    },
  );

  it('in the middle of a response breaks it off with a record', async () => {
    await start();
    const ref = await hosted.add(program('a'));
    const { body, error, invocationId } = await hosted.ask(ref, '/slow-die');
    expect(body).toBe('half');
    expect(error?.name).toBe('ProgramCrashedError');
    expect(hosted.told(invocationId)?.outcome).toBe('exception');
  });
});

describe('an owner that was deleted', () => {
  verifies('runtime:stop:forgotten', 'leaves neither a program nor state', async () => {
    await start();
    const ref = await hosted.add(program('a'), { isStateful: true });
    await hosted.ask(ref);
    const state = join(hosted.stateRoot, ref.ownerId);
    await mkdir(state, { recursive: true });
    await writeFile(join(state, 'session'), 'x');
    const held = hosted.request(ref, '/wait?ms=5000');
    await held.head;
    await hosted.runtime.forget(ref.ownerId);
    expect((await held.answer).error).toMatchObject({ name: 'ProgramCrashedError' });
    expect(live()).toBe(0);
    expect(existsSync(state)).toBe(false);
    await hosted.runtime.forget(ref.ownerId);
  });
});

describe('the stop of the service', () => {
  verifies('runtime:stop:service', 'stops every program in order, and accepts no new requests', async () => {
    await start();
    const refs = await Promise.all(['a', 'b', 'c'].map((name) => hosted.add(program(name))));
    await Promise.all(refs.map((ref) => hosted.ask(ref)));
    const starting = hosted.ask(await hosted.add(program('d')));
    await hosted.runtime.onApplicationShutdown();
    expect(hosted.runtime.stats()).toMatchObject({ live: 0, starting: 0, crashes: 0 });
    expect((await starting).error).toMatchObject({ code: 'hosting_unavailable' });
    expect((await hosted.ask(refs[0])).error).toMatchObject({ code: 'hosting_unavailable' });
  });
});
