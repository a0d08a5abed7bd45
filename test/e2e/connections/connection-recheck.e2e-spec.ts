// Also run with the queue on Redis by test:long: messages between processes.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterEach, beforeAll, beforeEach, describe, expect } from '@jest/globals';
import { ConnectionCheck } from '../../../src/modules/connections/recheck/connection-check.js';
import { ConnectionRechecker } from '../../../src/modules/connections/recheck/connection-rechecker.js';
import { Schedule } from '../../../src/platform/schedule/schedule.js';
import { startApp, type TestAccount, type TestApp } from '../../support/app.js';
import { times } from '../../support/mcp/calls.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { until } from '../../support/until.js';
import { freePort, listen, shut } from '../../support/upstream/upstream-net.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { longVerifies, verifies } from '../../support/verifies.js';

let app: TestApp;
let sibling: TestApp;
let owner: TestAccount;
let namespace: string;
let upstream: Upstream;
let place: Place;

/** An address at which something answers, or 503 while it is away. */
interface Place {
  url: string;
  /** Requests that open a session, as far as they got. */
  dials: number;
  isAway: boolean;
  /** Requests wait until this is false. */
  holds: boolean;
  held: number;
  server: Server;
}

async function startPlace(behind: string): Promise<Place> {
  const started = { url: '', dials: 0, isAway: true, holds: false, held: 0 };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    if (/"method":"(initialize|server\/discover)"/.test(body.toString())) {
      if (/initialize/.test(body.toString()) || place.isAway) place.dials += 1;
      place.held += 1;
      await until(() => !place.holds, 'the test lets it through', 60_000);
      place.held -= 1;
    }
    if (place.isAway) return void response.writeHead(503).end();
    const { accept = '', 'content-type': type = 'application/json' } = request.headers;
    const answer = await fetch(behind, {
      method: request.method,
      headers: { accept, 'content-type': type },
      body: body.length > 0 ? body : undefined,
    });
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'application/json' });
    response.end(await answer.text());
  };
  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()));
  return Object.assign(started, { url: `http://127.0.0.1:${await listen(server)}/mcp`, server });
}

beforeAll(async () => {
  upstream = await startUpstream();
  app = await startApp({ PORT: String(await freePort()), CONNECTION_RECHECK_HOURS: '2' });
  sibling = await app.sibling({ PORT: String(await freePort()), PUBLIC_URL: app.env.baseUrl });
  // Only the sweeps that a test starts run.
  await Promise.all([app, sibling].map((at) => at.get(Schedule).beforeApplicationShutdown()));
  owner = await app.account();
});

beforeEach(async () => {
  await app.database.query('DELETE FROM connections');
  place = await startPlace(upstream.url);
  namespace = await createNamespace(app, owner);
});

afterEach(async () => {
  place.holds = false;
  await shut(place.server);
});

const connect = (mcpUrl = place.url, body: object = {}) =>
  createConnection(app, owner, { mcpUrl, ...body }, { namespace });

async function stateOf(path: string): Promise<string> {
  const { body } = await app.as(owner).get(path);
  return (body as { status: { state: string } }).status.state;
}

/** Lets the time of the next look be there; a column of milliseconds rounds this very moment up. */
async function makeDue(): Promise<void> {
  await app.database.query(
    `UPDATE connections SET next_check_at = now() - interval '1 second' WHERE next_check_at IS NOT NULL`,
  );
}

interface Row {
  waits: number;
  failures: number;
}

/** In how many seconds each connection to the place is looked at again, and how often in a row that failed. */
async function waiting(): Promise<Row[]> {
  return app.database.query(
    `SELECT extract(epoch FROM next_check_at - now())::float AS waits, check_failures AS failures
       FROM connections WHERE mcp_url LIKE $1 ORDER BY seq`,
    [`${place.url}%`],
  );
}

const recheck = (at = app) => at.get(ConnectionRechecker).run();

describe('a connection whose server is unavailable', () => {
  verifies(
    'connection:recheck:heals',
    'is checked without a call, and connected when its server is available again',
    async () => {
      const { path, body } = await connect();
      expect(body).toMatchObject({ status: { state: 'error', reason: 'server_error' } });
      const sweeping = await app.sibling({ PORT: String(await freePort()), PUBLIC_URL: app.env.baseUrl });
      place.isAway = false;
      await makeDue();
      await until(async () => (await stateOf(path)) === 'connected', 'it is healed without a call');
      await sweeping.close();
      expect((await app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' })).status).toBe(200);
    },
  );

  verifies(
    'connection:recheck:heals',
    'has the status of the PUT, also after a status with a time in the future',
    async () => {
      const { path } = await connect();
      await app.database.query(`UPDATE connections SET status_seen_at = now() + interval '1 hour' WHERE mcp_url = $1`, [
        place.url,
      ]);
      place.isAway = false;
      const { body } = await app.as(owner).put(path, { callTimeoutMs: 60_000 });
      expect(body).toMatchObject({ status: { state: 'connected' } });
    },
  );

  verifies('connection:recheck:polite', 'is checked at growing intervals, up to an hour', async () => {
    await connect();
    const seen: Row[] = await waiting();
    for (let look = 0; look < 8; look += 1) {
      await makeDue();
      await recheck();
      seen.push(...(await waiting()));
    }
    expect(seen.map(({ failures }) => failures)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for (const [i, { waits }] of seen.entries()) {
      const middle = Math.min(3_600, 60 * 2 ** i);
      expect(waits).toBeGreaterThan(middle * 0.85 - 10);
      expect(waits).toBeLessThan(middle * 1.13);
    }
  });

  longVerifies(
    'connection:recheck:polite',
    'shares its check with all others to the same URL without credentials, in all processes',
    async () => {
      const shared = await Promise.all(times(30, () => connect()));
      const own = await connect(place.url, { headers: { 'x-key': 'k' } });
      const other = await app.account();
      const elsewhere = await createConnection(app, other, { mcpUrl: place.url });
      place.isAway = false;
      place.dials = 0;
      await makeDue();
      await until(async () => {
        // Again: who comes second takes nothing, and a batch may be less than all.
        await Promise.all([recheck(), recheck(sibling)]);
        const states = await Promise.all([...shared, own].map(({ path }) => stateOf(path)));
        const { body } = await app.as(other).get(elsewhere.path);
        return [...states, body.status.state].every((state) => state === 'connected');
      }, 'all are healed');
      expect(place.dials).toBe(2);
      const { serverInfo } = (await app.as(owner).get(shared[7].path)).body as { serverInfo?: object };
      expect(serverInfo).toBeDefined();
    },
  );

  verifies(
    'connection:recheck:polite',
    'does not check an authorized one with it, which has its own schedule',
    async () => {
      const open = await connect();
      const own = await connect();
      await app.database.query(
        `INSERT INTO upstream_credentials (id, owner_kind, owner_id, upstream_url, server, resource, state)
       SELECT gen_random_uuid(), 'connection', id, mcp_url, '{}', mcp_url, 'required' FROM connections WHERE connection_id = $1`,
        [own.connectionId],
      );
      const later = `UPDATE connections SET next_check_at = now() + $2::interval WHERE connection_id = $1`;
      await app.database.query(later, [own.connectionId, '50 minutes']);
      await app.database.query(later, [open.connectionId, '-1 second']);
      await recheck();
      expect((await waiting())[0].failures).toBe(2);
      const [, { waits }] = await waiting();
      expect(waits).toBeGreaterThan(49 * 60);
    },
  );

  verifies(
    'connection:recheck:private',
    'is checked without credentials that another one to its URL received since',
    async () => {
      const locked = await startUpstream({ requireHeaders: { 'x-key': 'k' } });
      const [first, second] = [await connect(locked.url), await connect(locked.url)];
      await app.database.query(
        `UPDATE connections SET status_state = 'error', status_reason = 'timeout', next_check_at = now() - interval '1 second' WHERE mcp_url = $1`,
        [locked.url],
      );
      const claimed = await app.database.query<{ id: string; revision: number }[]>(
        'SELECT id, revision FROM connections WHERE mcp_url = $1 ORDER BY seq',
        [locked.url],
      );
      const { body } = await app.as(owner).put(first.path, { headers: { 'x-key': 'k' } });
      expect(body).toMatchObject({ status: { state: 'connected' } });
      await app.get(ConnectionCheck).runPublic(locked.url, claimed);
      expect([await stateOf(first.path), await stateOf(second.path)]).toEqual(['connected', 'auth_required']);
      await locked.close();
    },
  );

  verifies(
    'connection:recheck:crash',
    'is checked by another process after the one that claimed it was killed',
    async () => {
      const { path } = await connect();
      place.holds = true;
      await makeDue();
      const given = recheck(sibling);
      await until(() => place.held > 0, 'it is looked at');
      const [{ waits }] = await waiting();
      expect(waits).toBeGreaterThan(15);
      await recheck();
      expect(place.held).toBe(1);
      // A process that died here leaves only its reservation of the connection.
      place.isAway = false;
      await makeDue();
      const again = recheck();
      await until(() => place.held > 1, 'another one looks');
      place.holds = false;
      await Promise.all([given, again]);
      expect(await stateOf(path)).toBe('connected');
    },
  );

  verifies('connection:recheck:polite', 'is not dialled while only its user can help', async () => {
    const locked = await startUpstream({ requireHeaders: { 'x-key': 'k' } });
    await connect(locked.url);
    const asked = locked.requests.length;
    const [{ next }] = await app.database.query('SELECT next_check_at AS next FROM connections WHERE mcp_url = $1', [
      locked.url,
    ]);
    expect(next).toBeNull();
    await makeDue();
    await recheck();
    expect(locked.requests).toHaveLength(asked);
    await locked.close();
  });
});

describe('a connection that works', () => {});
