import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { startUpstream } from '../../support/upstream/upstream.js';
import { LoginClient } from '../../support/oauth-clients/login.js';
import { signedInBrowser } from '../../support/people/browser-session.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const person = testAccount(app);
let upstream: Awaited<ReturnType<typeof startUpstream>>;
let path: string;

beforeAll(async () => {
  upstream = await startUpstream();
  path = (await createConnection(app, person, { mcpUrl: upstream.url })).path;
});
afterAll(async () => {
  await upstream.close();
});

const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

function call(token: string | undefined, at = `${path}/mcp`): Promise<Response> {
  return fetch(app.url + at, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(list),
  });
}

describe('a login by URL', () => {
  verifies('login:url', 'leads from a 401 to tools', async () => {
    const resource = `${app.url}${path}/mcp`;
    const refused = await call(undefined);
    expect(refused.status).toBe(401);
    const challenge = refused.headers.get('www-authenticate') ?? '';
    const metadata = /resource_metadata="([^"]+)"/.exec(challenge)?.[1] ?? '';
    expect(challenge).toContain('scope="mcp"');
    const protectedResource = await (await fetch(metadata)).json();
    expect(protectedResource).toMatchObject({ resource, authorization_servers: [app.url], scopes_supported: ['mcp'] });
    const server = await (await fetch(`${app.url}/.well-known/oauth-authorization-server`)).json();
    expect(server).toMatchObject({ issuer: app.url, authorization_endpoint: `${app.url}/authorize` });
    const client = new LoginClient(app, resource);
    const registered = await client.register();
    expect(registered.status).toBe(201);
    expect(Object.values(registered.body)).not.toContain(null);
    const browser = await signedInBrowser(app, person);
    const back = await client.authorize(browser);
    expect(back.searchParams.get('state')).toBe(client.state);
    expect(back.searchParams.get('iss')).toBe(app.url);
    const { status, body } = await client.redeem(back.searchParams.get('code') ?? '');
    expect({ status, ...body }).toMatchObject({ status: 200, token_type: 'Bearer', scope: 'mcp', expires_in: 86_400 });
    expect(body.access_token).toMatch(/^slipway_oat_/);
    const answer = await call(body.access_token);
    expect(answer.status).toBe(200);
    expect(JSON.stringify(await answer.json())).toContain('echo');
    const refreshed = await client.refresh(body.refresh_token);
    expect(refreshed.status).toBe(200);
    expect((await call(refreshed.body.access_token)).status).toBe(200);
    const again = await client.refresh(body.refresh_token);
    expect(again.status).toBe(200);
    expect((await client.revoke(again.body.refresh_token)).status).toBe(200);
    expect((await call(refreshed.body.access_token)).status).toBe(401);
    expect((await client.refresh(again.body.refresh_token)).status).toBe(400);
  });
});

describe('a token', () => {
  verifies('login:token', 'opens no other endpoint and no REST route', async () => {
    const client = new LoginClient(app, `${app.url}${path}/mcp`);
    const { access_token: token } = await client.login(await signedInBrowser(app, person));
    const { path: other } = await createConnection(
      app,
      person,
      { mcpUrl: upstream.url },
      { connectionId: uniqueName() },
    );
    const refused = await call(token, `${other}/mcp`);
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toContain('error="invalid_token"');
    const rest = await fetch(`${app.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
    expect(rest.status).toBe(401);
    expect(rest.headers.get('www-authenticate')).not.toContain('resource_metadata');
  });
});
