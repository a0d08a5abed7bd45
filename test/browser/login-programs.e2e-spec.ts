import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import {
  Client as ClientV2,
  StreamableHTTPClientTransport as TransportV2,
  UnauthorizedError as UnauthorizedV2,
} from '@modelcontextprotocol/client';
import { UnauthorizedError as UnauthorizedV1 } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { generateApiKey } from '../../src/modules/auth/api-key.js';
import { endAllAccess, letIn } from '../support/oauth-clients/browser-login.js';
import { MemoryProvider } from '../support/oauth-clients/memory-provider.js';
import { startMcpRemote } from '../support/oauth-clients/mcp-remote.js';
import { query } from '../support/database/query.js';
import { startBrowser } from '../support/people/browser.js';
import { cleanUpPrograms, readySettings, runProgram, type Program } from '../support/program.js';
import { startSite, type Site } from '../support/people/site.js';
import { until } from '../support/until.js';
import { startUpstream, type Upstream } from '../support/upstream/upstream.js';
import { closing, textOf } from '../support/upstream/upstream-clients.js';
import { longVerifies, verifies } from '../support/verifies.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

const key = generateApiKey();

let settings: Record<string, string>;
let service: Program;
let url: string;
let upstream: Upstream;
let returned: Site;
let browser: Browser;
let page: Page;

/** Calls REST as the operator. */
async function rest(method: string, path: string, body?: object): Promise<unknown> {
  const headers = { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) };
  const answer = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${await answer.text()}`);
  return answer.json();
}

beforeAll(async () => {
  settings = await readySettings(key);
  service = runProgram('main.js', settings);
  [url, upstream, returned, browser] = await Promise.all([
    service.url(),
    startUpstream(),
    startSite(() => ({}), { text: '<!doctype html><title>Done</title>You may close this window.' }),
    startBrowser(),
  ]);
  await rest('PUT', '/namespaces/acme');
  await rest('PUT', '/connect/acme/weather', { mcpUrl: upstream.url });
  await rest('PUT', '/servers/acme%2Fweather', {});
  const form = new FormData();
  form.set('payload', JSON.stringify({ type: 'external', upstreamUrl: upstream.url }));
  const headers = { authorization: `Bearer ${key}` };
  const answer = await fetch(`${url}/servers/acme%2Fweather/releases`, { method: 'PUT', headers, body: form });
  expect(answer.status).toBeLessThan(300);
  await until(async () => {
    const { releases } = (await rest('GET', '/servers/acme%2Fweather/releases')) as { releases: { status: string }[] };
    return releases[0]?.status === 'SUCCESS';
  }, 'the server is published');
}, SLOW_MS);

afterAll(async () => {
  await Promise.all([browser?.close(), upstream?.close(), returned?.close()]);
  await cleanUpPrograms();
}, SLOW_MS);

beforeEach(async () => {
  page = await (await browser.newContext()).newPage();
}, SLOW_MS);

afterEach(() => page.context().close(), SLOW_MS);

/** The whole way of `mcp-remote`: login, calls, the end of its access, and a second login for the call that waits. */
async function useRemote(path: string, name: string): Promise<void> {
  const remote = await startMcpRemote(url + path);
  const { asked, back } = await letIn(page, await remote.opened(), key);
  expect(asked).toContain('acme');
  expect(back.hostname).toMatch(/^(localhost|127\.0\.0\.1)$/);
  await remote.connected;
  const { tools } = await remote.client.listTools();
  expect(tools.map((tool) => tool.name)).toContain(name);
  expect(textOf(await remote.client.callTool({ name, arguments: { message: 'hi' } }))).toContain('hi');
  expect(await endAllAccess(page, url)).toBe(1);
  const waiting = remote.client.callTool({ name, arguments: { message: 'again' } });
  const { asked: askedAgain } = await letIn(page, await remote.opened(2), key);
  expect(askedAgain).toContain('MCP CLI Proxy');
  expect(textOf(await waiting)).toContain('again');
  expect(await endAllAccess(page, url)).toBe(1);
}

describe('mcp-remote with nothing but a URL', () => {
  verifies(
    'login:programs:mcp-remote',
    'logs in through the browser, calls tools, and must log in again after its access ended',
    async () => {
      await useRemote('/connect/acme/weather/mcp', 'echo');
      await useRemote('/run/acme--weather', 'echo');
    },
    SLOW_MS,
  );

  longVerifies(
    'login:programs:mcp-remote',
    'logs in at a namespace and at the short form of a connection, too',
    async () => {
      await useRemote('/connect/acme/.mcp', 'weather__echo');
      await useRemote('/acme/weather/mcp', 'echo');
    },
    SLOW_MS,
  );
});

/** A client of the SDK: how one of its versions opens a connection. */
interface SdkClient {
  call(message: string): Promise<unknown>;
  close(): Promise<unknown>;
}

interface SdkVersion {
  name: string;
  /** Exchanges the code with which the browser came back. */
  redeem(target: URL, provider: MemoryProvider, back: URLSearchParams): Promise<void>;
  /** Connects a client. @returns null after it sent its user to the browser */
  connect(target: URL, provider: MemoryProvider): Promise<SdkClient | null>;
}

const version1: SdkVersion = {
  name: 'SDK 1.32',
  redeem: (target, authProvider, back) => new TransportV1(target, { authProvider }).finishAuth(back.get('code') ?? ''),
  connect(target, authProvider) {
    const client = new ClientV1({ name: 'program', version: '1.0.0' });
    return client
      .connect(new TransportV1(target, { authProvider }))
      .then(() => sdkClient(client), none(UnauthorizedV1));
  },
};

/** @param pin the later revision only; without it the client finds out what the endpoint speaks */
function version2(pin: boolean): SdkVersion {
  const mode = pin ? { pin: '2026-07-28' } : ('legacy' as const);
  return {
    name: `SDK 2.4 with ${pin ? '2026-07-28' : '2025-11-25'}`,
    redeem: (target, authProvider, back) => new TransportV2(target, { authProvider }).finishAuth(back),
    connect(target, authProvider) {
      const client = new ClientV2({ name: 'program', version: '1.0.0' }, { versionNegotiation: { mode } });
      return client
        .connect(new TransportV2(target, { authProvider }))
        .then(() => sdkClient(client), none(UnauthorizedV2));
    },
  };
}

function sdkClient(client: ClientV1 | ClientV2): SdkClient {
  return {
    call: async (message) => textOf(await client.callTool({ name: 'echo', arguments: { message } })),
    close: () => client.close(),
  };
}

/** Null instead of this error. */
function none(expected: new (...words: never[]) => Error): (error: unknown) => null {
  return (error) => {
    if (error instanceof expected) return null;
    throw error;
  };
}

describe('the OAuth clients of the MCP SDK', () => {
  verifies(
    'login:programs:sdk',
    'log in through the browser, refresh an expired token by themselves, and ask again after their access ended',
    async () => {
      const target = new URL(`${url}/connect/acme/weather/mcp`);
      for (const version of [version1, version2(false), version2(true)]) {
        const provider = new MemoryProvider(`${returned.origin}/callback`);
        expect(await version.connect(target, provider)).toBeNull();
        const { asked, back } = await letIn(page, provider.opened[0].href, key);
        expect(asked).toContain('Memory client');
        await version.redeem(target, provider, back.searchParams);
        const first = provider.tokens()?.access_token;
        await query(settings.DATABASE_URL, `UPDATE as_records SET expires_at = now() WHERE kind = 'AccessToken'`);
        const client = await version.connect(target, provider);
        if (!client) throw new Error(`${version.name} is not let in`);
        closing(client);
        expect(await client.call('hi')).toContain('hi');
        expect(provider.tokens()?.access_token).not.toBe(first);
        expect(provider.opened).toHaveLength(1);

        expect(await endAllAccess(page, url)).toBe(1);
        await expect(client.call('ended')).rejects.toThrow();
        expect(provider.tokens()).toBeUndefined();
        expect(provider.opened).toHaveLength(2);
      }
    },
    SLOW_MS,
  );
});
