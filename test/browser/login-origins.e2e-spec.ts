import { createHash, randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { startApp, type TestAccount, type TestApp } from '../support/app.js';
import { createConnection } from '../support/factories.js';
import { letIn } from '../support/oauth-clients/browser-login.js';
import { startBrowser } from '../support/people/browser.js';
import { startSite, type Site } from '../support/people/site.js';
import { selfSignedCertificate } from '../support/special-upstreams/faulty-tls.js';
import { startTlsFront, type TlsFront } from '../support/tls-front.js';
import { freePort } from '../support/upstream/upstream-net.js';
import { startUpstream, type Upstream } from '../support/upstream/upstream.js';
import { verifies } from '../support/verifies.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

const CALLBACK = '/oauth/callback';
const MCP_VERSION = '2025-11-25';

let upstream: Upstream;
/** Origins of MCP Inspector: one that `CORS_ORIGINS` lists, and one that it does not. */
let inspector: string;
let other: string;
let sites: Site[];
let browser: Browser;
let context: BrowserContext;
let page: Page;

beforeAll(async () => {
  const app = () =>
    startSite(() => ({}), { text: '<!doctype html><title>Inspector</title><link rel="icon" href="data:,">' });
  [upstream, browser, ...sites] = await Promise.all([startUpstream(), startBrowser(), app(), app()]);
  [inspector, other] = sites.map(({ origin }) => origin.replace('127.0.0.1', 'localhost'));
}, SLOW_MS);

beforeEach(async () => {
  context = await browser.newContext({ ignoreHTTPSErrors: true });
  page = await context.newPage();
}, SLOW_MS);

afterEach(() => context.close(), SLOW_MS);

afterAll(async () => {
  await browser?.close();
  await Promise.all([upstream, ...sites].map((each) => each?.close()));
}, SLOW_MS);

interface Sent {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

/** What a script of the page reads of an answer; null where the browser refuses. */
interface Read {
  status: number;
  headers: Record<string, string>;
  text: string;
}

/** Sends a request by `fetch` from the page. */
function fromPage(url: string, sent: Sent = {}): Promise<Read | null> {
  return page.evaluate<Read | null>(`(async () => {
    const answer = await fetch(${JSON.stringify(url)}, ${JSON.stringify(sent)}).catch(() => null);
    return answer && { status: answer.status, headers: Object.fromEntries(answer.headers), text: await answer.text() };
  })()`);
}

const json = { 'content-type': 'application/json' };

function callMcp(url: string, method: string, headers: Record<string, string>, params: object = {}) {
  return fromPage(url, {
    method: 'POST',
    headers: {
      ...json,
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': MCP_VERSION,
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
}

/** Reads a JSON document as MCP Inspector does, whose header makes the browser send a preflight. */
async function document(url: string): Promise<Record<string, string> & { authorization_servers: string[] }> {
  const answer = await fromPage(url, { headers: { 'mcp-protocol-version': MCP_VERSION } });
  expect(answer?.status).toBe(200);
  return JSON.parse(answer?.text ?? '') as Record<string, string> & { authorization_servers: string[] };
}

/** Logs in as MCP Inspector does in direct mode: each request is one of the page. @returns the access token */
async function logIn(origin: string, endpoint: string, key: string): Promise<string> {
  await page.goto(origin);
  const { pathname, origin: service } = new URL(endpoint);
  const resourceMetadata = await document(`${service}/.well-known/oauth-protected-resource${pathname}`);
  expect(resourceMetadata).toMatchObject({ resource: endpoint, authorization_servers: [service] });
  const server = await document(`${resourceMetadata.authorization_servers[0]}/.well-known/oauth-authorization-server`);
  const redirectUri = origin + CALLBACK;
  const metadata = { client_name: 'MCP Inspector', redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' };
  const registered = await fromPage(server.registration_endpoint, {
    method: 'POST',
    headers: json,
    body: JSON.stringify(metadata),
  });
  expect(registered?.status).toBe(201);
  const { client_id } = JSON.parse(registered?.text ?? '') as { client_id: string };
  const verifier = randomBytes(32).toString('base64url');
  const asked = {
    response_type: 'code',
    client_id,
    redirect_uri: redirectUri,
    scope: 'mcp',
    state: 'its-state',
    resource: endpoint,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  };
  const { back } = await letIn(page, `${server.authorization_endpoint}?${new URLSearchParams(asked).toString()}`, key);
  expect(page.url()).toBe(back.href);
  const form = {
    grant_type: 'authorization_code',
    code: back.searchParams.get('code') ?? '',
    redirect_uri: redirectUri,
    client_id,
    code_verifier: verifier,
    resource: endpoint,
  };
  const answer = await fromPage(server.token_endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'mcp-protocol-version': MCP_VERSION },
    body: new URLSearchParams(form).toString(),
  });
  expect(answer?.status).toBe(200);
  return (JSON.parse(answer?.text ?? '') as { access_token: string }).access_token;
}

const initialize = { protocolVersion: MCP_VERSION, capabilities: {}, clientInfo: { name: 'inspector', version: '1' } };

/** The whole way of MCP Inspector, from the first 401 on. */
async function inspect(origin: string, endpoint: string, key: string): Promise<void> {
  await page.goto(origin);
  const refused = await callMcp(endpoint, 'initialize', {}, initialize);
  expect(refused).toMatchObject({
    status: 401,
    headers: { 'www-authenticate': expect.stringContaining('resource_metadata=') },
  });
  const authorization = `Bearer ${await logIn(origin, endpoint, key)}`;
  const opened = await callMcp(endpoint, 'initialize', { authorization }, initialize);
  expect(opened?.status).toBe(200);
  const session = { authorization, 'mcp-session-id': opened?.headers['mcp-session-id'] ?? '' };
  const listed = await callMcp(endpoint, 'tools/list', session);
  expect(listed).toMatchObject({ status: 200, text: expect.stringContaining('echo') });
  const called = await callMcp(endpoint, 'tools/call', session, { name: 'echo', arguments: { message: 'hi' } });
  expect(called).toMatchObject({ status: 200, text: expect.stringContaining('hi') });
  const ended = await fromPage(endpoint, { method: 'DELETE', headers: session });
  expect(ended).not.toBeNull();
}

async function connectionOf(app: TestApp): Promise<{ owner: TestAccount; path: string }> {
  const owner = await app.account();
  const { path } = await createConnection(app, owner, { mcpUrl: upstream.url });
  return { owner, path: `${path}/mcp` };
}

describe('a web page of another origin', () => {
  verifies(
    'login:programs:inspector',
    'logs in and calls tools while the service is local only',
    async () => {
      const app = await startApp();
      const { owner, path } = await connectionOf(app);
      await inspect(other, app.url + path, owner.key);
      await app.close();
    },
    SLOW_MS,
  );
});

describe('a service behind a TLS front', () => {
  let front: TlsFront;
  let app: TestApp;
  let publicUrl: string;

  beforeAll(async () => {
    const port = await freePort();
    front = await startTlsFront(port, selfSignedCertificate('localhost'));
    publicUrl = `https://localhost:${front.port}`;
    const settings = { PUBLIC_URL: publicUrl, TRUST_PROXY: '127.0.0.1', CORS_ORIGINS: inspector };
    app = await startApp({ PORT: String(port), ...settings });
  }, SLOW_MS);

  afterAll(async () => {
    await app?.close();
    await front?.close();
  }, SLOW_MS);

  verifies(
    ['login:programs:https', 'login:programs:inspector'],
    'names https addresses, sets cookies for it alone, and lets a person log in',
    async () => {
      const { owner, path } = await connectionOf(app);
      await inspect(inspector, publicUrl + path, owner.key);
      const cookies = await context.cookies(publicUrl);
      expect(cookies.map(({ name }) => name)).toContain('__Host-slipway-session');
      for (const cookie of cookies) expect(cookie).toMatchObject({ secure: true, httpOnly: true });
      for (const name of ['oauth-authorization-server', 'openid-configuration', `oauth-protected-resource${path}`]) {
        const { text = '' } = (await fromPage(`${publicUrl}/.well-known/${name}`)) ?? {};
        expect(text).toContain(`"${publicUrl}`);
        expect(text).not.toContain('http://');
      }
    },
    SLOW_MS,
  );

  verifies(
    'login:programs:cors',
    'lets a page that is not listed log in, and not call MCP',
    async () => {
      const { owner, path } = await connectionOf(app);
      const authorization = `Bearer ${await logIn(other, publicUrl + path, owner.key)}`;
      expect(await callMcp(publicUrl + path, 'initialize', { authorization }, initialize)).toBeNull();
    },
    SLOW_MS,
  );
});
