import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { startBrowser } from '../../support/people/browser.js';
import { startApp, type TestAccount, type TestApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { startSite, type Site } from '../../support/people/site.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

const blank = () => ({ '/': { text: '<!doctype html><title>App</title><link rel="icon" href="data:,">' } });

let app: TestApp;
let owner: TestAccount;
let upstream: Upstream;
let listed: Site;
let other: Site;
let browser: Browser;
let path: string;

beforeAll(async () => {
  [listed, other, upstream, browser] = await Promise.all([
    startSite(blank),
    startSite(blank),
    startUpstream(),
    startBrowser(),
  ]);
  app = await startApp({ PUBLIC_URL: 'https://slipway.example', CORS_ORIGINS: listed.origin });
  owner = await app.account();
  ({ path } = await createConnection(app, owner, { mcpUrl: upstream.url }));
}, SLOW_MS);

afterAll(async () => {
  await browser?.close();
  await Promise.all([listed, other, upstream].map((server) => server?.close()));
}, SLOW_MS);

interface Answer {
  status: number;
  session: string | null;
  requestId: string | null;
  body: string;
}

/** Sends requests with `fetch` from a page of an origin, in turn; an error instead of what the browser blocks. */
async function fromPage(origin: string, requests: { path: string; method?: string; body?: object }[]) {
  const page = await browser.newPage();
  await page.goto(origin);
  const script = `(async () => {
    const answers = [];
    for (const { url, ...init } of ${JSON.stringify(requests.map(toFetch))}) {
      try {
        const answer = await fetch(url, init);
        const { status, headers } = answer;
        const [session, requestId] = [headers.get('mcp-session-id'), headers.get('x-request-id')];
        answers.push({ status, session, requestId, body: await answer.text() });
      } catch (error) {
        answers.push(error.name);
      }
    }
    return answers;
  })()`;
  const answers = await page.evaluate<(Answer | string)[]>(script);
  await page.close();
  return answers;
}

function toFetch({ path: target, method = 'GET', body }: { path: string; method?: string; body?: object }) {
  return {
    url: `${app.url}${target}`,
    method,
    headers: {
      authorization: `Bearer ${owner.key}`,
      accept: 'application/json, text/event-stream',
      ...(body && { 'content-type': 'application/json' }),
      'mcp-protocol-version': '2025-11-25',
    },
    ...(body && { body: JSON.stringify(body) }),
  };
}

const clientInfo = { name: 'page', version: '1' };
const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: { elicitation: {} }, clientInfo },
};

describe('a page of another origin', () => {
  verifies(
    'http:cors',
    'uses REST and MCP endpoints with an API key and reads their headers when it is listed',
    async () => {
      const [read, put, gone, opened] = await fromPage(listed.origin, [
        { path },
        { path, method: 'PUT', body: { name: 'Renamed' } },
        { path: `${path}-nobody` },
        { path: `${path}/mcp`, method: 'POST', body: initialize },
      ]);
      expect(read).toMatchObject({ status: 200, requestId: expect.any(String) });
      expect(put).toMatchObject({ status: 200, body: expect.stringContaining('Renamed') });
      expect(gone).toMatchObject({ status: 404 });
      expect(opened).toMatchObject({ status: 200, session: expect.any(String) });
    },
    SLOW_MS,
  );

  verifies(
    'http:cors',
    'reads and changes nothing unless it is listed, and never reads Slipway pages',
    async () => {
      const requests = [
        { path },
        { path, method: 'PUT', body: { name: 'Changed' } },
        { path: `${path}/mcp`, method: 'POST', body: initialize },
        { path: '/docs' },
      ];
      expect(await fromPage(other.origin, requests)).toEqual(requests.map(() => 'TypeError'));
      expect(await fromPage(listed.origin, [{ path: '/docs' }])).toEqual(['TypeError']);
      expect((await app.as(owner).get(path)).body).not.toMatchObject({ name: 'Changed' });
    },
    SLOW_MS,
  );
});
