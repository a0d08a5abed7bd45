import { beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const inspector = 'http://localhost:6274';
const listed = 'https://console.example';

const app = testApp({ PUBLIC_URL: 'https://slipway.example', CORS_ORIGINS: listed });
const owner = testAccount(app);
let upstream: Upstream;
let path: string;

beforeAll(async () => {
  upstream = await startUpstream();
  ({ path } = await createConnection(app, owner, { mcpUrl: upstream.url }));
});

/** The preflight of a browser for a request with headers that need one. @returns the origin that it allows */
async function preflight(origin: string, to: string, method: string): Promise<string | null> {
  const headers = {
    origin,
    'access-control-request-method': method,
    'access-control-request-headers': 'authorization,content-type,mcp-protocol-version',
  };
  const answer = await fetch(app.url + to, { method: 'OPTIONS', headers });
  const allowed = answer.headers.get('access-control-allow-headers')?.split(',') ?? [];
  return answer.status === 204 && allowed.length === 3 ? answer.headers.get('access-control-allow-origin') : null;
}

function initialize(origin: string): Promise<Response> {
  return fetch(`${app.url}${path}/mcp`, {
    method: 'POST',
    headers: {
      origin,
      authorization: `Bearer ${owner.key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  });
}

describe('a published service', () => {
  verifies(
    'login:programs:cors',
    'lets pages of every origin read metadata, register and exchange codes, and only listed ones call MCP',
    async () => {
      const documents = [`oauth-protected-resource${path}/mcp`, 'oauth-authorization-server', 'openid-configuration'];
      for (const document of documents) {
        expect(await preflight(inspector, `/.well-known/${document}`, 'GET')).toBe('*');
        const answer = await fetch(`${app.url}/.well-known/${document}`, { headers: { origin: inspector } });
        expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([200, '*']);
        expect(await answer.text()).not.toContain('http:');
      }
      const body = { client_name: 'Inspector', redirect_uris: [`${inspector}/oauth/callback`] };
      const requests: [path: string, status: number, body: string | URLSearchParams][] = [
        ['/register', 201, JSON.stringify({ ...body, token_endpoint_auth_method: 'none' })],
        ['/token', 400, new URLSearchParams({ grant_type: 'authorization_code', code: 'none', client_id: 'none' })],
        ['/revoke', 400, new URLSearchParams({ token: 'none' })],
      ];
      for (const [to, status, sent] of requests) {
        expect(await preflight(inspector, to, 'POST')).toBe('*');
        const type = typeof sent === 'string' ? 'application/json' : 'application/x-www-form-urlencoded';
        const answer = await fetch(app.url + to, {
          method: 'POST',
          headers: { origin: inspector, 'content-type': type },
          body: sent,
        });
        expect([to, answer.headers.get('access-control-allow-origin')]).toEqual([to, '*']);
        expect([to, answer.status < 500, answer.ok]).toEqual([to, true, status === 201]);
      }
      expect(await preflight(inspector, `${path}/mcp`, 'POST')).toBeNull();
      const foreign = await initialize(inspector);
      expect([foreign.status, foreign.headers.get('access-control-allow-origin')]).toEqual([403, null]);
      expect(await preflight(listed, `${path}/mcp`, 'POST')).toBe(listed);
      const own = await initialize(listed);
      expect([own.status, own.headers.get('access-control-allow-origin')]).toEqual([200, listed]);
    },
  );
});
