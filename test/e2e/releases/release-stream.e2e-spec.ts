// Also run with the queue on Redis by test:long: jobs, and messages between processes.
import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { testAccount, testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { createServer } from '../../support/factories.js';
import { startGuarded, type GuardedUpstream } from '../../support/special-upstreams/guarded-upstream.js';
import { followRelease, type Follower, type StreamEvent } from '../../support/releases/release-follower.js';
import {
  insertRelease,
  published,
  publishExternal,
  readRelease,
  releaseIn,
  releasesPath,
  type ReleaseBody,
} from '../../support/releases/releases.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
let other: TestApp;
const owner = testAccount(app);
let name: string;
const open: { close(): unknown }[] = [];

beforeAll(async () => {
  // Another process, which works on nothing.
  other = await app.sibling({ ROLES: 'api', PUBLIC_URL: app.url });
  name = await createServer(app, owner);
});
afterEach(() => Promise.all(open.splice(0).map((one) => one.close())));

async function held(): Promise<{ id: string; upstream: GuardedUpstream }> {
  const upstream = await startGuarded({ holds: true });
  open.push(upstream);
  const id = await published(app, owner, name, { type: 'external', upstreamUrl: upstream.url });
  await until(() => upstream.held() > 0, 'the scan waits');
  return { id, upstream };
}

async function follow(from: TestApp, id: string, lastEventId?: string): Promise<Follower> {
  const follower = await followRelease(from, owner, name, id, lastEventId);
  open.push(follower);
  return follower;
}

/** Every log line that a stream told, in order. */
const linesOf = (events: StreamEvent[]): unknown =>
  events.flatMap(({ event, data }) => (event === 'init' ? data.logs : event === 'log' ? [data] : []));

/** Expects the stream to have the lines and the end that the API shows. */
function expectWhole(events: StreamEvent[], release: ReleaseBody): void {
  expect(linesOf(events)).toEqual(release.logs);
  expect(events.at(-1)).toMatchObject({ event: 'complete', data: { status: release.status, mcpUrl: release.mcpUrl } });
}

describe('the stream of a release', () => {
  verifies(
    'events:release-stream',
    'sends every change as it happens, in the process of the worker and in another one',
    async () => {
      const { id, upstream } = await held();
      const followers = await Promise.all([app, other].map((from) => follow(from, id)));
      for (const { response, events } of followers) {
        expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
        expect(response.headers.get('cache-control')).toBe('no-cache');
        expect(response.headers.get('x-accel-buffering')).toBe('no');
        await until(() => events.length > 0, 'it begins');
        expect(events[0]).toMatchObject({ event: 'init', data: { status: 'WORKING' } });
        expect((events[0].data.logs as unknown[]).length).toBeGreaterThan(3);
      }
      upstream.letThrough();
      const release = await releaseIn(app, owner, name, id, 'SUCCESS');
      for (const { events, ended, text } of followers) {
        await ended;
        expectWhole(events, release);
        expect(events.map(({ event }) => event).filter((event) => event !== 'log')).toEqual([
          'init',
          'status',
          'complete',
        ]);
        expect(events.filter(({ event }) => event === 'log').length).toBeGreaterThan(5);
        const ids = events.map((event) => BigInt(event.id));
        expect(ids).toEqual([...ids].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
        // Each event is one id, one name and one line of data, and nothing else is sent.
        for (const block of text()
          .split('\n\n')
          .filter((one) => one !== '')) {
          expect(block).toMatch(/^(id: \d+\nevent: \w+\ndata: \{[^\n]*\}|: [^\n]*)$/);
        }
      }
    },
  );

  verifies('events:release-stream', 'sends init and complete for a finished release, and closes', async () => {
    const upstream = await startGuarded();
    open.push(upstream);
    const release = await publishExternal(app, owner, name, { upstreamUrl: upstream.url });
    for (const target of [release.id, 'latest']) {
      const { events, ended } = await follow(other, target);
      await ended;
      expect(events.map(({ event }) => event)).toEqual(['init', 'complete']);
      expect(events[0].data).toEqual({ status: 'SUCCESS', logs: release.logs });
      expectWhole(events, release);
    }
  });

  verifies(
    'events:release-stream',
    'sends a client that reconnects the missed events, without repetition',
    async () => {
      const { id, upstream } = await held();
      const first = await follow(app, id);
      await until(() => first.events.length > 0, 'it begins');
      first.close();
      await first.ended;
      upstream.letThrough();
      const release = await releaseIn(app, owner, name, id, 'SUCCESS');
      const second = await follow(other, id, first.events.at(-1)?.id);
      await second.ended;
      expectWhole([...first.events, ...second.events], release);
      // From every event on, it is the rest.
      const whole = await follow(app, id);
      await whole.ended;
      for (const lastEventId of ['0', first.events[0].id, whole.events.at(-1)?.id as string]) {
        const rest = await follow(app, id, lastEventId);
        await rest.ended;
        const [{ count }] = await app.database.query<{ count: number }[]>(
          'SELECT count(*)::int AS count FROM release_logs WHERE release_id = $1 AND seq > $2',
          [id, lastEventId],
        );
        expect(linesOf(rest.events)).toEqual(count === 0 ? [] : release.logs.slice(-count));
      }
      for (const nonsense of ['x', '-1', '1.5', '9'.repeat(30)]) {
        const all = await follow(app, id, nonsense);
        await all.ended;
        expectWhole(all.events, release);
      }
    },
  );

  it('stays open while an authorization is pending, and continues afterwards', async () => {
    const upstream = await startGuarded({ wants: 'oauth' });
    open.push(upstream);
    const own = await createServer(app, owner);
    const id = await published(app, owner, own, { type: 'external', upstreamUrl: upstream.url });
    const follower = await followRelease(other, owner, own, id);
    open.push(follower);
    const { events, ended } = follower;
    await releaseIn(app, owner, own, id, 'AUTH_REQUIRED');
    const statusOf = ({ data }: StreamEvent) => data.status;
    await until(() => events.map(statusOf).includes('AUTH_REQUIRED'), 'it is told');
    expect(events.some(({ event }) => event === 'complete')).toBe(false);
    upstream.unlock();
    await app.as(owner).post(releasesPath(own, `/${id}/resume`));
    await ended;
    expect(events.at(-1)).toMatchObject({ event: 'complete', data: { status: 'SUCCESS' } });
    expect(linesOf(events)).toEqual((await readRelease(app, owner, own, id)).logs);
  });

  it('completes as CANCELLED when the server is deleted', async () => {
    const own = await createServer(app, owner);
    const id = await insertRelease(app, own, { status: 'AUTH_REQUIRED' });
    const follower = await followRelease(other, owner, own, id);
    open.push(follower);
    await until(() => follower.events.length > 0, 'it begins');
    await app.as(owner).delete(`/servers/${encodeURIComponent(own)}`);
    await follower.ended;
    expect(follower.events.at(-1)).toMatchObject({ event: 'complete', data: { status: 'CANCELLED' } });
  });

  it('closes with its process, immediately', async () => {
    const id = await insertRelease(app, name, { status: 'AUTH_REQUIRED' });
    const third = await app.sibling({ ROLES: 'api' });
    const follower = await followRelease(third, owner, name, id);
    await until(() => follower.events.length > 0, 'it begins');
    // As browsers open them ahead of the next request.
    const spare = connect(third.env.port, '127.0.0.1').on('error', () => undefined);
    await once(spare, 'connect');
    const startedAt = Date.now();
    await third.close();
    await follower.ended;
    expect(Date.now() - startedAt).toBeLessThan(20_000);
    expect(follower.events.some(({ event }) => event === 'complete')).toBe(false);
  });

  it('is for the owner alone, and of a release that is there', async () => {
    const id = await insertRelease(app, name);
    const get = (account: TestAccount | undefined, path: string) => app.as(account).get(path);
    expect((await get(undefined, releasesPath(name, `/${id}/stream`))).status).toBe(401);
    const answers = [
      await get(await app.account(), releasesPath(name, `/${id}/stream`)),
      await get(owner, releasesPath(`${name}-x`, `/${id}/stream`)),
      await get(owner, releasesPath(uniqueName(), `/${id}/stream`)),
    ];
    for (const { status, body } of answers)
      expect([status, body]).toEqual([404, expect.objectContaining({ error: 'Server not found' })]);
    for (const wrong of [randomUUID(), 'x']) {
      const { status, body } = await get(owner, releasesPath(name, `/${wrong}/stream`));
      expect([status, body]).toEqual([404, { error: 'Release not found' }]);
    }
  });
});
