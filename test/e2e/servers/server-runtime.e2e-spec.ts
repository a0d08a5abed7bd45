import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect } from '@jest/globals';
import type { Invocation } from '../../../src/modules/logs/invocation.types.js';
import { InvocationsService } from '../../../src/modules/logs/ingest/invocations.service.js';
import { ProgramSettingsService } from '../../../src/modules/servers/settings/program-settings.service.js';
import { PubSub } from '../../../src/platform/queue/pub-sub.js';
import { testAccount, testApp } from '../../support/app.js';
import { mcpAccept, request, send, toolCall } from '../../support/mcp/calls.js';
import { externalServer, type SeededServer } from '../../support/releases/current-releases.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { pathOf, serverIdOf } from '../../support/database/server-rows.js';
import { until } from '../../support/until.js';
import { RpcError } from '../../support/upstream/upstream-exchange.js';
import { startUpstream, textResult, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const defaults = { egressAllow: null, logPayloads: false };
const notOne = { error: expect.stringMatching(/\S/) };

const app = testApp();
const owner = testAccount(app);
const other = testAccount(app);
let upstream: Upstream;
const heard: Invocation[] = [];

beforeAll(async () => {
  const tools = [
    {
      name: 'mirror',
      inputSchema: { type: 'object' as const },
      call: ({ args }: { args: Record<string, unknown> }) => ({ ...textResult('ok'), structuredContent: args }),
    },
    { name: 'large', inputSchema: { type: 'object' as const }, call: () => textResult('many words '.repeat(20_000)) },
    {
      name: 'broken',
      inputSchema: { type: 'object' as const },
      call: () => {
        throw new RpcError(-32050, 'The key sk_live_0123456789abcdefgh is wrong');
      },
    },
  ];
  upstream = await startUpstream({ tools });
  Object.assign(app.get(InvocationsService), { record: (invocation: Invocation) => heard.push(invocation) });
});

const read = (name: string, account = owner) => app.as(account).get(pathOf(name, '/runtime'));
const change = (name: string, body: object, account = owner) => app.as(account).patch(pathOf(name, '/runtime'), body);

describe('the runtime settings of a server', () => {
  verifies('server:runtime:settings', 'are the defaults until they are changed, one by one', async () => {
    const namespace = await createNamespace(app, owner);
    for (const server of ['weather', '']) {
      const name = await createServer(app, owner, { namespace, server });
      const id = await serverIdOf(app, name);
      expect([(await read(name)).status, (await read(name)).body]).toEqual([200, defaults]);
      const hosts = ['api.example.com', '*.example.org', 'db.example.com:5432', '93.184.216.34'];
      const steps: [body: object, then: object][] = [
        [{}, defaults],
        [{ logPayloads: true }, { egressAllow: null, logPayloads: true }],
        [{ egressAllow: hosts }, { egressAllow: hosts, logPayloads: true }],
        [{ logPayloads: false }, { egressAllow: hosts, logPayloads: false }],
        [{ egressAllow: [] }, { egressAllow: [], logPayloads: false }],
        [{ egressAllow: null }, defaults],
      ];
      for (const [body, then] of steps) {
        const changed = await change(name, body);
        expect([changed.status, changed.body]).toEqual([200, then]);
        expect((await read(name)).body).toEqual(then);
        expect(await app.get(ProgramSettingsService).egressAllowOf(id)).toEqual((then as typeof defaults).egressAllow);
      }
      expect((await app.as(owner).delete(pathOf(name))).status).toBe(200);
      expect(await app.database.query('SELECT 1 FROM server_runtime WHERE server_id = $1', [id])).toEqual([]);
    }
    expect(await app.get(ProgramSettingsService).egressAllowOf(randomUUID())).toBeNull();
  });

  verifies('server:runtime:settings', 'are published to every process when they change', async () => {
    const name = await createServer(app, owner);
    const id = await serverIdOf(app, name);
    const sibling = await app.sibling();
    try {
      const told: string[] = [];
      await sibling.get(PubSub).subscribe('servers.changed', (one) => void told.push(one.id));
      await change(name, {});
      await change(name, { egressAllow: ['example.com'] });
      await until(() => told.includes(id), 'it is told');
      expect(told).toEqual([id]);
    } finally {
      await sibling.close();
    }
  });

  verifies('server:runtime:settings', 'reject an invalid list', async () => {
    const name = await createServer(app, owner);
    const bad: unknown[] = [
      ...['example.com', 7, {}, [7], [null], [['a.com']], [''], ['*'], ['https://example.com'], ['10.0.0.0/8']],
      ...[['a.com:0'], ['a.com:99999'], ['a b'], ['a\u0000.com'], [`${'a.'.repeat(130)}com`]],
      Array.from({ length: 51 }, (_, i) => `a${i}.example.com`),
    ];
    for (const egressAllow of bad) {
      const { status, body } = await change(name, { egressAllow });
      expect([egressAllow, status, body]).toEqual([egressAllow, 400, notOne]);
    }
    for (const body of [{ logPayloads: null }, { logPayloads: 'yes' }, { logPayload: true }, []]) {
      expect((await change(name, body)).status).toBe(400);
    }
    expect((await read(name)).body).toEqual(defaults);
    const most = Array.from({ length: 50 }, (_, i) => `a${i}.example.com`);
    expect((await change(name, { egressAllow: most })).body.egressAllow).toEqual(most);
  });

  verifies('auth:matrix', 'can be read and changed by the owner only', async () => {
    const name = await createServer(app, owner);
    await change(name, { logPayloads: true });
    const missing = `${name}-not`;
    for (const account of [other, app.operator]) {
      for (const one of [name, missing]) {
        for (const response of [await read(one, account), await change(one, { logPayloads: false }, account)]) {
          expect([response.status, response.body]).toEqual([
            404,
            expect.objectContaining({ error: 'Server not found' }),
          ]);
        }
      }
    }
    expect((await read(missing)).status).toBe(404);
    expect((await read(name)).body.logPayloads).toBe(true);
  });
});

describe('payloads in the records of invocations', () => {
  const secrets = { password: 'hunter-canary', note: `sk_live_canary0123456789abcdef` };

  /** Calls by the run address and by a connection; returns the records. */
  async function calls(server: SeededServer, path: string, tool: string, args: object): Promise<Invocation[]> {
    heard.length = 0;
    await send(app, owner, `/run/${server.slug}`, toolCall(1, tool, args, { progressToken: 'p' }), {
      headers: mcpAccept,
    });
    await app.as(owner).post(`${path}/.tools/${tool}`, args);
    return until(() => {
      const made = heard.filter(({ rpcMethod }) => rpcMethod === 'tools/call');
      return made.length === 2 ? made : null;
    }, 'both calls are recorded');
  }

  /** Turns payloads on or off, and waits until every record shows it. */
  async function payloads(server: SeededServer, path: string, logPayloads: boolean): Promise<void> {
    await change(server.name, { logPayloads });
    const shown = async () =>
      (await calls(server, path, 'mirror', {})).every(({ payload }) => (payload !== undefined) === logPayloads);
    await until(shown, `payloads are ${logPayloads ? 'on' : 'off'}`);
  }

  async function start() {
    const server = await externalServer(app, owner, upstream.url);
    const { path } = await createConnection(app, owner, { server: server.name });
    return { server, path };
  }

  verifies('log:payload:on', 'are not there unless the owner turned it on', async () => {
    const { server, path } = await start();
    for (const one of await calls(server, path, 'mirror', { place: 'canary', ...secrets })) {
      expect(one.payload).toBeUndefined();
      expect(one.toolName).toBe('mirror');
      expect(JSON.stringify(one)).not.toContain('canary');
    }
  });

  verifies(['log:payload:on', 'log:payload:redacted'], 'are there while it is on, without secrets', async () => {
    const { server, path } = await start();
    await payloads(server, path, true);
    const args = { place: 'Zürich', days: 3, ...secrets };
    const kept = { place: 'Zürich', days: 3, password: '[redacted]', note: '[redacted]' };
    for (const { payload } of await calls(server, path, 'mirror', args)) {
      expect(JSON.parse(payload?.arguments ?? '')).toEqual(kept);
      expect(JSON.parse(payload?.result ?? '')).toMatchObject({
        content: [{ type: 'text', text: 'ok' }],
        structuredContent: kept,
      });
    }
    heard.length = 0;
    await send(app, owner, `/run/${server.slug}`, request(1, 'tools/list'), { headers: mcpAccept });
    await until(() => heard.length === 1, 'it is recorded');
    expect(heard[0].payload).toBeUndefined();
    await payloads(server, path, false);
  });

  verifies('log:payload:on', 'are bounded, and contain errors too', async () => {
    const { server, path } = await start();
    await payloads(server, path, true);
    for (const { payload } of await calls(server, path, 'mirror', { text: 'many words '.repeat(3_000) })) {
      expect(Buffer.byteLength(payload?.arguments ?? '')).toBeLessThanOrEqual(16_384);
      expect(Buffer.byteLength(payload?.result ?? '')).toBeLessThanOrEqual(16_384);
      expect(payload?.arguments).toMatch(/^\{"text":"many words .*…$/);
    }
    for (const { payload } of await calls(server, path, 'large', {})) {
      expect(payload).toEqual({
        arguments: '{}',
        result: expect.stringMatching(/^"\[result of 22\d{4} characters\]"$/),
      });
    }
    for (const { payload } of await calls(server, path, 'broken', {})) {
      const error = { code: -32050, message: 'The key [redacted] is wrong' };
      expect(JSON.parse(payload?.result ?? '')).toMatchObject({ error });
    }
  });
});
