/**
 * Authorization of a connection by URL elicitation: MCP clients that open pages get a link that only the calling person can
 * use. The callers are people with an OAuth token of this service, and accounts with a key.
 */
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { UrlElicitationRequiredError } from '@modelcontextprotocol/sdk/types.js';
import { startApp, type TestAccount, type TestApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import type { Json } from '../../support/mcp/calls.js';
import { ask, initialize, modern } from '../../support/mcp/mcp-calls.js';
import { LoginClient } from '../../support/oauth-clients/login.js';
import { startAuthorizationServer, type AuthorizationServer } from '../../support/people/authorization-server.js';
import { signedInBrowser } from '../../support/people/browser-session.js';
import { personAt } from '../../support/people/credentials.js';
import type { Person, Shown } from '../../support/people/person.js';
import { freePort } from '../../support/upstream/upstream-net.js';
import { closing, connectV1, textOf } from '../../support/upstream/upstream-clients.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const capabilities = { elicitation: { url: {} } };
const echo = { name: 'echo', arguments: { message: 'hi' } };

let app: TestApp;
let owner: TestAccount;
let other: TestAccount;
let upstream: Upstream;
let server: AuthorizationServer;

beforeAll(async () => {
  [upstream, server] = await Promise.all([startUpstream(), startAuthorizationServer()]);
  app = await startApp({ PORT: String(await freePort()) });
  [owner, other] = [await app.account(), await app.account()];
});
afterAll(async () => {
  await Promise.all([app.close(), upstream.close(), server.close()]);
});

/** A connection to a server that lets in tokens of the test's authorization server only. */
async function connect(
  options: { toolScope?: string } = {},
): Promise<{ path: string; namespace: string; url: string }> {
  const { url: mcpUrl } = await server.protect(upstream.url, options);
  const { path, namespace } = await createConnection(app, owner, { mcpUrl });
  return { path, namespace, url: `${app.url}${path}/mcp` };
}

async function setupUrlOf(path: string): Promise<string> {
  const { body } = await app.as(owner).get(path);
  return (body as { status: { setupUrl?: string } }).status.setupUrl ?? '';
}

async function tokenFor(account: TestAccount, url: string): Promise<string> {
  const { access_token: token } = await new LoginClient(app, url).login(await signedInBrowser(app, account));
  return token;
}

function signIn(person: Person, { key }: TestAccount, shown: Shown): Promise<Shown> {
  const next = new URL(shown.url).searchParams.get('next') ?? '';
  return person.press(`${app.env.baseUrl}/login`, undefined, { key, next });
}

/** Opens a link in a browser that is signed out, signs in, and authorizes at the test's server, which lets everybody in. */
async function authorize(link: string, account: TestAccount): Promise<void> {
  const person = personAt(app);
  const first = await person.open(link);
  expect(first.html).toContain('name="key"');
  const page = await signIn(person, account, first);
  expect(page).toMatchObject({ status: 200, url: link });
  expect(page.html).toContain('Continue to');
  const done = await person.press(link);
  expect([done.status, done.html]).toEqual([200, expect.stringContaining('Authorized')]);
}

const bearer = (token: string): RequestInit => ({ headers: { authorization: `Bearer ${token}` } });

async function connectV2(
  url: string,
  token: string,
  mode: 'legacy' | 'auto' | { pin: string },
  visit: (link: string) => Promise<void>,
): Promise<ClientV2> {
  const client = new ClientV2({ name: 'spec', version: '1.0.0' }, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    await visit((params as { url: string }).url);
    return { action: 'accept' };
  });
  await client.connect(new TransportV2(new URL(url), { requestInit: bearer(token) }));
  return closing(client);
}

/** The link of an error that requires URL elicitation. */
function linkIn(error: unknown): string {
  const { code, data } = error as { code: number; data: { elicitations: { url: string; message: string }[] } };
  expect(code).toBe(-32042);
  const [elicitation] = data.elicitations;
  expect(elicitation).toMatchObject({ mode: 'url', elicitationId: expect.any(String) });
  expect(elicitation.message).toMatch(/^The MCP server asks for your authorization/);
  return elicitation.url;
}

const failureOf = (work: Promise<unknown>): Promise<Error> =>
  work.then(
    () => {
      throw new Error('It did not fail');
    },
    (error: Error) => error,
  );

describe('a person with an OAuth token', () => {
  verifies(
    ['connection:elicitation:url', 'connection:elicitation:person'],
    'is led by the client v1 to the page, signs in, authorizes, and calls again',
    async () => {
      const { url } = await connect();
      const token = await tokenFor(owner, url);
      const failure = await failureOf(connectV1(url, capabilities, bearer(token)));
      expect(failure).toBeInstanceOf(UrlElicitationRequiredError);
      await authorize(linkIn(failure), owner);
      const client = await connectV1(url, capabilities, bearer(token));
      expect(textOf(await client.callTool(echo))).toBe('hi');
    },
  );

  verifies('connection:elicitation:url', 'is led in the middle of a session of the client v1', async () => {
    const { path, url } = await connect({ toolScope: 'tools:admin' });
    const token = await tokenFor(owner, url);
    const before = personAt(app);
    const link = await setupUrlOf(path);
    await before.open(link);
    await before.press(link);
    const client = await connectV1(url, capabilities, bearer(token));
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('echo');
    await authorize(linkIn(await failureOf(client.callTool(echo))), owner);
    expect(textOf(await client.callTool(echo))).toBe('hi');
  });

  verifies('connection:elicitation:url', 'is led by the first request of the client v2', async () => {
    const { url } = await connect();
    const token = await tokenFor(owner, url);
    const open = () => connectV2(url, token, 'auto', () => Promise.reject(new Error('It was asked')));
    await authorize(linkIn(await failureOf(open())), owner);
    expect(textOf(await (await open()).callTool(echo))).toBe('hi');
  });

  for (const mode of ['legacy', 'auto', { pin: '2026-07-28' }] as const) {
    const spoken = typeof mode === 'string' ? mode : mode.pin;
    verifies('connection:elicitation:url', `is led by the client v2 (${spoken})`, async () => {
      const { path, url } = await connect({ toolScope: 'tools:admin' });
      const token = await tokenFor(owner, url);
      const before = personAt(app);
      const link = await setupUrlOf(path);
      await before.open(link);
      await before.press(link);
      const visited: string[] = [];
      const client = await connectV2(url, token, mode, async (page) => {
        visited.push(page);
        await authorize(page, owner);
      });
      if (client.getProtocolEra() === 'legacy') {
        await authorize(linkIn(await failureOf(client.callTool(echo))), owner);
        expect(visited).toEqual([]);
      }
      expect(textOf(await client.callTool(echo))).toBe('hi');
      expect(visited).toHaveLength(client.getProtocolEra() === 'legacy' ? 0 : 1);
    });
  }

  verifies('connection:elicitation:url', 'is asked in the words of 2026-07-28, without a handshake', async () => {
    const { url } = await connect();
    const authorization = `Bearer ${await tokenFor(owner, url)}`;
    const call = (method: string, params = {}) => {
      const { body, headers } = modern(method, params, { capabilities });
      return ask(url, body, { ...headers, authorization });
    };
    const { body } = await call('tools/call', echo);
    expect(body.result).toMatchObject({ resultType: 'input_required' });
    const [[key, { method, params }]] = Object.entries(body.result.inputRequests) as [[string, Json]];
    expect([method, params.mode]).toEqual(['elicitation/create', 'url']);
    const listed = await call('tools/list');
    expect(listed.body.error).toMatchObject({
      code: -33001,
      data: { setupUrl: expect.stringContaining(`/${owner.id}/`) },
    });
    expect(listed.text).not.toContain(await setupUrlOf(url.slice(app.url.length, -'/mcp'.length)));
    await authorize(params.url as string, owner);
    const again = await call('tools/call', { ...echo, inputResponses: { [key]: { action: 'accept' } } });
    expect(textOf(again.body.result)).toBe('hi');
  });
});

/** The link that a call with a key gets in a session of 2025-11-25. */
async function elicited(url: string, { key }: TestAccount): Promise<string> {
  const params = { protocolVersion: '2025-11-25', capabilities, clientInfo: { name: 'spec', version: '1' } };
  const begin = { jsonrpc: '2.0', id: 0, method: 'initialize', params };
  const { body } = await ask(url, begin, { authorization: `Bearer ${key}` });
  const link = linkIn(body.error);
  expect(body.error).toMatchObject({ message: expect.stringContaining(`Open ${link}`), data: { setupUrl: link } });
  return link;
}

describe('an elicited link', () => {
  verifies(
    'connection:elicitation:person',
    'is refused, page and form, to who is signed in as somebody else',
    async () => {
      const { url, path } = await connect();
      const link = await elicited(url, owner);
      const stranger = personAt(app);
      const refused = await signIn(stranger, other, await stranger.open(link));
      expect([refused.status, refused.url]).toEqual([403, link]);
      expect(refused.html).toContain('<h1>This link is for somebody else</h1>');
      expect(refused.html).not.toContain('<form');
      expect(refused.html).not.toContain(new URL(upstream.url).host);
      // With a valid token of a form, and the cookie of a link of the connection.
      await stranger.open(await setupUrlOf(path));
      expect(await stranger.press(link)).toMatchObject({ status: 403, html: expect.stringContaining('somebody else') });
      expect(await stranger.press(await setupUrlOf(path))).toMatchObject({ status: 200 });
    },
  );

  verifies('connection:elicitation:person', 'leads to the sign-in who is signed out, also from its form', async () => {
    const { url, path } = await connect();
    const link = await elicited(url, owner);
    const person = personAt(app);
    const { pathname, search } = new URL(link);
    const next = `${app.env.baseUrl}/login?next=${encodeURIComponent(pathname + search)}`;
    expect(await person.open(link, () => true)).toMatchObject({ status: 303, url: next });
    await person.open(await setupUrlOf(path));
    expect(await person.press(link, () => true)).toMatchObject({ status: 303, url: next });
    expect(server.seen.some(({ params }) => params.get('resource')?.startsWith(url))).toBe(false);
  });

  verifies('connection:elicitation:person', 'opens for nobody with another account in it, or none', async () => {
    const { url } = await connect();
    const link = await elicited(url, owner);
    expect(link).toContain(`/${owner.id}/`);
    for (const changed of [
      link.replace(`/${owner.id}/`, '/'),
      link.replace(owner.id, other.id),
      `${link}&for=x`.replace(owner.id, ''),
    ]) {
      expect(await personAt(app).open(changed)).toMatchObject({ status: 404 });
    }
  });

  verifies('connection:elicitation:person', 'has forms that post to links for the same person', async () => {
    const bare = closing(await startUpstream({ requireHeaders: { authorization: 'Bearer right' } }));
    const { path } = await createConnection(app, owner, { mcpUrl: bare.url });
    const link = await elicited(`${app.url}${path}/mcp`, owner);
    const person = personAt(app);
    const page = await signIn(person, owner, await person.open(link));
    const values = (value: string) => ({ 'key.header': 'Authorization', 'key.value': value });
    const actionIn = ({ html }: Shown): string =>
      (/<form [^>]*action="([^"]+)"/.exec(html)?.[1] ?? '').replaceAll('&amp;', '&');
    expect(actionIn(page)).toContain(`/${owner.id}/`);
    const again = await person.press(actionIn(page), undefined, values('Bearer wrong'));
    expect(again.html).toContain('does not accept them');
    expect(actionIn(again)).toContain(`/${owner.id}/`);
    expect(actionIn(again)).not.toBe(actionIn(page));
    const done = await person.press(actionIn(again), undefined, values('Bearer right'));
    expect(done.html).toContain('<h1>Connected</h1>');
  });

  verifies('connection:elicitation:person', 'names who calls, not who owns the connection', async () => {
    const { url, path } = await connect();
    const granted = await app.as(owner).post(`${path}/grants`, { account: other.id, level: 'manage' });
    expect(granted.status).toBe(201);
    const link = await elicited(url, other);
    expect(link).toContain(`/${other.id}/`);
    await authorize(link, other);
  });

  verifies('connection:elicitation:person', 'works where the service lets nobody log in by URL', async () => {
    const { url } = await connect();
    const port = String(await freePort());
    const off = closing(await app.sibling({ PORT: port, PUBLIC_URL: app.env.baseUrl, OAUTH: 'off' }));
    const link = await elicited(url.replace(app.url, off.url), owner);
    const person = personAt(off);
    const page = await signIn(person, owner, await person.open(link));
    expect([page.url, page.html]).toEqual([link, expect.stringContaining('Continue to')]);
  });
});

/** The path of a link up to the credential that it was issued to. */
const pageOf = (link: string) => new URL(link).pathname.replace(/[^/]+\/[^/]+$/, '');

describe('a client without URL elicitation', () => {
  verifies('connection:setup:link', 'gets a link that opens for anyone, of the same page as over REST', async () => {
    const { url, path } = await connect();
    const authorization = `Bearer ${await tokenFor(owner, url)}`;
    const page = pageOf(await setupUrlOf(path));
    expect(page).toMatch(/^\/setup\/connections\/[^/]+\/\d+\/[^/]+\/$/);
    const { body, headers } = modern('tools/call', echo, { capabilities: { elicitation: {} } });
    const newest = await ask(url, body, { ...headers, authorization });
    expect(newest.body.result).toMatchObject({ isError: true });
    expect(textOf(newest.body.result)).toContain(page);
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: echo };
    const older = await ask(url, call, { authorization });
    expect(older.body.result).toMatchObject({ isError: true });
    expect(textOf(older.body.result)).toContain(page);
    const list = await ask(url, { jsonrpc: '2.0', id: 1, method: 'tools/list' }, { authorization });
    expect(list.body.error).toMatchObject({ code: -33001, data: { setupUrl: expect.stringContaining(page) } });
    const failure = await failureOf(connectV1(url, { elicitation: { form: {} } }, { headers: { authorization } }));
    expect(failure).toMatchObject({ code: -33001, data: { setupUrl: expect.stringContaining(page) } });
    const link = (failure as Error & { data: { setupUrl: string } }).data.setupUrl;
    const person = personAt(app);
    expect(await person.open(link)).toMatchObject({ status: 200, url: link });
    expect(await person.press(link)).toMatchObject({ status: 200, html: expect.stringContaining('Authorized') });
  });
});

describe('the endpoint of a namespace', () => {
  verifies('connection:elicitation:url', 'leads to the page of the connection that is called', async () => {
    const { namespace, path } = await connect();
    const url = `${app.url}/connect/${namespace}/.mcp`;
    const authorization = `Bearer ${await tokenFor(owner, url)}`;
    const name = `${path.split('/').pop()}__echo`;
    const { body, headers } = modern('tools/call', { ...echo, name }, { capabilities });
    const newest = await ask(url, body, { ...headers, authorization });
    const [{ params }] = Object.values(newest.body.result.inputRequests) as [Json];
    expect(params.url).toContain(`/${owner.id}/`);
    const plain = await ask(
      url,
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...echo, name } },
      { ...(await initialize(url, { elicitation: {} }, '2025-11-25', authorization)) },
    );
    expect(textOf(plain.body.result)).toContain(pageOf(await setupUrlOf(path)));
    const client = await connectV1(url, capabilities, { headers: { authorization } });
    await authorize(linkIn(await failureOf(client.callTool({ ...echo, name }))), owner);
    expect(textOf(await client.callTool({ ...echo, name }))).toBe('hi');
    const retry = modern(
      'tools/call',
      { ...echo, name, inputResponses: { 'slipway-setup': { action: 'accept' } } },
      { capabilities },
    );
    const again = await ask(url, retry.body, { ...retry.headers, authorization });
    expect(textOf(again.body.result)).toBe('hi');
  });
});
