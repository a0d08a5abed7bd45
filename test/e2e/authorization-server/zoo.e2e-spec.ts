/*
 * Every client of test/support/oauth-clients at the whole service: from its registration to the end of its login, with calls of
 * the MCP endpoint between. Documents of clients are answered in the place of the hosts that publish them.
 */
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { DocumentEgress } from '../../../src/modules/authorization-server/client-documents.js';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { clients, machineClient, refusedClients } from '../../support/oauth-clients/clients.js';
import { FlowClient, live, publishDocuments, wholeLife } from '../../support/oauth-clients/flow.js';
import { formTokenIn, signedInBrowser, type BrowserSession } from '../../support/people/browser-session.js';
import { startUpstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const person = testAccount(app);
let browser: BrowserSession;
let upstream: Awaited<ReturnType<typeof startUpstream>>;
let resource: string;

beforeAll(async () => {
  publishDocuments(app.get(DocumentEgress));
  upstream = await startUpstream();
  browser = await signedInBrowser(app, person);
  resource = `${app.url}${(await createConnection(app, person, { mcpUrl: upstream.url })).path}/mcp`;
});
afterAll(async () => {
  await upstream.close();
});

/** Follows an authorization, and presses Allow on the page. */
async function allow(authorizeUrl: string): Promise<URL> {
  let url = new URL(authorizeUrl);
  for (let hops = 0; url.origin === app.url; hops += 1) {
    if (hops > 10) throw new Error(`Redirects without end, last to ${url.href}`);
    const path = url.pathname + url.search;
    let answer = await browser.get(path);
    if (answer.status === 200) {
      const account = /name="account" value="([^"]+)"/.exec(answer.text)?.[1] ?? '';
      answer = await browser.post(path, { 'form-token': formTokenIn(answer), account, answer: 'allow' });
    }
    if (answer.status !== 303) throw new Error(`${path} answered ${answer.status}: ${answer.text}`);
    url = new URL(answer.headers.location ?? '', url);
  }
  return url;
}

async function call(token: string): Promise<number> {
  const response = await fetch(resource, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  });
  await response.text();
  return response.status;
}

function register(metadata: object): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return fetch(`${app.url}/register`, { method: 'POST', headers, body: JSON.stringify(metadata) });
}

describe('a client that logs in by URL', () => {
  for (const client of clients) {
    verifies('login:clients', `${client.name} logs in, calls, refreshes and logs out`, async () => {
      const steps = await live(new FlowClient(client, app.url, resource), { allow, call });
      expect(steps).toEqual(wholeLife);
    });
  }

  for (const client of refusedClients) {
    verifies('login:clients', `with ${client.name} is refused in words`, async () => {
      const response = await register(client.metadata);
      expect(response.status).toBe(400);
      const { error, error_description } = (await response.json()) as Record<string, string>;
      expect([error, error_description]).toEqual(['invalid_redirect_uri', expect.stringMatching(client.refusal)]);
    });
  }

  verifies('login:machine', 'gets no token without a person', async () => {
    const response = await register(machineClient.metadata);
    expect(response.status).toBe(201);
    const { client_id, client_secret } = (await response.json()) as Record<string, string>;
    const body = new URLSearchParams({ grant_type: 'client_credentials', resource });
    const authorization = `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`;
    const answer = await fetch(`${app.url}/token`, { method: 'POST', headers: { authorization }, body });
    expect([answer.status, await answer.json()]).toEqual([
      400,
      expect.objectContaining({ error: 'unsupported_grant_type' }),
    ]);
  });
});
