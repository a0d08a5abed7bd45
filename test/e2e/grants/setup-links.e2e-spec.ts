/**
 * Setup links of connections that were granted: they are for the owner and for who manages the connection, and end with
 * that right. What is withdrawn in one process is used in another.
 */
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { PeopleRepository } from '../../../src/modules/people/people.repository.js';
import { startApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import type { Json } from '../../support/mcp/calls.js';
import { ask, modern } from '../../support/mcp/mcp-calls.js';
import { startAuthorizationServer, type AuthorizationServer } from '../../support/people/authorization-server.js';
import { personAt } from '../../support/people/credentials.js';
import type { Person } from '../../support/people/person.js';
import { freePort, listen } from '../../support/upstream/upstream-net.js';
import { closing } from '../../support/upstream/upstream-clients.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const capabilities = { elicitation: { url: {} } };
const echo = { name: 'echo', arguments: { message: 'hi' } };

/** The longest time in which a link may outlive its right. */
const END_MS_MAX = 5_000;

let app: TestApp;
/** A process that hears no message of the others. */
let deaf: TestApp;
let upstream: Upstream;
let server: AuthorizationServer;
let alice: TestAccount;

beforeAll(async () => {
  [upstream, server] = await Promise.all([startUpstream(), startAuthorizationServer()]);
  app = await startApp({ PORT: String(await freePort()) });
  alice = await app.account();
  deaf = await app.sibling({
    QUEUE_PREFIX: uniqueName('deaf'),
    PORT: String(await freePort()),
    PUBLIC_URL: app.env.baseUrl,
  });
});
afterAll(() => Promise.all([app.close(), upstream.close(), server.close()]));

/** An MCP server that is its own authorization server, and answers registrations when `answer` is called. */
async function slowToRegister() {
  const held: (() => void)[] = [];
  const http = createServer(({ url = '', headers }, response) => {
    const issuer = `http://${headers.host}`;
    const send = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (url === '/register') {
      return held.push(() => send(201, { client_id: 'client', redirect_uris: [`${app.env.baseUrl}/oauth/callback`] }));
    }
    if (url.includes('oauth-protected-resource')) {
      return send(200, { resource: `${issuer}/mcp`, authorization_servers: [issuer] });
    }
    if (!url.startsWith('/.well-known/')) return response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
    return send(200, {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      registration_endpoint: `${issuer}/register`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
    });
  });
  return { origin: `http://127.0.0.1:${await listen(http)}`, held };
}

interface Shared {
  path: string;
  bob: TestAccount;
  grantId: string;
  tokens: string[];
}

/** A connection of alice's that needs authorization, granted to a new account. */
async function shared(level: 'call' | 'manage', protect = true): Promise<Shared> {
  if (protect) return sharedAt(level, await server.protect(upstream.url));
  return sharedAt(level, closing(await startUpstream({ requireHeaders: { authorization: 'Bearer right' } })));
}

async function sharedAt(level: string, { url, tokens = [] }: { url: string; tokens?: string[] }): Promise<Shared> {
  const bob = await app.account();
  const { path } = await createConnection(app, alice, { mcpUrl: url });
  const { body } = await app.as(alice).post(`${path}/grants`, { account: bob.id, level });
  return { path, bob, grantId: body.id as string, tokens };
}

/** The answers of every way that an account has to a connection that needs authorization. */
async function answers({ path, bob }: Shared): Promise<string[]> {
  const headers = { authorization: `Bearer ${bob.key}` };
  const texts: string[] = [];
  for (const offered of [capabilities, {}]) {
    for (const [method, params] of [
      ['tools/call', echo],
      ['tools/list', {}],
    ] as const) {
      const newest = modern(method, params, { capabilities: offered });
      texts.push((await ask(`${app.url}${path}/mcp`, newest.body, { ...newest.headers, ...headers })).text);
    }
    const begun = { protocolVersion: '2025-11-25', capabilities: offered, clientInfo: { name: 'spec', version: '1' } };
    const older = { jsonrpc: '2.0', id: 1, method: 'initialize', params: begun };
    texts.push((await ask(`${app.url}${path}/mcp`, older, headers)).text);
  }
  const as = app.as(bob);
  for (const below of ['', '/.tools', '/.tools/echo', '/.triggers']) texts.push((await as.get(path + below)).text);
  texts.push((await as.post(`${path}/.tools/echo`, { message: 'hi' })).text);
  return texts;
}

/** The link that a tool call of the grantee elicits. */
async function elicited({ path, bob: { key } }: Shared): Promise<string> {
  const { body, headers } = modern('tools/call', echo, { capabilities });
  const answer = await ask(`${app.url}${path}/mcp`, body, { ...headers, authorization: `Bearer ${key}` });
  const [{ params }] = Object.values(answer.body.result.inputRequests) as [Json];
  return params.url as string;
}

/** A person who opened a link at a process, and signed in as an account. */
async function signedIn(at: TestApp, link: string, { key }: TestAccount): Promise<Person> {
  const person = personAt(at);
  const next = new URL((await person.open(link)).url).searchParams.get('next') ?? '';
  const page = await person.press(`${at.env.baseUrl}/login`, undefined, { key, next });
  expect([page.status, /<h1>.*<.h1>/.exec(page.html)?.[0], page.url]).toEqual([200, expect.anything(), link]);
  expect(page.html).toContain('Continue to');
  return person;
}

/** Rights to set up a connection, and their ends. */
const ends: [what: string, isOfGrant: boolean, end: (of: Shared) => Promise<unknown>][] = [
  ['a withdrawn grant', true, ({ path, grantId }) => app.as(alice).delete(`${path}/grants/${grantId}`)],
  ['a lower level', true, ({ path, bob }) => app.as(alice).post(`${path}/grants`, { account: bob.id, level: 'call' })],
  ['a disabled account', false, ({ bob }) => app.as(app.operator).patch(`/accounts/${bob.id}`, { disabled: true })],
  ['a new password', false, ({ bob }) => app.get(PeopleRepository).setPassword(bob.id, 'none', null)],
  [
    'a used invitation',
    false,
    async ({ bob }) => {
      const people = app.get(PeopleRepository);
      await people.addInvitation(bob.id, bob.id, Buffer.from(bob.id));
      expect(await people.useInvitation(Buffer.from(bob.id), bob.id, 'none')).toBe(true);
    },
  ],
];

describe('a guest who may only call', () => {
  for (const protect of [true, false]) {
    verifies('grants:setup', `reads who has to log in, and no link (OAuth: ${protect})`, async () => {
      const of = await shared('call', protect);
      for (const text of await answers(of)) {
        expect(text).toContain(`The owner of this connection, ${alice.name}, has to log in`);
        expect(text).not.toContain('/setup/');
      }
      for (const text of await answers({ ...of, bob: alice })) expect(text).toContain('/setup/connections/');
    });
  }
});

describe('a link for who manages a connection', () => {
  verifies('grants:setup', 'ends with the right to it: page, form and callback, of another process too', async () => {
    const checked = ends.map(async ([what, isOfGrant, end]) => {
      const of = await shared('manage');
      const link = await elicited(of);
      const plain = (await app.as(of.bob).get(of.path)).body.status.setupUrl as string;
      const person = await signedIn(deaf, link, of.bob);
      const callback = await person.press(link, (url) => url.includes('/oauth/callback'));
      expect(callback.url).toContain('code=');
      await end(of);
      await until(async () => (await person.open(link)).status === 410, `${what} ended the link`, END_MS_MAX);
      const later = [await person.press(link), await person.open(callback.url), await person.open(plain)];
      expect([what, ...later.map(({ status }) => status)]).toEqual([what, 410, 410, isOfGrant ? 410 : 200]);
      const { status, body } = await app.as(alice).post(`${of.path}/.tools/echo`, { message: 'hi' });
      expect([what, status, of.tokens]).toEqual([what, 409, []]);
      // The link that the owner gets now works.
      const [own = ''] = /http\S+\/setup\/\S+/.exec(body.message as string) ?? [];
      expect(await personAt(app).open(own)).toMatchObject({ status: 200 });
    });
    await Promise.all(checked);
  });

  verifies('grants:setup', 'ends also where the right was withdrawn while the form was served', async () => {
    const { origin, held } = await slowToRegister();
    const of = await sharedAt('manage', { url: `${origin}/mcp` });
    const link = await elicited(of);
    const person = await signedIn(deaf, link, of.bob);
    const pressed = person.press(link, (next) => next.startsWith(origin));
    await until(() => held.length > 0, 'the client is registered');
    await app.as(alice).delete(`${of.path}/grants/${of.grantId}`);
    for (const answer of held) answer();
    expect(await pressed).toMatchObject({ status: 410, url: link });
  });
});
