/*
 * How a login goes on and how it ends: refresh tokens with their grace and their replay, everything that ends a login, and the
 * consent that is remembered. Times pass by changes of `grace_until` in the database.
 */
import { Readable } from 'node:stream';
import { afterEach, beforeAll, beforeEach, describe, expect, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';

import { DocumentEgress } from '../../../src/modules/authorization-server/client-documents.js';
import type { Egress } from '../../../src/platform/egress/egress.js';
import { testAccount, testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { pathOf, serverIdOf } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { LoginClient } from '../../support/oauth-clients/login.js';
import { signedInBrowser, type BrowserSession } from '../../support/people/browser-session.js';
import { setCurrent, type SeededServer } from '../../support/releases/current-releases.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

/** The longest time in which a login, or what it holds open, may outlive its end. */
const END_MS_MAX = 5_000;
const REDIRECT = 'https://app.example/callback';
const DOCUMENT = 'https://client.example/oauth/client.json';

const app = testApp();
/** A process that receives no message of the others: it listens on another channel. */
let deaf: TestApp;
const person = testAccount(app);
const friend = testAccount(app);
let browser: BrowserSession;
let upstream: Upstream;
let namespace: string;
/** The redirect URIs of the client with a document. */
let documentRedirects = [REDIRECT, 'http://127.0.0.1/callback'];

beforeAll(async () => {
  upstream = await startUpstream();
  deaf = await app.sibling({ QUEUE_PREFIX: uniqueName('deaf') });
  namespace = await createNamespace(app, person);
  browser = await signedInBrowser(app, person);
});

/** A new connection of the person's, as a client that logs in to it. */
async function clientOf(redirectUri = REDIRECT, of: TestAccount = person, inside?: string): Promise<LoginClient> {
  const options = { namespace: inside ?? (of === person ? namespace : undefined) };
  const { path } = await createConnection(app, of, { mcpUrl: upstream.url }, options);
  return new LoginClient(app, `${app.url}${path}/mcp`, redirectUri);
}

/** A server of the person's. */
async function newServer(): Promise<SeededServer> {
  const name = await createServer(app, person, { namespace });
  return setCurrent(app, name, { upstreamUrl: upstream.url });
}

/** Status of a call of an MCP endpoint at a process. */
async function call(of: TestApp, url: string, token: string): Promise<number> {
  const response = await fetch(of.url + new URL(url).pathname, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token}`,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  });
  await response.text();
  return response.status;
}

/** Lets 60 s pass for every used refresh token of a client. @returns how many have been replaced */
async function passGrace(client: LoginClient): Promise<number> {
  const [, changed] = await app.database.query<[unknown, number]>(
    `UPDATE as_records SET grace_until = now() WHERE grace_until <= now() + interval '60 s'
        AND grant_id IN (SELECT id FROM as_grants WHERE client_id = $1)`,
    [client.id],
  );
  return changed;
}

async function grantsOf(client: LoginClient): Promise<string[]> {
  const rows = await app.database.query<{ id: string }[]>('SELECT id FROM as_grants WHERE client_id = $1', [client.id]);
  return rows.map(({ id }) => id);
}

const invalidGrant = { status: 400, body: { error: 'invalid_grant' } };

describe('a refresh token', () => {
  let warn: jest.Spied<Logger['warn']>;
  beforeEach(() => {
    warn = jest.spyOn(Logger.prototype, 'warn');
  });
  afterEach(() => warn.mockRestore());
  const warnings = () =>
    warn.mock.calls.map(([line]) => JSON.stringify(line)).filter((line) => line.includes('a refresh token'));

  verifies('login:grace', 'works until its successor was used, however often and late, and 60 s more', async () => {
    const client = await clientOf();
    const first = await client.login(browser);
    const second = await client.refresh(first.refresh_token);
    expect(await passGrace(client)).toBe(0);
    for (let i = 0; i < 3; i += 1) expect((await client.refresh(first.refresh_token)).status).toBe(200);
    const third = await client.refresh(second.body.refresh_token);
    expect(third.body.refresh_token).not.toBe(second.body.refresh_token);
    expect((await client.refresh(first.refresh_token)).status).toBe(200);
    expect(warnings()).toEqual([]);
    for (const { access_token: token } of [first, second.body, third.body]) {
      expect(await call(app, client.resource, token)).toBe(200);
    }
  });

  verifies('login:replay', 'revokes its login when it is used after that, and a warning reports it', async () => {
    const client = await clientOf();
    const first = await client.login(browser);
    const second = await client.refresh(first.refresh_token);
    const third = await client.refresh(second.body.refresh_token);
    expect(await passGrace(client)).toBe(1);
    expect(await client.refresh(first.refresh_token)).toMatchObject(invalidGrant);
    expect(await client.refresh(third.body.refresh_token)).toMatchObject(invalidGrant);
    expect(await call(app, client.resource, third.body.access_token)).toBe(401);
    expect(await grantsOf(client)).toEqual([]);
    expect(warnings()).toEqual([expect.stringContaining('was used again after its successor')]);
    expect(warnings()[0]).toContain(client.id);
  });

  verifies(
    'login:branches',
    'has one successor when used repeatedly, and does not survive the use of that successor',
    async () => {
      const client = await clientOf();
      const first = await client.login(browser);
      const [one, two] = await Promise.all([client.refresh(first.refresh_token), client.refresh(first.refresh_token)]);
      expect(one.body).toEqual(two.body);
      expect((await client.refresh(one.body.refresh_token)).status).toBe(200);
      expect(await passGrace(client)).toBe(1);
      expect(await client.refresh(first.refresh_token)).toMatchObject(invalidGrant);
      expect(await grantsOf(client)).toEqual([]);
    },
  );

  verifies('login:replay', 'revokes its login long after its row was deleted', async () => {
    const client = await clientOf();
    let newest = await client.login(browser);
    const { refresh_token: stolen } = newest;
    for (let i = 0; i < 8; i += 1) newest = (await client.refresh(newest.refresh_token)).body;
    const [{ count }] = await app.database.query<[{ count: number }]>(
      'SELECT count(*)::int FROM as_records WHERE grant_id = ANY($1)',
      [await grantsOf(client)],
    );
    expect(count).toBeLessThanOrEqual(6);
    expect(await client.refresh(`${stolen.slice(0, -3)}AAA`)).toMatchObject(invalidGrant);
    expect(await call(app, client.resource, newest.access_token)).toBe(200);
    await passGrace(client);
    expect(await client.refresh(stolen)).toMatchObject(invalidGrant);
    expect(await grantsOf(client)).toEqual([]);
    expect(await call(app, client.resource, newest.access_token)).toBe(401);
  });

  verifies('login:two-logins', 'remains valid alongside those of another login of the same client', async () => {
    const client = await clientOf();
    const first = await client.login(browser);
    let one = (await client.refresh(first.refresh_token)).body;
    const { refresh_token: other } = await client.login(browser);
    for (let i = 0; i < 3; i += 1) one = (await client.refresh(one.refresh_token)).body;
    await passGrace(client);
    const two = await client.refresh(other);
    expect(two.status).toBe(200);
    expect((await client.refresh(one.refresh_token)).status).toBe(200);
    expect((await client.refresh(two.body.refresh_token)).status).toBe(200);
    expect(await grantsOf(client)).toHaveLength(2);
    await client.revoke(one.refresh_token);
    expect(await call(app, client.resource, two.body.access_token)).toBe(200);
  });

  verifies('login:two-connectors', 'revokes the login of its connector, not that of the other connector', async () => {
    const [one, two] = [await clientOf(), await clientOf()];
    const first = await one.login(browser);
    two.id = one.id;
    const other = await two.login(browser);
    expect(await grantsOf(one)).toHaveLength(2);
    const second = await one.refresh(first.refresh_token);
    await one.refresh(second.body.refresh_token);
    await passGrace(one);
    expect(await one.refresh(first.refresh_token)).toMatchObject(invalidGrant);
    expect(await call(app, one.resource, second.body.access_token)).toBe(401);
    expect(await call(app, two.resource, other.access_token)).toBe(200);
    expect((await two.refresh(other.refresh_token)).status).toBe(200);
  });

  verifies('login:grace', 'is of its client, whose secret it needs', async () => {
    const client = await clientOf();
    await client.register({ token_endpoint_auth_method: 'client_secret_post' });
    const { refresh_token: token } = await client.login(browser);
    const foreign = await clientOf();
    await foreign.register();
    expect(await foreign.refresh(token)).toMatchObject(invalidGrant);
    for (const client_secret of [undefined, 'wrong']) {
      expect(await client.refresh(token, { client_secret })).toMatchObject({
        status: 401,
        body: { error: 'invalid_client' },
      });
    }
    expect((await client.refresh(token)).status).toBe(200);
  });
});

/** A login with everything that must end with it. */
interface Ending {
  client: LoginClient;
  /** Who logs in. */
  who: TestAccount;
  end(token: { access_token: string; refresh_token: string }, of: BrowserSession): Promise<unknown>;
}

/** A stream of the endpoint that is open. */
interface Opened {
  isOpen: boolean;
  leave(): void;
}

async function open(of: TestApp, url: string, token: string): Promise<Opened> {
  const leaving = new AbortController();
  const response = await fetch(of.url + new URL(url).pathname, {
    headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream' },
    signal: leaving.signal,
  });
  expect(response.status).toBe(200);
  const opened = { isOpen: true, leave: () => leaving.abort() };
  const read = async () => {
    for await (const chunk of response.body as ReadableStream<Uint8Array>) void chunk;
  };
  const ended = () => Object.assign(opened, { isOpen: false });
  void read().then(ended, ended);
  return opened;
}

async function done(request: PromiseLike<{ status: number }>): Promise<void> {
  expect([200, 201, 204, 303]).toContain((await request).status);
}

const endings: Record<string, () => Promise<Ending>> = {
  'the revocation of its refresh token': async () => {
    const client = await clientOf();
    return { client, who: person, end: ({ refresh_token: token }) => client.revoke(token) };
  },
  'the revocation of its access token': async () => {
    const client = await clientOf();
    return { client, who: person, end: ({ access_token: token }) => client.revoke(token) };
  },
  '/me/access': async () => {
    const client = await clientOf();
    const end = async (_token: unknown, of: BrowserSession) => {
      const [grant = ''] = await grantsOf(client);
      expect((await of.get('/me/access')).text).toContain(grant);
      await done(of.submit('/me/access', { grant }));
    };
    return { client, who: person, end };
  },
  'the deletion of the connection': async () => {
    const client = await clientOf();
    const end = () => done(app.as(person).delete(new URL(client.resource).pathname.replace(/\/mcp$/, '')));
    return { client, who: person, end };
  },
  'the deletion of the namespace': async () => {
    const own = await createNamespace(app, person);
    const { path } = await createConnection(app, person, { mcpUrl: upstream.url }, { namespace: own });
    const client = new LoginClient(app, `${app.url}/connect/${own}/.mcp`, REDIRECT);
    const end = async () => {
      await done(app.as(person).delete(path));
      await done(app.as(person).delete(`/namespaces/${own}`));
    };
    return { client, who: person, end };
  },
  'the deletion of the server': async () => {
    const { slug, name } = await newServer();
    const client = new LoginClient(app, `${app.url}/run/${slug}`, REDIRECT);
    return { client, who: person, end: () => done(app.as(person).delete(pathOf(name))) };
  },
  'the end of the account': async () => {
    const who = await app.account();
    const client = await clientOf(REDIRECT, who);
    const end = () => done(app.as(app.operator).patch(`/accounts/${who.id}`, { disabled: true }));
    return { client, who, end };
  },
  'the end of what the owner granted the person': async () => {
    const client = await clientOf();
    const path = new URL(client.resource).pathname.replace(/\/mcp$/, '');
    const { body } = await app.as(person).post(`${path}/grants`, { account: friend.id, level: 'call' });
    const end = () => done(app.as(person).delete(`${path}/grants/${(body as { id: string }).id}`));
    return { client, who: friend, end };
  },
  'a server that becomes private': async () => {
    const { slug, name } = await newServer();
    const client = new LoginClient(app, `${app.url}/run/${slug}`, REDIRECT);
    return { client, who: friend, end: () => done(app.as(person).patch(pathOf(name), { visibility: 'private' })) };
  },
};

describe('a login', () => {
  verifies(
    'login:ends',
    'is revoked by each listed event within 5 s, with its streams, even in a process that no message reaches',
    async () => {
      const logins = await Promise.all(
        Object.entries(endings).map(async ([name, make]) => {
          const { client, who, end } = await make();
          const of = await signedInBrowser(app, who);
          const tokens = await client.login(of);
          const { access_token: token } = tokens;
          for (const each of [app, deaf]) expect([name, await call(each, client.resource, token)]).toEqual([name, 200]);
          const streams = [await open(app, client.resource, token), await open(deaf, client.resource, token)];
          return { name, client, tokens, streams, end: () => end(tokens, of) };
        }),
      );
      const control = await clientOf();
      const { access_token: kept } = await control.login(browser);
      const controls = [await open(app, control.resource, kept), await open(deaf, control.resource, kept)];
      expect(logins.flatMap(({ streams }) => streams.map(({ isOpen }) => isOpen))).not.toContain(false);
      await Promise.all(
        logins.map(async ({ name, client, tokens, streams, end }) => {
          await end();
          for (const each of [app, deaf]) {
            const isRefused = async () =>
              [401, 403, 404].includes(await call(each, client.resource, tokens.access_token));
            await until(isRefused, `a login ends by ${name}`, END_MS_MAX);
          }
          await until(
            () => streams.every(({ isOpen }) => !isOpen),
            `the streams of a login end by ${name}`,
            END_MS_MAX,
          );
        }),
      );
      expect(controls.map(({ isOpen }) => isOpen)).toEqual([true, true]);
      controls.forEach(({ leave }) => leave());
    },
    60_000,
  );

  verifies('login:revoke', 'is revoked at /me/access by its own user only', async () => {
    const client = await clientOf();
    const { access_token: token } = await client.login(browser);
    const [grant = ''] = await grantsOf(client);
    const foreign = await signedInBrowser(app, friend);
    expect((await foreign.get('/me/access')).text).not.toContain(grant);
    for (const value of [grant, 'nonsense', '', `${grant}' OR true --`]) {
      expect((await foreign.submit('/me/access', { grant: value })).status).toBe(303);
    }
    expect((await foreign.post('/me/access', { grant })).status).toBe(403);
    expect((await browser.post('/me/access', { grant })).status).toBe(403);
    expect(await call(app, client.resource, token)).toBe(200);
    expect(await grantsOf(client)).toEqual([grant]);
  });

  verifies(
    'login:renamed',
    'opens its server under the new slug, and not the server that takes the old one',
    async () => {
      const [server, taker] = [await newServer(), await newServer()];
      const client = new LoginClient(app, `${app.url}/run/${server.slug}`, REDIRECT);
      const tokens = await client.login(browser);
      const moved = uniqueName('moved');
      await app.database.query('UPDATE servers SET slug = $2 WHERE id = $1', [server.serverId, moved]);
      await app.database.query('UPDATE servers SET slug = $2 WHERE id = $1', [taker.serverId, server.slug]);
      const old = async (token: string) => (await call(app, client.resource, token)) === 401;
      await until(() => old(tokens.access_token), 'the token does not open the old slug', END_MS_MAX);
      expect(await call(app, `${app.url}/run/${moved}`, tokens.access_token)).toBe(200);
      const { body } = await client.refresh(tokens.refresh_token);
      expect(await call(app, client.resource, body.access_token)).toBe(401);
      expect(await call(app, `${app.url}/run/${moved}`, body.access_token)).toBe(200);
    },
  );

  verifies('login:ends', 'ends by a foreign revocation, a foreign sign-out and a new login never', async () => {
    const client = await clientOf();
    const { access_token: token, refresh_token: refresh } = await client.login(browser);
    const foreign = await clientOf();
    await foreign.register();
    await foreign.revoke(refresh);
    const second = await signedInBrowser(app, person);
    await second.submit('/logout', {}, '/me');
    await client.login(browser);
    expect(await call(app, client.resource, token)).toBe(200);
    expect((await client.refresh(refresh)).status).toBe(200);
  });
});

describe('a remembered consent', () => {
  const remember = { answer: 'allow', remember: 'yes' };

  beforeAll(() => {
    for (const each of [app, deaf]) {
      const egress = each.get(DocumentEgress);
      const request = egress.request.bind(egress);
      egress.request = (url, options) => {
        if (url.href !== DOCUMENT) return request(url, options);
        const document = { client_id: DOCUMENT, client_name: 'Client', redirect_uris: documentRedirects };
        const body = Readable.from([Buffer.from(JSON.stringify({ ...document, token_endpoint_auth_method: 'none' }))]);
        const answer = { statusCode: 200, headers: {}, body };
        return Promise.resolve(answer as unknown as Awaited<ReturnType<Egress['request']>>);
      };
    }
  });

  /** The resource of a client under the address of another process. */
  const at = (of: TestApp, { resource }: LoginClient) => of.url + new URL(resource).pathname;

  /** True if an authorization shows the page. */
  async function asks(client: LoginClient, changes: Record<string, string> = {}, of = browser): Promise<boolean> {
    const begun = await of.get(client.authorizePath(changes));
    expect(begun.headers.location).toMatch(/^\/consent\//);
    const shown = await of.get(new URL(String(begun.headers.location), app.url).pathname);
    expect([200, 303]).toContain(shown.status);
    return shown.status === 200;
  }

  verifies('login:remembered', 'counts for one client, address, endpoint and person, in every process', async () => {
    const client = await clientOf();
    await client.login(browser, remember);
    expect(await asks(client)).toBe(false);
    expect(await asks(client, { resource: at(deaf, client) }, browser.at(deaf))).toBe(false);
    const back = await client.authorize(browser);
    expect((await client.redeem(back.searchParams.get('code') ?? '')).status).toBe(200);
    expect(await asks(client, { resource: (await clientOf()).resource })).toBe(true);
    const other = await clientOf();
    await other.register();
    expect(await asks(other, { resource: client.resource })).toBe(true);
    const path = new URL(client.resource).pathname.replace(/\/mcp$/, '');
    await done(app.as(person).post(`${path}/grants`, { account: friend.id, level: 'call' }));
    expect(await asks(client, {}, await signedInBrowser(app, friend))).toBe(true);
  });

  verifies('login:remembered', 'is never used where the client asks for a decision', async () => {
    const client = await clientOf();
    await client.login(browser, remember);
    for (const prompt of ['consent', 'login', 'select_account', 'login consent']) {
      expect([prompt, await asks(client, { prompt })]).toEqual([prompt, true]);
    }
    expect(await asks(client)).toBe(false);
  });

  verifies('login:remembered', 'is offered and stored for https addresses alone', async () => {
    for (const redirect of [
      'http://127.0.0.1:4000/callback',
      'http://localhost:4000/callback',
      'cursor://app/callback',
    ]) {
      const client = await clientOf(redirect);
      await client.login(browser, remember);
      expect([redirect, await asks(client)]).toEqual([redirect, true]);
      const begun = await browser.get(client.authorizePath());
      expect((await browser.get(String(begun.headers.location))).text).not.toContain('name="remember"');
    }
  });

  verifies('login:remembered', 'ends when the document of the client names other addresses', async () => {
    const client = await clientOf();
    client.id = DOCUMENT;
    await client.login(browser, remember);
    expect(await asks(client)).toBe(false);
    documentRedirects = [REDIRECT, 'https://evil.example/callback'];
    expect(await asks(client, { resource: at(deaf, client) }, browser.at(deaf))).toBe(true);
  });

  verifies(
    'login:remembered',
    'is revoked with the login at /me/access, and for users without access to the endpoint',
    async () => {
      const client = await clientOf();
      await client.login(browser, remember);
      const [grant = ''] = await grantsOf(client);
      await done(browser.submit('/me/access', { grant }));
      expect(await asks(client)).toBe(true);
      const { slug, name } = await newServer();
      const visitor = await signedInBrowser(app, friend);
      const other = new LoginClient(app, `${app.url}/run/${slug}`, REDIRECT);
      await other.login(visitor, remember);
      expect(await asks(other, {}, visitor)).toBe(false);
      await done(app.as(person).patch(pathOf(name), { visibility: 'private' }));
      expect(await serverIdOf(app, name)).not.toBe('');
      expect(await asks(other, {}, visitor)).toBe(true);
    },
  );
});
