import { afterEach, describe, expect } from '@jest/globals';
import { ConnectionRechecker } from '../../../src/modules/connections/recheck/connection-rechecker.js';
import { TUNNELS_EACH_MAX, TunnelLimits } from '../../../src/modules/connections/uplink/tunnel-limits.js';
import { STREAMS_EACH_MAX } from '../../../src/modules/releases/stream/release-streams.js';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { times } from '../../support/mcp/calls.js';
import { seedConnections } from '../../support/database/connection-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { followLog } from '../../support/logs/log-follower.js';
import { followRelease } from '../../support/releases/release-follower.js';
import { insertRelease, releasesPath } from '../../support/releases/releases.js';
import { openTunnel, pair, PairingRefused } from '../../support/mcp/uplink-client.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const busy = testAccount(app);
const other = testAccount(app);
const open: { close(): unknown }[] = [];

afterEach(() => Promise.all(open.splice(0).map((one) => one.close())));

describe('an account that uses its whole limit', () => {
  verifies('limits:account-share', 'leaves room for tunnels of others', async () => {
    const places = app.get(TunnelLimits);
    const taken = times(TUNNELS_EACH_MAX, () => places.acquire(busy.id));
    const { path } = await createConnection(app, busy, { transport: 'uplink' });
    const refused = (await openTunnel(app, busy, path).catch((error: unknown) => error)) as PairingRefused;
    expect([refused.status, refused.reason, refused.body]).toEqual([
      429,
      'Too Many Requests',
      { error: 'rate_limited', message: expect.stringMatching(/^This account holds 5000 tunnels/) },
    ]);
    const theirs = await createConnection(app, other, { transport: 'uplink' });
    open.push(await pair(app, other, theirs.path));
    taken.pop()?.();
    const own = await pair(app, busy, path);
    expect(() => places.acquire(busy.id)).toThrow('This account holds');
    // A tunnel that ends gives its place back, and so does one that is replaced.
    open.push(await pair(app, other, theirs.path, { force: true }));
    await own.close();
    await until(async () => {
      places.acquire(busy.id)();
      return true;
    }, 'its place is free');
    for (const leave of taken) leave();
  });

  verifies('limits:account-share', 'leaves room for its own tunnels after others of it were refused', async () => {
    const { path } = await createConnection(app, busy, { transport: 'uplink' });
    open.push(await pair(app, busy, path));
    const places = app.get(TunnelLimits);
    const taken = times(TUNNELS_EACH_MAX - 2, () => places.acquire(busy.id));
    for (let round = 0; round < 2; round += 1) {
      const refused = (await openTunnel(app, busy, path).catch((error: unknown) => error)) as PairingRefused;
      expect(refused.status).toBe(409);
    }
    places.acquire(busy.id)();
    for (const leave of taken) leave();
  });

  verifies('limits:account-share', 'leaves room for release streams of others', async () => {
    const name = await createServer(app, busy);
    const id = await insertRelease(app, name, { status: 'AUTH_REQUIRED' });
    const followers = await Promise.all(times(STREAMS_EACH_MAX, () => followRelease(app, busy, name, id)));
    open.push(...followers);
    expect(followers.map(({ response }) => response.status)).toEqual(times(STREAMS_EACH_MAX, () => 200));
    const more = await fetch(`${app.url}${releasesPath(name, `/${id}/stream`)}`, {
      headers: { authorization: `Bearer ${busy.key}` },
    });
    expect([more.status, more.headers.get('retry-after'), await more.json()]).toEqual([
      429,
      '5',
      { error: expect.stringContaining('This account follows as many releases as one may') },
    ]);

    const theirs = await createServer(app, other);
    const release = await insertRelease(app, theirs, { status: 'AUTH_REQUIRED' });
    const follower = await followRelease(app, other, theirs, release);
    open.push(follower);
    expect(follower.response.status).toBe(200);

    followers[0]?.close();
    await until(async () => {
      const next = await followRelease(app, busy, name, id);
      open.push(next);
      return next.response.status === 200;
    }, 'a stream that ends gives its place back');
  });

  verifies('limits:account-share', 'leaves room for log streams of others', async () => {
    const name = await createServer(app, busy);
    const followers = await Promise.all(times(10, () => followLog(app, busy, name)));
    open.push(...followers);
    expect(followers.map(({ response }) => response.status)).toEqual(times(10, () => 200));
    const answer = await fetch(`${app.url}/servers/${encodeURIComponent(name)}/logs/stream`, {
      headers: { authorization: `Bearer ${busy.key}` },
    });
    expect([answer.status, await answer.text()]).toEqual([429, expect.stringContaining('Too many logs')]);
    const follower = await followLog(app, other, await createServer(app, other));
    open.push(follower);
    expect(follower.response.status).toBe(200);
  });

  verifies('limits:account-share', 'leaves room for checks of connections of others that are due later', async () => {
    const many = await createNamespace(app, busy);
    const url = () => `http://${uniqueName('host')}.invalid/mcp`;
    await seedConnections(
      app,
      many,
      times(200, () => ({ mcpUrl: url() })),
    );
    const [one] = await seedConnections(app, await createNamespace(app, other), [{ mcpUrl: url() }]);
    const due = async (where: string) => {
      const sql = `SELECT count(*)::int AS n FROM connections WHERE next_check_at <= now() AND ${where}`;
      return (await app.database.query<[{ n: number }]>(sql, [one]))[0].n;
    };
    await app.database.query(
      `UPDATE connections SET status_state = 'error', last_ok_at = NULL,
              next_check_at = now() - CASE connection_id WHEN $1 THEN interval '1 second' ELSE interval '1 hour' END
        WHERE mcp_url LIKE '%.invalid/mcp'`,
      [one],
    );
    expect(await due('connection_id = $1')).toBe(1);
    await until(async () => {
      await app.get(ConnectionRechecker).run();
      return (await due('connection_id = $1')) === 0;
    }, 'it is looked at');
    expect(await due('connection_id <> $1')).toBeGreaterThan(100);
  });
});
