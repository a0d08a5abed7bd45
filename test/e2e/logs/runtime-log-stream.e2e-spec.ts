// Also run with the queue on Redis by test:long: jobs, and messages between processes.
import { afterEach, beforeAll, describe, expect } from '@jest/globals';
import { connect } from 'node:net';
import { LogStreams } from '../../../src/modules/logs/stream/log-streams.js';
import { testAccount, testApp, uniqueName, type TestApp } from '../../support/app.js';
import { createServer } from '../../support/factories.js';
import { append, logWith, record } from '../../support/logs/invocations.js';
import { followLog, type LogFollower } from '../../support/logs/log-follower.js';
import { pathOf, serverIdOf } from '../../support/database/server-rows.js';
import { until } from '../../support/until.js';
import { aloneVerifies, longVerifies, verifies } from '../../support/verifies.js';

const app = testApp();
let other: TestApp;
const owner = testAccount(app);
const open: { close(): unknown }[] = [];

beforeAll(async () => {
  // Another process, which writes nothing.
  other = await app.sibling({ ROLES: 'api', PUBLIC_URL: app.url });
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()));
  await until(() => streamsOf(app) + streamsOf(other) === 0, 'every stream is closed');
});

const streamsOf = (from: TestApp): number => from.get(LogStreams).size;

async function server(): Promise<{ name: string; id: string }> {
  const name = await createServer(app, owner);
  return { name, id: await serverIdOf(app, name) };
}

/** Follows, and waits until it begins. */
async function follow(from: TestApp, name: string, query = '', lastEventId?: string): Promise<LogFollower> {
  const follower = await followLog(from, owner, name, query, lastEventId);
  open.push(follower);
  expect(follower.response.status).toBe(200);
  await until(() => follower.events.length > 0, 'it begins');
  return follower;
}

describe('the stream of a log', () => {
  aloneVerifies(
    'runtime-log:stream',
    'sends existing and then new invocations, in the process that writes them and in another one',
    async () => {
      const { name, id } = await server();
      for (const message of ['first', 'second', 'third']) record(app, id, { messages: [message], at: Date.now() });
      const before = await logWith(app, owner, name, 3);
      const followers = await Promise.all([app, other].map((from) => follow(from, name, '?limit=2')));
      const [foreign] = [await server()];
      record(app, foreign.id, { messages: ['of another server'] });
      const ids = ['fourth', 'fifth'].map((message, after) =>
        record(app, id, { messages: [message], at: Date.now() + after }),
      );
      for (const { response, events, told } of followers) {
        expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
        expect(response.headers.get('cache-control')).toBe('no-cache');
        expect(response.headers.get('x-accel-buffering')).toBe('no');
        expect(events[0]).toEqual({
          id: before.invocations[0].id,
          event: 'init',
          data: { invocations: before.invocations.slice(0, 2) },
        });
        await until(() => told().length >= 2, 'both are told');
        expect(told()).toEqual(['fourth', 'fifth']);
        expect(events.slice(1).map((event) => event.id)).toEqual(ids);
      }
      const shown = await logWith(app, owner, name, 5);
      expect(followers[1].events.slice(1).map(({ data }) => data)).toEqual(shown.invocations.slice(0, 2).reverse());
      const [, { told }] = followers;
      const isTold = async () => {
        const [before, from] = [told().length, performance.now()];
        record(app, id, { messages: ['at once'] });
        await until(() => told().length > before, 'it is told');
        return performance.now() - from < 4_000;
      };
      // Before it would look by itself, which it has just done; again where the machine took that long.
      await until(isTold, 'it is told at once');
    },
  );

  verifies('runtime-log:stream', 'sends an invocation again when parts are added', async () => {
    const { name, id: serverId } = await server();
    const { events, told } = await follow(other, name);
    const id = record(app, serverId, { messages: ['at once'] });
    await until(() => told().length === 1, 'it is told');
    append(app, { id, serverId, lines: [{ at: Date.now() + 1, level: 'warn', message: 'later' }] });
    await until(() => told().length === 2, 'it is told again');
    expect(events.slice(1).map((event) => event.id)).toEqual([id, id]);
    expect(events.slice(1).map(({ data }) => data.logs?.map(({ message }) => message))).toEqual([
      ['at once'],
      ['at once', 'later'],
    ]);
  });

  verifies('runtime-log:stream', 'sends only matching invocations, also those that match later', async () => {
    const { name, id: serverId } = await server();
    const { told } = await follow(app, name, '?search=RAIN&tool=forecast');
    record(app, serverId, { messages: ['sun'] });
    record(app, serverId, { messages: ['rain elsewhere'], toolName: 'other' });
    const late = record(app, serverId, { messages: ['clouds'] });
    await logWith(app, owner, name, 3);
    append(app, { id: late, serverId, lines: [{ at: Date.now() + 5, level: 'info', message: 'then rain' }] });
    await until(() => told().length > 0, 'it is told');
    expect(told()).toEqual(['clouds']);
    for (const query of ['?outcome=fine', '?limit=0', `?search=${'x'.repeat(1_001)}`]) {
      expect([query, (await app.as(owner).get(`${pathOf(name, '/logs/stream')}${query}`)).status]).toEqual([
        query,
        400,
      ]);
    }
  });

  verifies(
    'runtime-log:stream',
    'sends a client that reconnects the invocations since its last event, without repetition',
    async () => {
      const { name, id } = await server();
      const base = Date.now() - 10_000;
      const at = (after: number) => base + after;
      record(app, id, { messages: ['first'], at: at(1) });
      const first = await until(async () => {
        const follower = await follow(app, name);
        if (follower.events[0].data.invocations?.length === 1) return follower;
        follower.close();
        return null;
      }, 'the first is there');
      first.close();
      await first.ended;
      for (const [after, message] of ['second', 'third'].entries())
        record(app, id, { messages: [message], at: at(after + 2) });
      await logWith(app, owner, name, 3);
      const again = await follow(other, name, '', first.events[0].id);
      await until(() => again.told().length === 2, 'what was missed is told');
      expect(again.events[0]).toMatchObject({ event: 'init', data: { invocations: [] } });
      expect(again.told()).toEqual(['second', 'third']);
      // An id nobody gave begins anew.
      const anew = await follow(app, name, '', 'nonsense');
      expect(anew.events[0].data.invocations).toHaveLength(3);
    },
  );

  longVerifies('runtime-log:stream', 'waits for a slow reader, who receives everything', async () => {
    const { name, id } = await server();
    const socket = connect(Number(new URL(app.url).port), '127.0.0.1');
    open.push({ close: () => socket.destroy() });
    let taken = '';
    socket.setEncoding('latin1').on('data', (text: string) => (taken += text));
    socket.write(
      `GET ${pathOf(name, '/logs/stream')} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${owner.key}\r\n\r\n`,
    );
    await until(() => taken.includes('event: init'), 'it begins');
    socket.pause();
    // More than the buffers of a connection take.
    const messages = Array.from({ length: 100 }, () => 'x'.repeat(8_000));
    for (let sent = 0; sent < 18; sent += 1) record(app, id, { messages, at: Date.now() + sent });
    const [stream] = app.get(LogStreams) as unknown as Iterable<{ isWaiting: boolean }>;
    await until(() => stream.isWaiting, 'it waits for its reader');
    socket.resume();
    const told = () => new Set(taken.match(/(?<=\nevent: invocation\ndata: \{"id":")[^"]+/g)).size;
    await until(() => told() === 18, 'all of them are told');
  });
});

describe('the end of a stream', () => {
  verifies('runtime-log:stream:end', 'comes with the deletion of its server, in every process', async () => {
    const { name } = await server();
    const followers = await Promise.all([app, other].map((from) => follow(from, name)));
    await app.as(owner).delete(pathOf(name));
    await Promise.all(followers.map(({ ended }) => ended));
  });

  verifies('runtime-log:stream:end', 'comes with the key it was opened with', async () => {
    const { name } = await server();
    const made = await app.as(owner).post('/accounts/me/api-keys', { name: 'for a while' });
    const follower = await followLog(other, { ...owner, key: made.body.key as string }, name);
    open.push(follower);
    await until(() => follower.events.length > 0, 'it begins');
    const stays = await follow(other, name);
    await app.as(owner).delete(`/accounts/me/api-keys/${made.body.id}`);
    await follower.ended;
    record(app, await serverIdOf(app, name), { messages: ['still told'] });
    await until(() => stays.told().length === 1, 'other streams go on');
    expect(follower.told()).toEqual([]);
  });

  verifies('runtime-log:stream:end', 'comes with its process, which does not wait for its listeners', async () => {
    const { name } = await server();
    const third = await app.sibling({ ROLES: 'api', PUBLIC_URL: app.url });
    const { ended } = await follow(third, name);
    await third.close();
    await ended;
  });

  verifies('runtime-log:stream:end', 'an account at its limit of streams gets 429', async () => {
    const { name } = await server();
    const busy = await app.account();
    const theirs = await createServer(app, busy);
    const followers = await Promise.all(Array.from({ length: 10 }, () => followLog(app, busy, theirs)));
    open.push(...followers);
    const refused = await app.as(busy).get(pathOf(theirs, '/logs/stream'));
    expect([refused.status, refused.headers['retry-after'], Object.keys(refused.body as object)]).toEqual([
      429,
      '5',
      ['error'],
    ]);
    await follow(app, name);
    followers[0].close();
    await until(() => streamsOf(app) === 10, 'one has left');
    const again = await followLog(app, busy, theirs);
    open.push(again);
    expect(again.response.status).toBe(200);
  });

  verifies('runtime-log:own', 'a stream is opened by the owner only, and HEAD opens none', async () => {
    const { name } = await server();
    const stranger = await app.account();
    for (const path of [pathOf(name, '/logs/stream'), pathOf(`${uniqueName('none')}/x-1`, '/logs/stream')]) {
      const { status, body } = await app.as(stranger).get(path);
      expect([status, body]).toEqual([404, expect.objectContaining({ error: 'Server not found' })]);
    }
    expect((await app.as().get(pathOf(name, '/logs/stream'))).status).toBe(401);
    const head = await fetch(`${app.url}${pathOf(name, '/logs/stream')}`, {
      method: 'HEAD',
      headers: { authorization: `Bearer ${owner.key}` },
    });
    expect(head.status).toBe(200);
  });
});
