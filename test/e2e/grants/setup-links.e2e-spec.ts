/**
 * Setup links of connections that were granted: they are for the owner and for who manages the connection, and end with
 * that right. What is withdrawn in one process is used in another.
 */
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { PeopleRepository } from '../../../src/modules/people/people.repository.js';
import { startApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { createConnection, createOrganization } from '../../support/factories.js';
import type { Json } from '../../support/mcp/calls.js';
import { ask, modern } from '../../support/mcp/mcp-calls.js';
import { startAuthorizationServer, type AuthorizationServer } from '../../support/people/authorization-server.js';
import { signedInBrowser } from '../../support/people/browser-session.js';
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
async function answers({ path, bob }: Pick<Shared, 'path' | 'bob'>): Promise<string[]> {
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
const ends: [what: string, end: (of: Shared) => Promise<unknown>][] = [
  ['a withdrawn grant', ({ path, grantId }) => app.as(alice).delete(`${path}/grants/${grantId}`)],
  ['a lower level', ({ path, bob }) => app.as(alice).post(`${path}/grants`, { account: bob.id, level: 'call' })],
  ['a disabled account', ({ bob }) => app.as(app.operator).patch(`/accounts/${bob.id}`, { disabled: true })],
  ['a new password', ({ bob }) => app.get(PeopleRepository).setPassword(bob.id, 'none', null)],
  [
    'a used invitation',
    async ({ bob }) => {
      const people = app.get(PeopleRepository);
      await people.addInvitation({ accountId: bob.id }, bob.id, Buffer.from(bob.id));
      expect(await people.useInvitation(Buffer.from(bob.id), bob.id, 'none')).toBe(true);
    },
  ],
];

interface Right {
  reader: TestAccount;
  end: () => unknown;
}

/** Rights to manage a connection of alice's, each with what ends it. */
const rights: [what: string, give: (grant: (terms: object) => Promise<Json>, path: string) => Promise<Right>][] = [
  [
    'a grant that expires',
    async (grant) => {
      const reader = await app.account();
      await grant({ account: reader.id });
      const end = () => grant({ account: reader.id, expiresAt: new Date(Date.now() + 1_000).toISOString() });
      return { reader, end };
    },
  ],
  [
    'a withdrawn grant',
    async (grant, path) => {
      const reader = await app.account();
      const { id } = await grant({ account: reader.id });
      return { reader, end: () => app.as(alice).delete(`${path}/grants/${id}`).expect(200) };
    },
  ],
  [
    'a lower level',
    async (grant) => {
      const reader = await app.account();
      await grant({ account: reader.id });
      return { reader, end: () => grant({ account: reader.id, level: 'call' }) };
    },
  ],
  [
    'a disabled account',
    async (grant) => {
      const reader = await app.account();
      await grant({ account: reader.id });
      const end = () => app.as(app.operator).patch(`/accounts/${reader.id}`, { disabled: true }).expect(200);
      return { reader, end };
    },
  ],
  [
    'a deleted account',
    async (grant) => {
      const reader = await app.account();
      await grant({ account: reader.id });
      return { reader, end: () => app.as(app.operator).delete(`/accounts/${reader.id}`).expect(200) };
    },
  ],
  [
    'an editor who was removed from an organization with a grant',
    async (grant) => {
      const [owner, reader] = await Promise.all([app.account(), app.account()]);
      const organization = await createOrganization(app, { owner, editor: reader });
      await grant({ account: organization.id });
      const end = () => app.as(owner).delete(`/accounts/${organization.id}/members/${reader.id}`).expect(200);
      return { reader, end };
    },
  ],
  [
    'an owner of a deleted organization with a grant',
    async (grant) => {
      const reader = await app.account();
      const organization = await createOrganization(app, { owner: reader });
      await grant({ account: organization.id });
      return { reader, end: () => app.as(app.operator).delete(`/accounts/${organization.id}`).expect(200) };
    },
  ],
  [
    'a new password',
    async (grant) => {
      const reader = await app.account();
      await grant({ account: reader.id });
      return { reader, end: () => app.get(PeopleRepository).setPassword(reader.id, 'none', null) };
    },
  ],
  [
    'a removed password',
    async (grant) => {
      const reader = await app.account();
      await grant({ account: reader.id });
      return { reader, end: () => app.get(PeopleRepository).removePassword({ accountId: reader.id }, reader.id, true) };
    },
  ],
  [
    'a revoked key of the owner',
    async () => {
      const { body } = await app.as(alice).post('/accounts/me/api-keys', { name: 'leaked' }).expect(201);
      const end = () => app.as(alice).delete(`/accounts/me/api-keys/${body.id}?made=true&now=true`).expect(200);
      return { reader: { ...alice, key: body.key as string }, end };
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
    const checked = ends.map(async ([what, end]) => {
      const of = await shared('manage');
      const link = await elicited(of);
      const plain = (await app.as(of.bob).get(of.path)).body.status.setupUrl as string;
      const person = await signedIn(deaf, link, of.bob);
      const callback = await person.press(link, (url) => url.includes('/oauth/callback'));
      expect([what, callback.url, callback.html.replace(/<style.*<.style>/s, '')].join('\n')).toContain('code=');
      await end(of);
      await until(async () => (await person.open(link)).status === 410, `${what} ended the link`, END_MS_MAX);
      const later = [await person.press(link), await person.open(callback.url), await person.open(plain)];
      expect([what, ...later.map(({ status }) => status)]).toEqual([what, 410, 410, 410]);
      const { status, body } = await app.as(alice).post(`${of.path}/.tools/echo`, { message: 'hi' });
      expect([what, status, of.tokens]).toEqual([what, 409, []]);
      // The link that the owner gets now works.
      const [own = ''] = /http\S+\/setup\/\S+/.exec(body.message as string) ?? [];
      expect(await personAt(app).open(own)).toMatchObject({ status: 200 });
    });
    await Promise.all(checked);
  });

  verifies('grants:setup', 'expires even when the right was revoked while the form was served', async () => {
    const { origin, held } = await slowToRegister();
    const of = await sharedAt('manage', { url: `${origin}/mcp` });
    const link = await elicited(of);
    const person = await signedIn(app, link, of.bob);
    const pressed = person.press(link, (next) => next.startsWith(origin));
    await until(() => held.length > 0, 'the client is registered');
    await app.as(alice).delete(`${of.path}/grants/${of.grantId}`);
    for (const answer of held) answer();
    expect(await pressed).toMatchObject({ status: 410, url: link });
  });
});

describe('a link that REST gives', () => {
  for (const [what, give] of rights) {
    verifies('grants:setup', `ends with ${what}: before the page, the form and the callback`, async () => {
      const { url, tokens } = await server.protect(upstream.url);
      const { path } = await createConnection(app, alice, { mcpUrl: url });
      const grant = async (terms: object) => {
        const { status, body } = await app.as(alice).post(`${path}/grants`, { level: 'manage', ...terms });
        expect([200, 201]).toContain(status);
        return body;
      };
      const { reader, end } = await give(grant, path);
      const link = (await app.as(reader).get(path)).body.status.setupUrl as string;
      const [opened, begun] = [personAt(deaf), personAt(deaf)];
      expect((await opened.open(link)).status).toBe(200);
      expect((await begun.open(link)).status).toBe(200);
      const callback = await begun.press(link, (next) => next.includes('/oauth/callback'));
      expect(callback.url).toContain('code=');
      await end();
      await until(async () => (await personAt(deaf).open(link)).status === 410, 'the link ended', END_MS_MAX + 1_000);
      const later = [await opened.press(link), await begun.open(callback.url), await opened.open(link)];
      expect(later.map(({ status }) => status)).toEqual([410, 410, 410]);
      const { status } = await app.as(alice).post(`${path}/.tools/echo`, { message: 'hi' });
      expect([status, tokens]).toEqual([409, []]);
    });
  }

  verifies('grants:setup', 'ends with the session whose page showed it', async () => {
    const { url } = await server.protect(upstream.url);
    const { namespace, connectionId } = await createConnection(app, alice, { mcpUrl: url });
    const browser = await signedInBrowser(app, alice);
    const page = await browser.get(`/ui/c/${namespace}/${connectionId}`);
    const [, shown = ''] = /href="([^"]*setup\/connections\/[^"]+)"/.exec(page.text) ?? [];
    const link = new URL(shown.replaceAll('&amp;', '&'), `${app.env.baseUrl}/ui/c/${namespace}/${connectionId}`).href;
    expect((await personAt(app).open(link)).status).toBe(200);
    await browser.submit('/logout', {}, '/me');
    expect((await personAt(app).open(link)).status).toBe(410);
  });
});

describe('a credential without the right to manage', () => {
  verifies('grants:setup', 'reads no link in any response; one that can manage reads it in all', async () => {
    const { url } = await server.protect(upstream.url);
    const owner = await app.account();
    const { path, namespace } = await createConnection(app, owner, { mcpUrl: url });
    const keyOf = async (...scopes: string[]) => {
      const { body } = await app.as(owner).post('/accounts/me/api-keys', { name: scopes[0], scopes }).expect(201);
      return { ...owner, key: body.key as string };
    };
    const grantee = async (terms: object) => {
      const account = await app.account();
      const { status } = await app.as(owner).post(`${path}/grants`, { account: account.id, ...terms });
      expect(status).toBe(201);
      return account;
    };
    const scopes = ['read', `read:${namespace}`, `call:${namespace}`, `publish:${namespace}`, 'publish'];
    const readers: [who: string, account: TestAccount, isManager: boolean][] = [
      ...(await Promise.all(
        scopes.map(async (scope): Promise<[string, TestAccount, boolean]> => [scope, await keyOf(scope), false]),
      )),
      ['call beside manage elsewhere', await keyOf(`call:${namespace}`, 'manage:elsewhere'), false],
      ['a guest', await grantee({ level: 'call' }), false],
      ['a guest with one tool', await grantee({ level: 'call', tools: { allow: ['echo'] } }), false],
      ['manage', await keyOf(`manage:${namespace}`), true],
      ['a manager', await grantee({ level: 'manage' }), true],
    ];
    for (const [who, account, isManager] of readers) {
      const as = app.as(account);
      const texts = await answers({ path, bob: account });
      const more = [path, `${path}/diagnosis`, '/accounts/me/usable', '/accounts/me/usable?section=granted'];
      const list = `/connect/${namespace}`;
      const got = await Promise.all([...more, list, `${list}/.tools`].map(async (at) => (await as.get(at)).text));
      const [record, , ...usable] = got;
      const { body, headers } = modern('tools/list', {}, { capabilities });
      const all = await ask(`${app.url}${list}/.mcp`, body, { ...headers, authorization: `Bearer ${account.key}` });
      if (!isManager)
        expect([who, [...texts, ...got, all.text].filter((text) => text.includes('/setup/'))]).toEqual([who, []]);
      else {
        for (const text of [...texts, record])
          expect([who, text]).toEqual([who, expect.stringContaining('/setup/connections/')]);
        expect(usable.join('')).toContain('/setup/connections/');
      }
    }
  });
});
