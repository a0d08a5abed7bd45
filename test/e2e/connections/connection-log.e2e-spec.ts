import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { describe, expect, jest } from '@jest/globals';
import { ConnectionCallsService } from '../../../src/modules/logs/connection-calls.service.js';
import { InvocationsService } from '../../../src/modules/logs/ingest/invocations.service.js';
import type { ConnectionCall } from '../../../src/modules/logs/invocation.types.js';
import { DeletedOwnerCleaner } from '../../../src/modules/logs/store/deleted-owner-cleaner.js';
import { InvocationStore } from '../../../src/modules/logs/store/invocation-store.js';
import { uuidV7 } from '../../../src/platform/database/uuid-v7.js';
import type { ConnectionInvocationDto } from '../../../src/modules/connections/log/connection-log.dto.js';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { mcp, open, request, send, times, toolCall } from '../../support/mcp/calls.js';
import { expectAlike, notFound } from '../../support/database/connection-rows.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { refusedPort } from '../../support/special-upstreams/faulty-upstreams.js';
import { until } from '../../support/until.js';
import { start } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
const other = testAccount(app);

interface Log {
  invocations: ConnectionInvocationDto[];
  total: number;
}

async function logOf(path: string, query = ''): Promise<Log> {
  const { status, body } = await app.as(owner).get(`${path}/logs${query}`);
  expect(status).toBe(200);
  return body as Log;
}

async function connect(mcpUrl: string, fields: object = {}): Promise<string> {
  return (await createConnection(app, owner, { mcpUrl, ...fields })).path;
}

/** The status of a client's answer to a question nobody asked, while the service's own log hears nothing of it. */
async function answeredQuietly(path: string): Promise<number> {
  const lines: unknown[] = [];
  const write = (...words: unknown[]) => void lines.push(words);
  Logger.overrideLogger({ log: write, error: write, warn: write });
  try {
    const { status } = await mcp(app, owner, path, { jsonrpc: '2.0', id: 9, result: {} });
    // Whatever went wrong behind the answer is told by now.
    await mcp(app, owner, path, { jsonrpc: '2.0', method: 'notifications/initialized' });
    expect(lines).toEqual([]);
    return status;
  } finally {
    Logger.overrideLogger(false);
  }
}

/** Outcomes with the name of what went wrong, newest first. */
function ends({ invocations }: Log): string[] {
  return invocations.map(({ response, exceptions }) =>
    [response.outcome, ...exceptions.map(({ name }) => name)].join(' '),
  );
}

const rowId = async (path: string) => {
  const [row] = await app.database.query<{ id: string }[]>('SELECT id FROM connections WHERE connection_id = $1', [
    path.split('/').pop(),
  ]);
  return row.id;
};

function madeCall(connectionId: string, fields: Partial<ConnectionCall> = {}): ConnectionCall {
  const at = fields.at ?? Date.now();
  const call = { method: 'POST', url: '/made', rpcMethod: 'tools/call', toolName: 'made', status: 200 };
  const timing = { guardMs: null, queueMs: null, connectMs: null, firstByteMs: null, totalMs: 1 };
  const none = { lines: [], exceptions: [] };
  return { id: uuidV7(at), connectionId, at, outcome: 'ok', ...call, timing, ...none, ...fields };
}

describe('success', () => {
  verifies('log:shape', 'a call is logged with all fields of an invocation and its timing', async () => {
    const path = await connect((await start()).url);
    await send(app, owner, `${path}/.tools/echo`, { message: 'hi' });
    const { invocations, total } = await logOf(path);
    expect([total, invocations.length]).toEqual([1, 1]);
    const known: unknown = expect.any(Number);
    expect(invocations[0]).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/),
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.+\.\d{3}Z$/),
      request: { method: 'POST', url: `${path}/.tools/echo` },
      response: { status: 200, outcome: 'ok' },
      duration: { cpuMs: 0, wallMs: known },
      logs: [],
      exceptions: [],
      rpcMethod: 'tools/call',
      tool: 'echo',
      caller: expect.objectContaining({ account: { id: owner.id, name: owner.name }, client: null }),
      timing: { guardMs: known, queueMs: known, connectMs: known, firstByteMs: known, totalMs: known },
    });
    expect(Date.now() - Date.parse(`${invocations[0].timestamp.replace(' ', 'T')}Z`)).toBeLessThan(60_000);
  });

  verifies('log:shape', 'calls by REST and MCP are in one log, newest first, without notifications', async () => {
    const path = await connect((await start()).url);
    await send(app, owner, `${path}/.tools/repo/search`, { query: 'q' });
    await mcp(app, owner, path, toolCall(1, 'echo', { message: 'hi' }));
    await mcp(app, owner, path, request(2, 'tools/list'));
    await mcp(app, owner, path, { jsonrpc: '2.0', method: 'notifications/initialized' });
    expect(await answeredQuietly(path)).toBe(202);
    await mcp(app, owner, path, request(3, 'ping'));
    const { invocations } = await logOf(path);
    expect(invocations.map(({ rpcMethod, tool }) => [rpcMethod, tool])).toEqual([
      ['ping', null],
      ['tools/list', null],
      ['tools/call', 'echo'],
      ['tools/call', 'repo.search'],
    ]);
  });

  verifies('log:failures', 'failed, denied and erroneous calls are recorded with the reason', async () => {
    const dead = await connect(await refusedPort());
    await send(app, owner, `${dead}/.tools/echo`, {});
    const log = await logOf(dead);
    expect(ends(log)).toEqual(['exception UpstreamError']);
    expect(log.invocations[0].response.status).toBe(502);
    expect(log.invocations[0].exceptions[0].message).toMatch(/Nothing listens on/);

    const closed = await connect((await start({ requireHeaders: { authorization: 'Bearer x' } })).url);
    await send(app, owner, `${closed}/.tools/echo`, {});
    await mcp(app, owner, closed, request(1, 'tools/list'));
    expect(ends(await logOf(closed))).toEqual(times(2, () => 'denied UpstreamAuthRequiredError'));

    const fine = await connect((await start()).url);
    await send(app, owner, `${fine}/.tools/no.such.tool`, {});
    await send(app, owner, `${fine}/.tools/nosuch`, {});
    await mcp(app, owner, fine, request(1, 'no/such/method'));
    await mcp(app, owner, fine, 'no json');
    const told = await logOf(fine);
    expect(ends(told)).toEqual(['denied', 'rpcError RpcError', ...times(2, () => 'denied ResourceNotFoundError')]);
    expect(told.invocations[2].exceptions[0].message).toBe('The MCP server has no such tool.');
    expect(told.invocations[0]).toMatchObject({ rpcMethod: null, response: { status: 400 } });

    const namespace = await createNamespace(app, owner);
    const uplink = `/connect/${namespace}/local`;
    await app.as(owner).put(uplink, { transport: 'uplink' });
    await send(app, owner, `${uplink}/.tools/echo`, {});
    expect(ends(await logOf(uplink))).toEqual(['denied UplinkDisconnectedError']);
  });

  verifies('log:failures', 'errors from the MCP server are distinguished from results', async () => {
    const path = await connect((await start()).url);
    for (const tool of ['fail', 'rpc_error', 'echo']) {
      const rest = await send(app, owner, `${path}/.tools/${tool}`, { message: 'hi' });
      expect([tool, rest.status]).toEqual([tool, tool === 'rpc_error' ? 422 : 200]);
      await mcp(app, owner, path, request(1, 'tools/call', { name: tool, arguments: { message: '"isError": true' } }));
    }
    const log = await logOf(path);
    const twice = (end: string) => times(2, () => end);
    expect(ends(log)).toEqual([...twice('ok'), ...twice('rpcError RpcError'), ...twice('toolError ToolError')]);
    expect(JSON.stringify(log)).not.toMatch(/The tool failed|refused the arguments/);
    for (const outcome of ['ok', 'toolError', 'rpcError']) {
      const found = await logOf(path, `?outcome=${outcome}`);
      expect([found.total, found.invocations.map(({ response }) => response.outcome)]).toEqual([2, twice(outcome)]);
    }
  });

  verifies('log:failures', 'a call whose caller left is canceled', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    const leaving = new AbortController();
    const call = open(app, owner, `${path}/.tools/hold`, {}, { signal: leaving.signal }).catch(() => null);
    await upstream.waitFor((seen) => seen.count('tools/call') === 1);
    leaving.abort();
    await call;
    const log = await until(async () => {
      const found = await logOf(path);
      return found.total === 1 && found;
    }, 'the call is logged');
    expect(ends(log)).toEqual(['canceled CallerLeftError']);
  });

  verifies('log:query', 'every filter narrows the log and total counts what matches', async () => {
    const path = await connect((await start()).url);
    const id = await rowId(path);
    const at = (minutes: number) => Date.now() - minutes * 60_000;
    const text = (minutes: number) => new Date(at(minutes)).toISOString();
    const recorder = app.get(ConnectionCallsService);
    for (let i = 0; i < 25; i += 1) recorder.record(madeCall(id, { at: at(100 - i), toolName: `tool-${i % 5}` }));
    recorder.record(
      madeCall(id, {
        at: at(200),
        outcome: 'exception',
        exceptions: [{ at: at(200), name: 'UpstreamError', message: '100% GONE_away' }],
      }),
    );
    expect((await logOf(path)).invocations).toHaveLength(20);
    expect(await logOf(path, '?limit=3&tool=tool-1')).toMatchObject({ total: 5, invocations: { length: 3 } });
    expect(await logOf(path, '?limit=100')).toMatchObject({ total: 26, invocations: { length: 26 } });
    expect((await logOf(path, '?outcome=exception')).total).toBe(1);
    for (const search of ['gone_AWAY', '100%25', 'upstreamerror']) {
      expect((await logOf(path, `?search=${search}`)).total).toBe(1);
    }
    expect((await logOf(path, '?search=TOOL-2')).total).toBe(5);
    expect((await logOf(path, '?search=tool_2')).total).toBe(0);
    expect((await logOf(path, `?from=${text(99.5)}`)).total).toBe(24);
    expect((await logOf(path, `?to=${text(150)}`)).total).toBe(1);
    const verbatim = text(150).slice(0, 19).replace('T', '%20');
    expect((await logOf(path, `?from=${verbatim}&tool=tool-0`)).total).toBe(5);
  });
});

describe('validation', () => {
  verifies('log:query', 'filters of another form are refused', async () => {
    const path = await connect((await start()).url);
    for (const query of ['limit=0', 'limit=101', 'limit=x', 'from=yesterday', 'to=2026-13-40', 'outcome=fine']) {
      const { status, body } = await app.as(owner).get(`${path}/logs?${query}`);
      expect([query, status, (body as { error: string }).error]).toEqual([query, 400, 'validation_error']);
    }
  });
});

describe('bounds and secrets', () => {
  verifies('log:nothing-secret', 'arguments, results, queries, headers and upstream words are not kept', async () => {
    const secret = 'do-not-keep-me';
    const upstream = await start({ rawToolResult: `{"content":[{"type":"text","text":"${secret}"}]}` });
    const path = await connect(`${upstream.url}?key=${secret}`, { headers: { 'x-key': secret } });
    const failing = await start({ rawToolResult: `{"content":[{"type":"text","text":"${secret}"}],"isError":true}` });
    const failed = await connect(failing.url);
    await send(app, owner, `${failed}/.tools/raw`, {});
    expect(ends(await logOf(failed))).toEqual(['toolError ToolError']);
    expect(JSON.stringify(await logOf(failed))).not.toContain(secret);
    await send(app, owner, `${path}/.tools/raw`, { argument: secret });
    await mcp(app, owner, path, request(1, 'tools/call', { name: 'echo', arguments: secret }));
    await mcp(app, owner, path, request(2, 'resources/read', { uri: `file://${secret}` }));
    await logOf(path);
    const rows = await app.database.query<object[]>('SELECT * FROM invocations WHERE connection_id = $1', [
      await rowId(path),
    ]);
    expect(rows).toHaveLength(3);
    expect(JSON.stringify(rows)).not.toContain(secret);
  });

  verifies('log:bounded', 'the newest thousand are shown', async () => {
    const path = await connect((await start()).url);
    const id = await rowId(path);
    const times = Array.from({ length: 1_300 }, (_, n) => Date.now() - 10_000 + n);
    const calls = times.map((at, n) => madeCall(id, { at, toolName: n < 300 ? 'old' : 'new' }));
    await app.get(InvocationStore).keepCalls(calls);
    expect((await logOf(path)).total).toBe(1_000);
    expect((await logOf(path, '?tool=old')).total).toBe(0);
  });

  verifies(
    'log:bounded',
    'a thousand calls of one connection a minute are recorded, and others stay whole',
    async () => {
      const [loud, quiet] = [await connect((await start()).url), await connect((await start()).url)];
      const recorder = app.get(ConnectionCallsService);
      const [loudId, quietId] = [await rowId(loud), await rowId(quiet)];
      const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now());
      for (let i = 0; i < 5_000; i += 1) recorder.record(madeCall(loudId));
      recorder.record(madeCall(loudId, { outcome: 'exception' }));
      recorder.record(madeCall(quietId));
      recorder.record(madeCall(randomUUID()));
      clock.mockRestore();
      await app.get(InvocationsService).settle();
      const [{ count }] = await app.database.query<{ count: string }[]>(
        'SELECT count(*) FROM invocations WHERE connection_id = $1',
        [loudId],
      );
      expect(Number(count)).toBe(1_001);
      expect(await logOf(quiet)).toMatchObject({ total: 1, leftOut: 0 });
      expect(await logOf(loud, '?tool=none')).toMatchObject({ invocations: [], total: 0, leftOut: 4_000 });
    },
  );
});

describe('ownership', () => {
  verifies('log:own', 'a foreign log and a missing one have the same answer', async () => {
    const path = await connect((await start()).url);
    await send(app, owner, `${path}/.tools/echo`, { message: 'hi' });
    const foreign = await app.as(other).get(`${path}/logs`);
    const missing = await app.as(other).get(`${path.replace(/[^/]+$/, uniqueName())}/logs`);
    expect(foreign.status).toBe(404);
    expect(missing.body).toEqual(notFound);
    expectAlike(foreign, missing);
    expect((await app.as().get(`${path}/logs`)).status).toBe(401);
  });

  verifies('log:own', 'a guest reads its own calls, whatever others call, and no reason', async () => {
    const upstream = await start();
    const path = await connect(upstream.url);
    const id = await rowId(path);
    const grant = (fields: object) => app.as(owner).post(`${path}/grants`, { account: other.id, ...fields });
    const ofGuest = async (query = '') => {
      const { status, body } = await app.as(other).get(`${path}/logs${query}`);
      return status === 200 ? (body as Log & { leftOut: number }) : status;
    };
    await grant({ level: 'call' });
    await send(app, other, `${path}/.tools/echo`, { message: 'hi' });
    await send(app, other, `${path}/.tools/fail`, {});
    await send(app, owner, `${path}/.tools/fail`, {});
    const [own] = (await logOf(path, `?caller=${other.id}&tool=echo`)).invocations;
    const failed = { at: Date.now(), outcome: 'exception', toolName: 'away', status: 502 } as const;
    const words = [{ at: failed.at, level: 'info', message: 'words', name: 'UpstreamError' }];
    const origin = {
      account: other.id,
      credential: own.caller?.credential.id ?? '',
      kind: 'key',
      client: null,
    } as const;
    const calls = Array.from({ length: 1_100 }, (_, n) =>
      madeCall(id, { at: failed.at + n, caller: { ...origin, account: owner.id }, leftOut: 5 }),
    );
    await app
      .get(InvocationStore)
      .keepCalls([madeCall(id, { ...failed, lines: words, exceptions: words, caller: origin }), ...calls]);
    // 1,000 newer calls of the owner push none of these out.
    expect((await logOf(path)).invocations[0].caller?.account.id).toBe(owner.id);
    const log = await ofGuest();
    expect(log).toMatchObject({ total: 3, leftOut: 0, invocations: [{ tool: 'away' }, { tool: 'fail' }, own] });
    for (const query of ['', '?outcome=exception', '?caller=' + other.id]) {
      expect(JSON.stringify(await ofGuest(query))).not.toMatch(/words|UpstreamError|says isError|127\.0\.0\.1/);
    }
    for (const query of ['search=words', 'search=UpstreamError', 'search=says', `caller=${owner.id}`, 'tool=made']) {
      expect([query, await ofGuest(`?${query}`)]).toEqual([query, { invocations: [], total: 0, leftOut: 0 }]);
    }
    expect(await ofGuest('?search=FAI')).toMatchObject({
      total: 1,
      invocations: [{ response: { outcome: 'toolError' } }],
    });

    const { id: grantId } = (await grant({ level: 'call', tools: { allow: ['echo'] } })).body as { id: string };
    expect(await ofGuest()).toEqual(log);
    await grant({ level: 'manage' });
    expect(await ofGuest()).toMatchObject({ total: 1_000, leftOut: 5_000 });
    await app.as(owner).delete(`${path}/grants/${grantId}`);
    expect(await ofGuest()).toBe(404);
  });

  verifies('log:own', 'a log goes with its connection', async () => {
    const path = await connect((await start()).url);
    const id = await rowId(path);
    await send(app, owner, `${path}/.tools/echo`, { message: 'hi' });
    expect((await logOf(path)).total).toBe(1);
    await app.as(owner).delete(path);
    expect((await app.as(owner).get(`${path}/logs`)).status).toBe(404);
    await app.get(DeletedOwnerCleaner).sweep();
    const rows = await app.database.query<object[]>('SELECT 1 FROM invocations WHERE connection_id = $1', [id]);
    expect(rows).toHaveLength(0);
  });
});
