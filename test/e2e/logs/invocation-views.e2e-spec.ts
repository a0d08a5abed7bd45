import { beforeAll, describe, expect } from '@jest/globals';
import { DeletedOwnerCleaner } from '../../../src/modules/logs/store/deleted-owner-cleaner.js';
import { testAccount, testApp } from '../../support/app.js';
import { mcp, request } from '../../support/mcp/calls.js';
import { externalServer, type SeededServer } from '../../support/releases/current-releases.js';
import { createConnection } from '../../support/factories.js';
import { append, logWith, readLog, type ShownInvocation } from '../../support/logs/invocations.js';
import { pathOf } from '../../support/database/server-rows.js';
import { until } from '../../support/until.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

/** A row of the table. */
interface Row {
  id: string;
  server_id: string | null;
  connection_id: string | null;
  [column: string]: unknown;
}

const SECRET_LINE = 'a line of the server';
const SECRET_ERROR = 'an exception of the server';

const app = testApp();
/** Owns the server. */
const author = testAccount(app);
/** Owns a connection to it. */
const user = testAccount(app);
let upstream: Upstream;

beforeAll(async () => {
  upstream = await startUpstream();
});

const rowOf = async (id: string): Promise<Row | undefined> =>
  (await app.database.query<Row[]>('SELECT * FROM invocations WHERE id = $1', [id]))[0];

async function callsOf(path: string, query = ''): Promise<ShownInvocation[]> {
  const { status, body } = await app.as(user).get(`${path}/logs${query}`);
  expect(status).toBe(200);
  return (body as { invocations: ShownInvocation[] }).invocations;
}

/** A call of `echo` through a connection of the user to a server of the author, and its row. */
async function call(server?: SeededServer) {
  const target = server ?? (await externalServer(app, author, upstream.url));
  const made = await createConnection(app, user, { server: target.name });
  const sent = await app.as(user).post(`${made.path}/.tools/echo`, { message: 'an argument' });
  expect(sent.status).toBe(200);
  const [{ id }] = await callsOf(made.path, '?tool=echo');
  const row = await until(async () => {
    const found = await rowOf(id);
    return found?.server_id ? found : null;
  }, 'both sides are in the row');
  return { ...made, server: target, id, row };
}

describe('a call through a connection to a registry server', () => {
  verifies(
    'log-ingestion:views',
    'is one row, of which each owner sees only the fields of their own view',
    async () => {
      const server = await externalServer(app, author, upstream.url);
      const changed = await app.as(author).patch(pathOf(server.name, '/runtime'), { logPayloads: true });
      expect(changed.status).toBe(200);
      const { path, namespace, connectionId, id, row } = await call(server);
      const at = Date.now();
      append(app, {
        id,
        serverId: server.serverId,
        lines: [{ at, level: 'log', message: SECRET_LINE }],
        exceptions: [{ at, name: 'RangeError', message: SECRET_ERROR }],
      });
      await until(async () => ((await rowOf(id))?.lines as unknown[]).length > 0, 'the lines are there');
      const rows = await app.database.query<Row[]>(
        `SELECT * FROM invocations WHERE server_id = $1 AND tool_name = 'echo' OR connection_id = $2 AND call ->> 'toolName' = 'echo'`,
        [server.serverId, row.connection_id],
      );
      expect(rows.map((one) => [one.id, one.server_id, one.connection_id])).toEqual([
        [id, server.serverId, row.connection_id],
      ]);

      const log = await readLog(app, author, server.name);
      const ofServer = log.invocations.find((one) => one.id === id);
      const text = expect.any(String) as unknown;
      expect(ofServer).toEqual({
        id,
        timestamp: text,
        at: text,
        request: { method: 'POST', url: expect.stringContaining(`/run/${server.slug}`) as unknown },
        response: { status: 200, outcome: 'ok' },
        duration: { cpuMs: 0, wallMs: expect.any(Number) as unknown },
        logs: [{ timestamp: text, at: text, level: 'log', message: SECRET_LINE }],
        exceptions: [{ timestamp: text, at: text, name: 'RangeError', message: SECRET_ERROR }],
        rpcMethod: 'tools/call',
        tool: 'echo',
        caller: expect.objectContaining({ account: { id: user.id, name: user.name } }) as unknown,
        releaseId: server.releaseId,
        leftOut: 0,
        payload: { arguments: text, result: text },
      });
      const userFacts = [path, namespace, connectionId, String(row.connection_id), user.key];
      for (const fact of userFacts) expect(JSON.stringify(log)).not.toContain(fact);
      for (const fact of userFacts.slice(0, 4)) {
        expect((await readLog(app, author, server.name, `?search=${encodeURIComponent(fact)}`)).total).toBe(0);
      }

      const calls = await callsOf(path);
      const ofConnection = calls.find((one) => one.id === id);
      const ms = expect.any(Number) as unknown;
      expect(ofConnection).toEqual({
        id,
        timestamp: text,
        at: text,
        request: { method: 'POST', url: `${path}/.tools/echo` },
        response: { status: 200, outcome: 'ok' },
        duration: { cpuMs: 0, wallMs: ms },
        logs: [],
        exceptions: [],
        rpcMethod: 'tools/call',
        tool: 'echo',
        caller: expect.objectContaining({ account: { id: user.id, name: user.name } }) as unknown,
        timing: { guardMs: ms, queueMs: ms, connectMs: ms, firstByteMs: ms, totalMs: ms },
      });
      const authorFacts = [SECRET_LINE, SECRET_ERROR, 'an argument', server.releaseId, server.slug, server.serverId];
      for (const fact of [...authorFacts, server.name, author.id, author.key, 'payload', 'leftOut']) {
        expect(JSON.stringify(calls)).not.toContain(fact);
      }
      for (const fact of [SECRET_LINE, SECRET_ERROR]) {
        expect(await callsOf(path, `?search=${encodeURIComponent(fact)}`)).toEqual([]);
      }
      for (const [account, address] of [
        [user, pathOf(server.name, '/logs')],
        [author, `${path}/logs`],
      ] as const) {
        expect((await app.as(account).get(address)).status).toBe(404);
      }
    },
  );

  verifies('log-ingestion:views', 'is not a new version of the server’s view when the connection’s comes', async () => {
    const { row } = await call();
    expect(row.jobs).toHaveLength(1);
  });

  verifies('log-ingestion:views', 'has no server if it was refused before the server was reached', async () => {
    const token = { properties: { token: { type: 'string' } }, required: ['token'] };
    const server = await externalServer(app, author, upstream.url, token);
    const { path } = await createConnection(app, user, { server: server.name });
    expect((await app.as(user).post(`${path}/.tools/echo`, {})).status).toBeGreaterThanOrEqual(400);
    const [{ id, response }] = await callsOf(path);
    expect(response.outcome).toBe('denied');
    await call();
    expect(await rowOf(id)).toMatchObject({ server_id: null, method: null });
    expect((await readLog(app, author, server.name)).invocations).toEqual([]);
  });

  verifies('log-ingestion:views', 'has no connection if the service itself made the request', async () => {
    const { path, server, row } = await call();
    expect((await app.as(user).get(`${path}/.tools`)).status).toBe(200);
    const isList = ({ rpcMethod }: ShownInvocation) => rpcMethod === 'tools/list';
    const { invocations } = await until(async () => {
      const log = await readLog(app, author, server.name);
      return log.invocations.some(isList) && log;
    }, 'the list is in the log of the server');
    for (const { id } of invocations.filter(isList)) {
      expect(await rowOf(id)).toMatchObject({ server_id: server.serverId, connection_id: null, call: null });
    }
    expect((await callsOf(path)).map(({ id }) => id)).toEqual([row.id]);
  });

  verifies('log-ingestion:views', 'has one id for a client’s request and each connection it reaches', async () => {
    const { path, namespace, server } = await call();
    const other = await createConnection(app, user, { server: server.name }, { namespace });
    const all = `/connect/${namespace}/.mcp`;
    const body = request(1, 'tools/call', { name: `${other.connectionId}.echo`, arguments: { message: 'hi' } });
    const answer = await app.as(user).post(all, body).set('accept', 'application/json, text/event-stream');
    expect(answer.status).toBe(200);
    await mcp(app, user, path, request(2, 'tools/call', { name: 'echo', arguments: { message: 'hi' } }));
    const [[byNamespace], [byMcp]] = [await callsOf(other.path, '?tool=echo'), await callsOf(path, '?tool=echo')];
    expect(byNamespace.request.url).toBe(all);
    const log = await logWith(app, author, server.name, 3, '?tool=echo');
    const ids = log.invocations.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining([byNamespace.id, byMcp.id]));
    expect(new Set(ids).size).toBe(3);
  });

  verifies('log-ingestion:deleted', 'loses the side that is deleted, and goes with the other', async () => {
    const [first, second] = [await call(), await call()];
    await app.as(user).delete(first.path);
    await app.as(author).delete(pathOf(second.server.name));
    await app.get(DeletedOwnerCleaner).sweep();
    expect(await rowOf(first.id)).toEqual({ ...first.row, connection_id: null, call: null });
    expect((await readLog(app, author, first.server.name, '?tool=echo')).total).toBe(1);
    const { id, day, at, connection_id, call: made } = second.row;
    const empty = { lines: [], exceptions: [], search_text: '', left_out: 0, jobs: [] };
    const cleared = await rowOf(second.id);
    expect(Object.fromEntries(Object.entries(cleared ?? {}).filter(([, value]) => value !== null))).toEqual({
      ...{ id, day, at, connection_id, call: made },
      ...empty,
    });
    expect((await callsOf(second.path, '?tool=echo')).map((one) => one.id)).toEqual([second.id]);

    await app.as(author).delete(pathOf(first.server.name));
    await app.as(user).delete(second.path);
    await app.get(DeletedOwnerCleaner).sweep();
    expect([await rowOf(first.id), await rowOf(second.id)]).toEqual([undefined, undefined]);
  });

  verifies('log-ingestion:merge', 'is found immediately by its own process, and soon by another', async () => {
    const { path } = await call();
    const other = await app.sibling({ ROLES: 'api' });
    try {
      await other.as(user).post(`${path}/.tools/echo`, { message: 'elsewhere' });
      const there = (await other.as(user).get(`${path}/logs`)).body as { total: number };
      await other.as(user).post(`${path}/.tools/echo`, { message: 'again' });
      expect(there.total).toBe(2);
      await until(async () => (await callsOf(path)).length === 3, 'the other process has it');
    } finally {
      await other.close();
    }
  });
});
