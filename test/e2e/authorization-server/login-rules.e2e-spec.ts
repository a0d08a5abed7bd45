/*
 * The rules that MCP clients depend on when they log in by URL: metadata, challenges, CORS, scopes, lifetimes, registrations and
 * the words of the consent page. Whole logins are in `zoo.e2e-spec.ts`.
 */
import { beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { LoginClient } from '../../support/oauth-clients/login.js';
import { signedInBrowser, type BrowserSession } from '../../support/people/browser-session.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const FOREIGN = 'https://page.example';
const REDIRECT = 'https://app.example/callback';

const app = testApp({ CORS_ORIGINS: 'https://console.example', OAUTH_TOKEN_HOURS: '2' });
const person = testAccount(app);
let browser: BrowserSession;
let upstream: Upstream;
let namespace: string;
let connectionId: string;
let path: string;

beforeAll(async () => {
  upstream = await startUpstream();
  ({ path, namespace, connectionId } = await createConnection(app, person, { mcpUrl: upstream.url }));
  browser = await signedInBrowser(app, person);
});

async function registered(body: object = {}, redirectUri = REDIRECT): Promise<LoginClient> {
  const client = new LoginClient(app, `${app.url}${path}/mcp`, redirectUri);
  expect((await client.register(body)).status).toBe(201);
  return client;
}

async function json(at: string): Promise<Record<string, unknown>> {
  const response = await fetch(app.url + at);
  expect(response.status).toBe(200);
  return (await response.json()) as Record<string, unknown>;
}

describe('metadata', () => {
  verifies('login:resource-document', 'repeat the requested address of a resource', async () => {
    for (const at of [
      `${path}/mcp`,
      `${path}/mcp/`,
      `/${namespace}/${connectionId}/mcp`,
      `/connect/${namespace}/.mcp`,
      '/run/some-server',
      '/run/some-server/mcp',
      `${path}/mcp?one=1`,
    ]) {
      const document = await json(`/.well-known/oauth-protected-resource${at}`);
      expect([at, document]).toEqual([at, expect.objectContaining({ resource: app.url + at })]);
      expect(document).toMatchObject({ authorization_servers: [app.url], scopes_supported: ['mcp'] });
    }
    for (const at of ['/accounts/me', '/run/x/below', '/docs', '/connect/a/b']) {
      const { status } = await fetch(`${app.url}/.well-known/oauth-protected-resource${at}`);
      expect([at, status]).toEqual([at, 404]);
    }
  });

  verifies('login:metadata', 'are served for the server at both addresses, and nothing else is known', async () => {
    const documents = [
      await json('/.well-known/oauth-authorization-server'),
      await json('/.well-known/openid-configuration'),
    ];
    for (const document of documents) {
      expect(document).toMatchObject({
        issuer: app.url,
        authorization_endpoint: `${app.url}/authorize`,
        token_endpoint: `${app.url}/token`,
        registration_endpoint: `${app.url}/register`,
        scopes_supported: ['mcp', 'offline_access'],
        response_types_supported: ['code'],
        response_modes_supported: ['query'],
        grant_types_supported: ['authorization_code', 'refresh_token'],
        code_challenge_methods_supported: ['S256'],
        authorization_response_iss_parameter_supported: true,
        client_id_metadata_document_supported: true,
      });
      expect(document.token_endpoint_auth_methods_supported).toContain('none');
      expect(Object.values(document)).not.toContain(null);
    }
    for (const name of ['oauth-client', 'openid-configuration/x', 'jwks.json', uniqueName()]) {
      const response = await fetch(`${app.url}/.well-known/${name}`, { headers: { accept: 'text/html' } });
      expect([name, response.status, response.headers.get('content-type')]).toEqual([
        name,
        404,
        expect.stringContaining('application/json'),
      ]);
    }
  });
});

describe('an MCP endpoint', () => {
  verifies('login:challenge', 'returns 401 with its metadata to every method', async () => {
    for (const at of [`${path}/mcp`, `/connect/${namespace}/.mcp`, '/run/some-server', '/run/some-server/mcp']) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const body = method === 'POST' ? '{"jsonrpc":"2.0","id":1,"method":"initialize"}' : undefined;
        const response = await fetch(app.url + at, { method, body });
        const challenge = response.headers.get('www-authenticate') ?? '';
        expect([at, method, response.status]).toEqual([at, method, 401]);
        expect(challenge).toContain(`resource_metadata="${app.url}/.well-known/oauth-protected-resource${at}"`);
        expect(challenge).toContain('scope="mcp"');
      }
    }
  });

  verifies('login:challenge', 'answers the preflight of a page that may use it first', async () => {
    const wanted = 'authorization,content-type,mcp-session-id,mcp-protocol-version,mcp-method,mcp-name,last-event-id';
    const response = await fetch(`${app.url}${path}/mcp`, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://console.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': wanted,
      },
    });
    expect(response.status).toBe(204);
    expect(response.headers.get('access-control-allow-headers')).toBe(wanted);
    const refused = await fetch(`${app.url}${path}/mcp`, { headers: { origin: 'https://console.example' } });
    expect(refused.headers.get('access-control-expose-headers')).toBe('*');
  });
});

describe('a page of another origin', () => {
  verifies('login:cors', 'reads what clients need, and nothing of a person', async () => {
    const preflight = { origin: FOREIGN, 'access-control-request-method': 'POST' };
    for (const at of ['/token', '/register', '/revoke', '/.well-known/oauth-authorization-server']) {
      const asked = await fetch(app.url + at, { method: 'OPTIONS', headers: preflight });
      expect([at, asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([at, 204, '*']);
      const answer = await fetch(app.url + at, { headers: { origin: FOREIGN } });
      expect(answer.headers.get('access-control-allow-origin')).toBe('*');
      expect(answer.headers.get('access-control-allow-credentials')).toBeNull();
      expect(answer.headers.get('set-cookie')).toBeNull();
    }
    const client = await registered();
    for (const origin of [FOREIGN, 'https://console.example']) {
      for (const at of [client.authorizePath(), '/authorize/x', '/consent/x', '/me/access']) {
        const { headers } = await browser.get(at, { origin });
        expect([at, headers['access-control-allow-origin']]).toEqual([at, undefined]);
      }
    }
  });
});

describe('scopes and lifetimes', () => {
  verifies('login:scopes', 'are those of this server, whatever is asked for', async () => {
    for (const scope of [undefined, '', 'mcp', 'openid email profile', 'mcp offline_access', 'mcp.read mcp.write']) {
      const client = await registered({ scope: 'mcp' });
      const back = await client.authorize(browser, { answer: 'allow' }, { scope });
      const { status, body } = await client.redeem(back.searchParams.get('code') ?? '');
      expect([scope, status, body.scope]).toEqual([scope, 200, 'mcp']);
    }
  });

  verifies('login:refresh', 'bring a refresh token with every token', async () => {
    const client = await registered({ grant_types: ['authorization_code'] });
    let tokens = await client.login(browser);
    // A client may repeat the scopes that it asked for, though it has fewer.
    for (const scope of ['mcp', 'mcp offline_access', 'other mcp', '']) {
      const { refresh_token: before } = tokens;
      tokens = (await client.refresh(before, { scope })).body;
      expect(tokens.refresh_token).toEqual(expect.any(String));
      expect(tokens.refresh_token).not.toBe(before);
    }
  });

  verifies('login:lifetime', 'are the hours of the setting for an access token', async () => {
    const client = await registered();
    const tokens = await client.login(browser);
    expect(tokens).toMatchObject({ expires_in: 7_200, token_type: 'Bearer' });
    expect(tokens.access_token).toMatch(/^slipway_oat_[\w-]{43}$/);
    await app.database.query(
      `UPDATE as_records SET expires_at = now() WHERE kind = 'AccessToken' AND grant_id =
        (SELECT id FROM as_grants WHERE client_id = $1)`,
      [client.id],
    );
    const { status } = await fetch(client.resource, { headers: { authorization: `Bearer ${tokens.access_token}` } });
    expect(status).toBe(401);
  });
});

describe('a registration', () => {
  verifies('login:registration-answer', 'takes each method, and answers without null', async () => {
    for (const method of ['none', 'client_secret_post', 'client_secret_basic', undefined]) {
      const client = new LoginClient(app, `${app.url}${path}/mcp`, REDIRECT);
      const { status, body } = await client.register({
        token_endpoint_auth_method: method,
        logo_uri: null,
        contacts: [],
      });
      expect([method, status]).toEqual([method, 201]);
      expect(Object.values(body)).not.toContain(null);
      expect('client_secret' in body).toBe(body.token_endpoint_auth_method !== 'none');
      if ('client_secret' in body) expect(Number.isInteger(body.client_secret_expires_at)).toBe(true);
    }
  });
});

describe('the consent page', () => {
  const page = async (client: LoginClient) => {
    const begun = await browser.get(client.authorizePath());
    return (await browser.get(String(begun.headers.location))).text;
  };

  verifies('login:consent-page', 'says who asks for what, where the response goes, and who decides', async () => {
    const text = await page(await registered({ client_name: 'Claude <b>' }));
    expect(text).toContain('Claude &lt;b&gt;');
    expect(text).toContain('unverified');
    expect(text).toContain(`${namespace}/${connectionId}`);
    expect(text).toContain('<code>app.example</code>');
    expect(text).toContain(person.name);
    expect(text).toContain('method="post"');
    const loopback = await page(await registered({}, 'http://127.0.0.1:4242/callback'));
    expect(loopback).toContain('a program on this computer');
  });
});
