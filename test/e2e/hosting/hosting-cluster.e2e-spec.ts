// Also run with the queue on Redis by test:long: messages between processes.
import { spawn, type ChildProcess } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, jest } from '@jest/globals';
import { HostDirectory, type LiveHost } from '../../../src/hosting/cluster/host-directory.js';
import type { HostRequestHead } from '../../../src/hosting/cluster/host-client.js';
import { HostingRouter } from '../../../src/hosting/cluster/hosting-router.js';
import { DataFolder, Placements } from '../../../src/hosting/cluster/placements.js';
import { PlacementsRepository } from '../../../src/hosting/cluster/placements.repository.js';
import { Hosting, ProgramOwners, type ProgramOwner } from '../../../src/hosting/hosting.js';
import { HostingUnavailableError, LimitExceededError, ProgramStartError } from '../../../src/hosting/hosting.errors.js';
import type { ProgramRef } from '../../../src/hosting/hosting.types.js';
import { Runtime } from '../../../src/hosting/runtime/runtime.js';
import { textFrame } from '../../../src/platform/internal-http/frames.js';
import { INTERNAL_HEADER, InternalSignatures } from '../../../src/platform/internal-http/internal-signatures.js';
import { ProcessRegistry } from '../../../src/platform/processes/process-registry.js';
import { ProcessesRepository } from '../../../src/platform/processes/processes.repository.js';
import { PubSub } from '../../../src/platform/queue/pub-sub.js';
import { builtFile } from '../../support/built.js';
import { startApp, testApp, type TestApp } from '../../support/app.js';
import { startDatabaseRelay, type DatabaseRelay } from '../../support/database/database-relay.js';
import { PlacedPrograms } from '../../support/hosting/placed-programs.mjs';
import { ask, begin, programOf, programRef, whoRuns } from '../../support/hosting/hosting-calls.js';
import { until } from '../../support/until.js';
import { freePort } from '../../support/upstream/upstream-net.js';
import { longVerifies, verifies } from '../../support/verifies.js';

/** The hosts that stay have a lease that no pause of a busy machine outlasts; each process may have another one. */
const STAYING_LEASE_MS = 9_000;
/** The hosts that are to die count as dead after this. */
const LEASE_MS = 3_000;

/** Real processes take their time on a busy machine. */
const SLOW_MS = 300_000;

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const app = testApp({}, { runtimeLeaseMs: STAYING_LEASE_MS });
let other: TestApp;
/** A process without the role `host`. */
let front: TestApp;
let programs: PlacedPrograms;
let otherPrograms: PlacedPrograms;
const children = new Set<ChildProcess>();
const relays: DatabaseRelay[] = [];
const folders: string[] = [];
/** Hosts whose lease is held for them, until a test ends it. */
const killed: string[] = [];

beforeAll(async () => {
  other = await app.sibling({ ROLES: 'api,host' });
  front = await app.sibling({ ROLES: 'api' });
  const { dataDir } = app.env;
  programs = await new PlacedPrograms({ name: 'one', dataDir }).start();
  otherPrograms = await new PlacedPrograms({ name: 'two', dataDir }).start();
  await app.get(HostingRouter).runWith(programs);
  await other.get(HostingRouter).runWith(otherPrograms);
  await seen(app, other);
});
afterEach(async () => {
  if (children.size > 0) {
    for (const child of children) child.kill('SIGKILL');
    children.clear();
    for (const id of killed.splice(0)) await leaseOver({ id });
    await seen(app, other);
  }
  for (const relay of relays.splice(0)) await relay.close();
  for (const each of [programs, otherPrograms]) each.failure = null;
});
afterAll(async () => {
  for (const each of [front, other, app]) await each.close();
  for (const each of [programs, otherPrograms]) await each.stop();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Every process knows these hosts and no others. */
async function seen(...hosts: TestApp[]): Promise<void> {
  const ids = hosts.map((host) => host.get(ProcessRegistry).id).sort();
  for (const process of [app, other, front]) {
    await until(async () => {
      process.get(HostDirectory).forget();
      const live = (await process.get(HostDirectory).live()).map(({ id }) => id).sort();
      return JSON.stringify(live) === JSON.stringify(ids);
    }, 'the hosts are known');
  }
}

const placementOf = async ({ ownerId }: ProgramRef) =>
  (await app.database.query('SELECT host_id, data_id FROM hosting_placements WHERE owner_id = $1', [ownerId]))[0];

/** Starts and ends of a program with state, over all hosts of a data folder. */
function lifeOf({ ownerId }: ProgramRef, dataDir = app.env.dataDir): string[] {
  const lines = readFileSync(join(dataDir, 'programs.log'), 'utf8').split('\n');
  return lines.filter((line) => line.includes(ownerId)).map((line) => line.replace(` ${ownerId}`, ''));
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'slipway-data-'));
  folders.push(folder);
  return folder;
}

/** A host in a process of its own; resolves once all processes know it. */
async function startProcess(name: string, settings: NodeJS.ProcessEnv = {}, runtimeLeaseMs = LEASE_MS) {
  const { env } = app;
  const port = settings.PORT ?? String(await freePort());
  const script = here('../../support/hosting/placed-process.mjs');
  const tuning = JSON.stringify({ runtimeLeaseMs });
  const child = spawn(process.execPath, [script, builtFile(''), name, '--tuning', tuning], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      PORT: port,
      DATABASE_URL: env.databaseUrl ?? '',
      DATABASE_POOL_MAX: '3',
      ENCRYPTION_KEYS: (env.encryptionKeys ?? []).map(({ id, secret }) => `${id}:${secret.toString('base64')}`).join(),
      DATA_DIR: env.dataDir,
      QUEUE_PREFIX: env.queuePrefix,
      ROLES: 'host',
      ...(env.redisUrl === null ? {} : { REDIS_URL: env.redisUrl }),
      ...settings,
    },
  });
  children.add(child);
  let written = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (written += text));
  await until(() => written.includes('ready') || child.exitCode !== null, 'the process is ready', SLOW_MS);
  expect(written).toMatch(/^ready$/m);
  const url = `http://127.0.0.1:${port}`;
  const [{ id, epoch }] = await app.database.query('SELECT id, epoch FROM processes WHERE address = $1', [url]);
  for (const known of [app, other, front]) {
    await until(
      async () => (await known.get(HostDirectory).live()).some((host) => host.id === id),
      'the host is known',
    );
  }
  return { id: id as string, epoch: epoch as string, url, child, output: () => written };
}

/** Ends a process without a word, and leaves its lease to {@link leaseOver}. */
async function kill({ id, child }: { id: string; child: ChildProcess }): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
  killed.push(id);
  await app.database.query(`UPDATE processes SET lease_until = now() + interval '1 hour' WHERE id = $1`, [id]);
}

/** The time of a lease has passed. */
async function leaseOver({ id }: { id: string }): Promise<void> {
  await app.database.query(`UPDATE processes SET lease_until = now() - interval '1 second' WHERE id = $1`, [id]);
}

/** Asks until another host than `before` has the program; one that does not answer is given `patienceMs`. */
function takenOver(ref: ProgramRef, before: string, patienceMs = 30_000): Promise<{ name: string; calls: number }> {
  return until(async () => {
    const asking = begin(front, ref, '/who');
    const timer = setTimeout(() => asking.controller()?.abort(new Error('no answer')), patienceMs);
    const { text } = await asking.answer.finally(() => clearTimeout(timer));
    const found = JSON.parse(text) as { name: string; calls: number };
    return found.name !== before && found;
  }, 'another host takes over');
}

/** A program with state that this host has. */
async function placedOn(hostId: string, dataDir = app.env.dataDir): Promise<ProgramRef> {
  for (;;) {
    const ref = programRef({ isStateful: true });
    await ask(front, ref, '/who');
    if ((await placementOf(ref)).host_id === hostId) {
      expect(lifeOf(ref, dataDir)).toHaveLength(1);
      return ref;
    }
  }
}

describe('programs without state', () => {
  verifies('hosting:hosts:share', 'are shared by hash, and a call in any process reaches them', async () => {
    const names = await Promise.all(
      Array.from({ length: 40 }, async () => {
        const ref = programRef();
        const found = await Promise.all([app, other, front].map((process) => whoRuns(process, ref)));
        expect(new Set(found.map(({ name }) => name)).size).toBe(1);
        return found[0]?.name;
      }),
    );
    expect(names.filter((name) => name === 'one').length).toBeGreaterThan(5);
    expect(names.filter((name) => name === 'two').length).toBeGreaterThan(5);
  });

  verifies('hosting:hosts:share', 'are used by a process that runs none itself', async () => {
    expect((await whoRuns(front, await programOf(other))).name).toBe('two');
    const hosts = await front.get(HostDirectory).live();
    expect(hosts.map(({ id }) => id)).not.toContain(front.get(ProcessRegistry).id);
    const refused = await fetch(`${front.url}/internal/hosting/${randomUUID()}/1`, { method: 'POST' });
    expect(refused.status).toBe(404);
  });
});

describe('between processes', () => {
  verifies('runtime:request:streams', 'first bytes arrive before the end', async () => {
    const ref = await programOf(other);
    const asking = begin(app, ref, '/stream', { method: 'GET', isStream: true });
    await until(() => asking.heard() === 'first', 'the first bytes are there');
    otherPrograms.open.get(ref.ownerId)?.end(' last');
    expect(await asking.answer).toMatchObject({ status: 200, text: 'first last' });
  });

  verifies('runtime:request:streams', 'bodies, headers and lengths are unchanged', async () => {
    const ref = await programOf(other);
    const large = 'é'.repeat(4 * 1024 * 1024);
    for (const body of ['', '{"a":1}', Buffer.from([0, 255, 10]), large]) {
      const { status, headers, text } = await ask(app, ref, '/echo', { body });
      expect(status).toBe(201);
      expect(headers['set-cookie']).toEqual(['a=1', 'b=2']);
      expect(headers['x-got-length']).toBe(String(Buffer.byteLength(body)));
      expect(text === Buffer.from(body).toString()).toBe(true);
    }
    const streamed = await ask(app, ref, '/echo', { body: Readable.from([Buffer.from('in '), Buffer.from('pieces')]) });
    expect(streamed.text).toBe('in pieces');
    const { headers } = JSON.parse(
      (await ask(app, ref, '/who', { headers: { host: 'mine', 'x-a': ['1', '2'] } })).text,
    );
    expect(headers).toMatchObject({ host: 'mine', 'x-a': '1, 2' });
    expect(Object.keys(headers)).not.toContain(INTERNAL_HEADER);
  });

  verifies('runtime:request:streams', 'an unread response is not produced', async () => {
    const ref = await programOf(other);
    otherPrograms.written = 0;
    let isPaused = false;
    const asking = begin(app, ref, '/big', {
      onData: (controller) => {
        if (isPaused) return;
        isPaused = true;
        controller.pause();
      },
    });
    let last = -1;
    await until(() => {
      const isStill = last === otherPrograms.written && isPaused;
      last = otherPrograms.written;
      return isStill;
    }, 'the program waits');
    expect(otherPrograms.written).toBeLessThan(24 * 1024 * 1024);
    asking.controller()?.resume();
    expect((await asking.answer).text).toHaveLength(32 * 1024 * 1024);
  });

  verifies('runtime:request:streams', 'a caller that disconnects cancels the request at the host', async () => {
    const [hanging, streaming] = [await programOf(other), await programOf(other)];
    const asking = begin(app, hanging, '/hang');
    const stream = begin(app, streaming, '/stream', { isStream: true });
    await until(() => otherPrograms.hanging.includes(hanging.ownerId) && stream.heard() === 'first', 'both run');
    const reason = new Error('the client left');
    asking.controller()?.abort(reason);
    stream.controller()?.abort(reason);
    await expect(asking.answer).rejects.toBe(reason);
    await expect(stream.answer).rejects.toBe(reason);
    for (const { ownerId } of [hanging, streaming]) {
      await until(() => otherPrograms.left.includes(ownerId), 'the program hears of it');
    }
  });

  verifies('hosting:hosts:failures', 'failures arrive as they were', async () => {
    const ref = await programOf(other);
    otherPrograms.failure = new LimitExceededError('exceededCpu', 'The program took more than 5 s of CPU time.');
    const limited: unknown = await ask(app, ref, '/who').catch((error: unknown) => error);
    expect(limited).toBeInstanceOf(LimitExceededError);
    expect(limited).toMatchObject({ outcome: 'exceededCpu', message: otherPrograms.failure.message, mayHaveRun: true });
    otherPrograms.failure = new ProgramStartError('SyntaxError: Unexpected token');
    await expect(ask(app, ref, '/who')).rejects.toMatchObject({ name: 'ProgramStartError', mayHaveRun: false });
    otherPrograms.failure = null;
    const asking = begin(app, ref, '/break');
    await expect(asking.answer).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' });
    expect(asking.heard()).toBe('half');
  });

  verifies(
    'hosting:hosts:elsewhere',
    'a host without capacity is skipped, and the error has the reason if all are',
    async () => {
      const ref = await programOf(other);
      otherPrograms.failure = new HostingUnavailableError('There is no room.');
      expect((await whoRuns(app, ref)).name).toBe('one');
      expect((await whoRuns(front, ref)).name).toBe('one');
      // Its body is on the way already: nobody else can have it.
      const body = Readable.from(['a', 'b']);
      await expect(ask(app, ref, '/echo', { body })).rejects.toMatchObject({ message: 'There is no room.' });
      programs.failure = otherPrograms.failure;
      await expect(ask(app, ref, '/who')).rejects.toMatchObject({ message: 'There is no room.' });
    },
  );
});

describe('programs with state', () => {
  longVerifies('hosting:hosts:once', 'run in one host, even with 50 concurrent first calls per process', async () => {
    const refs = Array.from({ length: 4 }, () => programRef({ isStateful: true }));
    for (const ref of refs) {
      const found = await Promise.all(
        [app, other, front].flatMap((process) => Array.from({ length: 50 }, () => whoRuns(process, ref))),
      );
      expect(new Set(found.map(({ name }) => name)).size).toBe(1);
      expect(found.map(({ calls }) => calls).sort((a, b) => a - b)).toEqual(found.map((_, i) => i + 1));
      expect(lifeOf(ref)).toEqual([`start ${found[0]?.name}`]);
    }
  });

  verifies('hosting:hosts:once', 'are placed at one host, also with simultaneous claims', async () => {
    const clear = () => Promise.resolve();
    for (let i = 0; i < 20; i += 1) {
      const { ownerId } = programRef();
      const claims = [app, other].map((process) => process.get(Placements).claim(ownerId, clear));
      expect((await Promise.all(claims)).filter(Boolean)).toHaveLength(1);
      expect([app, other].filter((process) => process.get(Placements).isMine(ownerId))).toHaveLength(1);
    }
  });

  verifies('hosting:hosts:once', 'stay where they are when another host would be the first choice', async () => {
    const ref = await programOf(app, { isStateful: true });
    await app.database.query(
      `INSERT INTO hosting_placements (owner_id, host_id, epoch, data_id)
       SELECT $1, id, epoch, (details ->> 'dataId')::uuid FROM processes WHERE id = $2`,
      [ref.ownerId, other.get(ProcessRegistry).id],
    );
    for (const process of [app, other, front]) expect((await whoRuns(process, ref)).name).toBe('two');
  });

  verifies(
    'hosting:hosts:fenced',
    'are not placed at a host whose lease expired, before or during the claim',
    async () => {
      const [registry, folder] = [app.get(ProcessRegistry), app.get(DataFolder)];
      const rows = app.get(PlacementsRepository);
      const lease = { id: randomUUID(), roles: [], address: null, details: {}, leaseMs: SLOW_MS, isAddressOwn: false };
      const epoch = await app.database.transaction((tx) => app.get(ProcessesRepository).register(lease, tx));
      const claimant = { hostId: lease.id, epoch, dataId: await folder.id() };
      expect(await rows.claim(randomUUID(), claimant)).toBeNull();
      await app.database.query(`UPDATE processes SET lease_until = now() - interval '1 second' WHERE id = $1`, [
        lease.id,
      ]);
      expect(await rows.claim(randomUUID(), claimant)).toBeUndefined();

      const live = { id: registry.id, epoch: registry.epoch } as ProcessRegistry;
      const placements = new Placements(rows, live, folder, app.get(PubSub));
      const { ownerId } = programRef();
      const loseLease = () => Promise.resolve(void Object.assign(live, { epoch: null }));
      expect(await placements.claim(ownerId, loseLease)).toBe(false);
      await rows.remove(ownerId);
    },
  );

  verifies(
    'hosting:hosts:fenced',
    'are not renewed under a lease that expired by the clock of the database',
    async () => {
      const rows = app.get(ProcessesRepository);
      const lease = { id: randomUUID(), roles: [], address: null, details: {}, leaseMs: SLOW_MS, isAddressOwn: false };
      const epoch = await app.database.transaction((tx) => rows.register(lease, tx));
      expect(await rows.renew(lease, epoch)).toBe(true);
      expect(await rows.renew(lease, '0')).toBe(false);
      await app.database.query(`UPDATE processes SET lease_until = now() - interval '1 second' WHERE id = $1`, [
        lease.id,
      ]);
      expect(await rows.renew(lease, epoch)).toBe(false);
    },
  );

  verifies(
    'hosting:hosts:messages',
    'follow new versions, and lose their state when their owner is deleted',
    async () => {
      const ref = await programOf(other, { isStateful: true });
      await whoRuns(front, ref);
      await front.get(Hosting).current({ ...ref, id: 'next' });
      await until(
        () => [programs, otherPrograms].every(({ currents }) => currents.includes('next')),
        'both hear of it',
      );
      await front.get(Hosting).renew(ref.ownerId);
      await until(
        () => [programs, otherPrograms].every(({ renewed }) => renewed.includes(ref.ownerId)),
        'both hear of new values',
      );
      await front.get(Hosting).forget(ref.ownerId);
      expect(await placementOf(ref)).toBeUndefined();
      await until(() => !existsSync(otherPrograms.stateDir(ref.ownerId)), 'its state is gone');
      const missed = await programOf(other, { isStateful: true });
      await whoRuns(front, missed);
      await app.database.query('DELETE FROM hosting_placements WHERE owner_id = $1', [missed.ownerId]);
      await until(() => !existsSync(otherPrograms.stateDir(missed.ownerId)), 'its state is gone without a message');
      expect(existsSync(otherPrograms.stateDir(''))).toBe(true);
    },
  );
});

describe('a host that is killed', () => {
  verifies(
    ['hosting:hosts:killed', 'hosting:hosts:elsewhere'],
    'is replaced: immediately for programs without state, after its lease for those with it',
    async () => {
      const doomed = await startProcess('killed');
      const kept = await placedOn(doomed.id);
      expect((await whoRuns(app, kept)).calls).toBe(2);
      const busy = await placedOn(doomed.id);
      const asking = begin(app, busy, '/hang');
      const stream = begin(app, busy, '/stream', { isStream: true });
      await until(() => stream.heard() === 'first', 'it streams');
      await kill(doomed);
      for (const { answer } of [asking, stream]) {
        await expect(answer).rejects.toMatchObject({ name: 'ProgramCrashedError', mayHaveRun: true });
      }
      // Before its lease is over, however long this takes, and with bodies that were not read yet.
      const texts = await Promise.all(
        Array.from({ length: 20 }, async () => {
          const body = Readable.from(['a', 'b']);
          return (await ask(front, programRef(), '/echo', { body })).text;
        }),
      );
      expect(new Set(texts)).toEqual(new Set(['ab']));
      await expect(ask(app, kept, '/who')).rejects.toMatchObject({ name: 'HostAwayError', retryAfterSeconds: 9 });
      await leaseOver(doomed);
      const found = await takenOver(kept, 'killed');
      expect(found.calls).toBe(3);
      expect((await whoRuns(app, kept)).name).toBe(found.name);
      expect(lifeOf(kept)).toEqual(['start killed', `start ${found.name}`]);
    },
    SLOW_MS,
  );
});

describe('a host that restarts', () => {
  longVerifies(
    'hosting:hosts:killed',
    'takes over the row of its former process immediately, and its programs with it',
    async () => {
      const settings = { PORT: String(await freePort()) };
      const before = await startProcess('before', settings, 600_000);
      const ref = await placedOn(before.id);
      before.child.kill('SIGKILL');
      await once(before.child, 'exit');
      const after = await startProcess('after', settings, 600_000);
      expect(after.id).not.toBe(before.id);
      const rows = await app.database.query('SELECT id FROM processes WHERE address = $1', [after.url]);
      expect(rows).toEqual([{ id: after.id }]);
      // Its lease of 10 minutes is not waited for.
      const found = await takenOver(ref, 'before');
      expect(found.calls).toBe(2);
      killed.push(after.id);
    },
    SLOW_MS,
  );
});

describe('a host that loses the database', () => {
  longVerifies(
    'hosting:hosts:fenced',
    'stops its programs with state before another host starts them, and registers as a new host',
    async () => {
      const relay = await startDatabaseRelay(app.env.databaseUrl ?? '');
      relays.push(relay);
      const cut = await startProcess('cut', { DATABASE_URL: relay.url });
      const refs = [await placedOn(cut.id), await placedOn(cut.id)];
      await relay.shut();
      for (const ref of refs) {
        const { name } = await takenOver(ref, 'cut');
        expect(lifeOf(ref)).toEqual(['start cut', 'end cut', `start ${name}`]);
      }
      await relay.open();
      const back = async () => (await app.database.query('SELECT epoch FROM processes WHERE id = $1', [cut.id]))[0];
      await until(async () => ((await back())?.epoch ?? cut.epoch) !== cut.epoch, 'it is back');
      for (const ref of refs) expect(lifeOf(ref)).toHaveLength(3);
    },
    SLOW_MS,
  );

  longVerifies(
    'hosting:hosts:fenced',
    'rejects requests that were sent while it was frozen',
    async () => {
      const frozen = await startProcess('frozen');
      const ref = await placedOn(frozen.id);
      const late = request(app, frozen.url, frozen, ref, '/who');
      frozen.child.kill('SIGSTOP');
      const sent = late.send();
      const { name } = await takenOver(ref, 'frozen', 500);
      frozen.child.kill('SIGCONT');
      const { text } = await sent;
      expect(text).toContain('HostAwayError');
      expect(lifeOf(ref).slice(0, 2)).toEqual(['start frozen', `start ${name}`]);
      expect((await whoRuns(front, ref)).name).toBe(name);
    },
    SLOW_MS,
  );
});

describe('a host that stops in order', () => {
  verifies(
    'hosting:hosts:killed',
    'releases its programs with state for another one, which continues with that state',
    async () => {
      const leaving = await app.sibling({ ROLES: 'api,host' }, { runtimeLeaseMs: 600_000, uplinkLeaseMs: 600_000 });
      const own = await new PlacedPrograms({ name: 'leaving', dataDir: app.env.dataDir }).start();
      await leaving.get(HostingRouter).runWith(own);
      const { id } = leaving.get(ProcessRegistry);
      await seen(app, other, leaving);
      const ref = await placedOn(id);
      await leaving.close();
      await own.stop();
      const found = await whoRuns(app, ref);
      expect(found.calls).toBe(2);
      expect(lifeOf(ref)).toEqual(['start leaving', 'end leaving', `start ${found.name}`]);
      await seen(app, other);
    },
  );
});

describe('the data folder', () => {
  longVerifies(
    'hosting:hosts:state',
    'determines the host that continues with the state; on another one a program starts empty, and old state is removed',
    async () => {
      const dataDir = newFolder();
      const state = (ref: ProgramRef, folder = dataDir) => existsSync(join(folder, 'hosting', 'state', ref.ownerId));
      const first = await startProcess('first', { DATA_DIR: dataDir });
      const refs = [await placedOn(first.id, dataDir), await placedOn(first.id, dataDir)];
      const second = await startProcess('second', { DATA_DIR: dataDir });
      await kill(first);
      await leaseOver(first);
      for (const ref of refs) expect(await takenOver(ref, 'first')).toMatchObject({ name: 'second', calls: 2 });
      await kill(second);
      await leaseOver(second);
      const [ref] = refs;
      expect((await takenOver(ref, 'second')).calls).toBe(1);
      expect([state(ref), state(ref, app.env.dataDir)]).toEqual([true, true]);
      await startProcess('again', { DATA_DIR: dataDir });
      await until(() => !state(ref), 'the old state is gone');
      expect(state(ref, app.env.dataDir)).toBe(true);
      expect((await whoRuns(app, ref)).calls).toBe(2);
    },
    SLOW_MS,
  );
});

describe('real programs', () => {
  longVerifies(
    ['hosting:hosts:killed', 'hosting:hosts:share'],
    'run in one of two processes, and what one with state has in memory ends there before it starts elsewhere',
    async () => {
      const dataDir = newFolder();
      const file = join(dataDir, 'program.mjs');
      writeFileSync(file, 'let calls = 0; export default { fetch: () => new Response(String((calls += 1))) };');
      const owner: ProgramOwner = {
        withProgram: (ref, use) => use({ ref, file, secrets: {}, configSchema: null, egressAllow: null }),
        valuesOf: () => Promise.resolve({ secrets: {}, egressAllow: null }),
        quotaOf: () => Promise.resolve({ accountId: 'an-account', max: 100 }),
        namesOf: () => Promise.resolve({}),
        recordTrace: () => undefined,
      };
      const first = await startApp({ DATA_DIR: dataDir });
      const second = await first.sibling({ ROLES: 'api,host' });
      for (const each of [first, second]) jest.spyOn(each.get(ProgramOwners), 'ownerOf').mockReturnValue(owner);
      const live = (each: TestApp) => each.get(Runtime).stats().live;
      const there = (process: TestApp, ref: ProgramRef) => ask(process, ref, '/').then(({ text }) => text);
      await until(async () => {
        for (const each of [first, second]) each.get(HostDirectory).forget();
        return (await first.get(HostDirectory).live()).length === 2;
      }, 'both are hosts');
      const [free, kept] = [await programOf(second), await programOf(second, { isStateful: true })];
      for (const [i, process] of [first, second, first].entries()) {
        expect(await there(process, free)).toBe(String(i + 1));
        expect(await there(process, kept)).toBe(String(i + 1));
      }
      for (const each of [first, second]) await each.get(ProcessRegistry).beatNow();
      first.get(HostDirectory).forget();
      const counts = (await first.get(HostDirectory).live()).map(({ livePrograms }) => livePrograms['an-account'] ?? 0);
      expect(counts.reduce((sum, count) => sum + count)).toBe(2);
      expect([live(first), live(second)]).toEqual([0, 2]);
      const runtime = second.get(Runtime);
      await second.close();
      expect(runtime.stats().live).toBe(0);
      expect(await there(first, kept)).toBe('1');
      expect(await there(first, free)).toBe('1');
      await first.close();
    },
    SLOW_MS,
  );

  verifies(
    'hosting:hosts:share',
    'are run by a process that serves health and other processes, and nothing else',
    async () => {
      const host = await app.sibling({ ROLES: 'host' });
      await seen(app, other, host);
      expect((await host.as().get('/health')).status).toBe(200);
      for (const path of ['/servers', '/connect/acme', '/skills', '/run/acme']) {
        expect((await host.as(app.operator).get(path)).status).toBe(404);
      }
      const answered = await request(app, host.url, hostOf(host), programRef(), '/').send();
      expect(answered.status).toBe(200);
      await host.close();
      await seen(app, other);
    },
  );
});

type Host = Pick<LiveHost, 'id' | 'epoch'>;

const pathOf = ({ id, epoch }: Host) => `/internal/hosting/${id}/${epoch}`;

function hostOf(process: TestApp): Host {
  const { id, epoch } = process.get(ProcessRegistry);
  return { id, epoch: epoch ?? '' };
}

/** A request to a host as processes send it, with what a test changes. */
function request(from: TestApp, url: string, host: Host, ref: ProgramRef, path: string, body = '{"a":1}') {
  const at = pathOf(host);
  const head: HostRequestHead = { ref, request: { method: 'POST', path, headers: { host: 'x' }, isStream: false } };
  const sha256 = createHash('sha256').update(body).digest('base64url');
  const text = JSON.stringify({ head, body: { sha256 } });
  const signature = from.get(InternalSignatures).sign(url, at, text);
  const send = async (
    changes: { header?: string | null; to?: string; head?: string; body?: string; url?: string } = {},
  ) => {
    const { header = signature } = changes;
    const answer = await fetch(`${changes.url ?? url}${changes.to ?? at}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/octet-stream',
        ...(header === null ? {} : { [INTERNAL_HEADER]: header }),
      },
      body: Buffer.concat([textFrame('head', changes.head ?? text), Buffer.from(changes.body ?? body)]),
    });
    return { status: answer.status, text: await answer.text() };
  };
  return { at, text, signature, send };
}

describe('the route between hosts', () => {
  verifies('hosting:hosts:secret', 'returns 404 without the secret', async () => {
    const ref = await programOf(other);
    const host = hostOf(other);
    const good = request(app, other.url, host, ref, '/echo');
    expect((await good.send()).text).toContain('{"a":1}');
    const fresh = () => request(app, other.url, host, ref, '/echo');
    const keyed = { header: null };
    for (const refused of [
      await good.send(),
      await fresh().send(keyed),
      await fresh().send({ header: 'x.y.z.w' }),
      await fresh().send({ to: `/internal/hosting/${randomUUID()}/1` }),
      await fresh().send({ head: good.text.replace('/echo', '/who ') }),
      await fresh().send({ url: app.url, to: pathOf(hostOf(app)) }),
      await request(app, app.url, host, ref, '/echo').send({ url: other.url }),
    ]) {
      expect([refused.status, refused.text]).toEqual([404, expect.stringMatching(/^{"error":"Nothing answers POST/)]);
    }
    const earlier = { ...host, epoch: '0' };
    for (const elsewhere of [
      request(app, app.url, host, ref, '/echo'),
      request(app, other.url, earlier, { ...ref, isStateful: true }, '/echo'),
    ]) {
      expect((await elsewhere.send()).text).toContain('HostAwayError');
    }
    expect(JSON.stringify((await app.as().get('/openapi.json')).body)).not.toContain('/internal/');
  });

  verifies('hosting:hosts:secret', 'lets no changed body through to its end', async () => {
    const ref = await programOf(other);
    const changed = request(app, other.url, hostOf(other), ref, '/echo');
    const { text } = await changed.send({ body: '{"a":2}' });
    expect(text).not.toContain('"a"');
    expect(text).toMatch(/BrokenResponseError/);
  });

  verifies('hosting:hosts:secret', 'responds before it reads the body of an unauthenticated client', async () => {
    const { port } = new URL(other.url);
    const asked = http.request({ port, method: 'POST', path: `/internal/hosting/${randomUUID()}/1` });
    asked.on('error', () => undefined);
    asked.write('never ends');
    const [answer] = (await once(asked, 'response')) as [http.IncomingMessage];
    expect(answer.statusCode).toBe(404);
    asked.destroy();
  });
});
