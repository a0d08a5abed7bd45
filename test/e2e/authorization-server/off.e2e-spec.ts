import { describe, expect, jest } from '@jest/globals';
import { startApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { closing, start } from '../../support/upstream/upstream-clients.js';
import { PinoLoggerService } from '../../../src/platform/telemetry/logger.js';
import { verifies } from '../../support/verifies.js';

const call = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

/** Settings of services that existed before, and what the log says about them. */
const installations: [name: string, settings: NodeJS.ProcessEnv, reason: RegExp | null][] = [
  ['an http PUBLIC_URL', { PUBLIC_URL: 'http://slipway.example' }, /PUBLIC_URL is not https/],
  ['a PUBLIC_URL with a path', { PUBLIC_URL: 'https://example.com/slipway' }, /PUBLIC_URL has a path \(\/slipway\)/],
  ['HOST=0.0.0.0 without PUBLIC_URL', { HOST: '0.0.0.0' }, /PUBLIC_URL is not set/],
  ['OAUTH=off', { OAUTH: 'off' }, null],
];

describe.each(installations)('a service with %s', (_, settings, reason) => {
  verifies('login:off', 'has no authorization server, says why once, and takes keys as before', async () => {
    const logged = jest.spyOn(PinoLoggerService.prototype, 'log');
    const app = closing(await startApp(settings));
    const lines = logged.mock.calls
      .map(([message]) => String(message))
      .filter((line) => line.includes('log in by URL'));
    expect(lines).toEqual(reason === null ? [] : [expect.stringMatching(reason)]);
    logged.mockRestore();

    const owner = await app.account();
    const { path } = await createConnection(app, owner, { mcpUrl: (await start()).url });
    const documents = ['oauth-authorization-server', 'openid-configuration', `oauth-protected-resource${path}/mcp`];
    for (const document of documents) {
      const answer = await app.as().get(`/.well-known/${document}`);
      expect([answer.status, answer.type]).toEqual([404, 'application/json']);
    }
    for (const own of ['/authorize', '/token', '/register', '/revoke']) {
      expect((await app.as().post(own, {})).status).toBe(404);
    }
    expect([403, 410]).toContain((await app.as().get('/consent/none')).status);
    const accept = 'application/json, text/event-stream';
    const refused = await app.as().post(`${path}/mcp`, call).set('accept', accept);
    expect(refused.status).toBe(401);
    expect(refused.headers['www-authenticate']).not.toContain('resource_metadata');
    const answered = await app.as(owner).post(`${path}/mcp`, call).set('accept', accept);
    expect([answered.status, JSON.stringify(answered.body)]).toEqual([200, expect.stringContaining('echo')]);
  });
});

verifies('login:off', 'a container whose PUBLIC_URL is an address of the machine has one', async () => {
  const app = closing(await startApp({ HOST: '0.0.0.0', PUBLIC_URL: 'http://localhost:3000' }));
  const document = await app.as().get('/.well-known/oauth-authorization-server');
  expect(document.body).toMatchObject({ issuer: 'http://localhost:3000' });
});
