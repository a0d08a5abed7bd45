/** Mocks with the scenario `fail:{state}`: each is compared with a real connection in that state. */
import { beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp } from '../../support/app.js';
import { releaseServer } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { personAt } from '../../support/people/credentials.js';
import { mcp, toolCall } from '../../support/mcp/calls.js';
import { tracker } from '../../support/special-upstreams/tracker.js';
import { startWire } from '../../support/special-upstreams/wire-upstream.js';
import { closing } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
let namespace: string;

beforeAll(async () => {
  namespace = await createNamespace(app, owner);
});

/** Everything that a client sees of a connection, without its own names and links. */
async function seenOf(body: Record<string, unknown>): Promise<string> {
  const { path, connectionId, body: created } = await createConnection(app, owner, body, { namespace });
  const rest = await app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' });
  const rpc = await mcp(app, owner, path, toolCall(1, 'echo', { message: 'hi' }));
  const { since: _, ...status } = created.status as Record<string, unknown>;
  const headers = ['retry-after', 'x-should-retry'].map((name) => [rest.get(name), rpc.headers.get(name)]);
  return JSON.stringify([status, rest.body, rpc.body, rest.status, rpc.status, headers], null, 1)
    .replaceAll(connectionId, '<id>')
    .replace(/http:[^" ]*\/setup\/[^" ]*/g, '<link>');
}

describe('a mock that fails', () => {
  verifies('connection:mock:state', 'responds like a real one whose server fails, and contacts no server', async () => {
    const header = { type: 'string', title: 'X-Api-Key', 'x-from': { header: 'X-Api-Key' } };
    const configSchema = { type: 'object', required: ['apiKey'], properties: { apiKey: header } };
    for (const [state, code, headers, word] of [
      ['auth_required', 401, { 'www-authenticate': 'Bearer' }, 'auth_required'],
      ['input_required', 500, {}, 'input_required'],
      ['429', 429, { 'retry-after': '5' }, 'rate_limited'],
      ['502', 502, {}, 'upstream_error'],
    ] as const) {
      const upstream = closing(await startWire((_message, res) => res.writeHead(code, headers).end()));
      const server = await createServer(app, owner, { namespace });
      await releaseServer(app, server, {
        ...tracker,
        upstreamUrl: upstream.url,
        ...(state === 'input_required' && { configSchema }),
      });
      const mocked = await seenOf({ server, mock: { enabled: true, scenario: `fail:${state}` } });
      expect([state, upstream.seen.length]).toEqual([state, 0]);
      expect(mocked).toContain(word);
      expect(mocked).toBe(await seenOf({ server }));
    }
  });

  verifies('connection:mock:state', 'misses a value, and its setup page takes none', async () => {
    const upstream = closing(await startWire((_message, res) => res.writeHead(500).end()));
    const server = await createServer(app, owner, { namespace });
    await releaseServer(app, server, { ...tracker, upstreamUrl: upstream.url });
    for (const state of ['input_required', 'auth_required']) {
      const mock = { enabled: true, scenario: `fail:${state}` };
      const { path, body } = await createConnection(app, owner, { server, mock }, { namespace });
      const { setupUrl, ...status } = body.status as { setupUrl: string; state: string };
      expect(status.state).toBe(state);
      const called = await app.as(owner).post(`${path}/.tools/echo`, {});
      expect([called.status, called.body.error]).toEqual([409, state]);
      expect((await personAt(app).open(setupUrl)).html).toContain('nothing about it on this page');
    }
    expect(upstream.seen).toEqual([]);
  });
});
