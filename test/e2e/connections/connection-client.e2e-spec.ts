import { inspect } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { CredentialsService } from '../../../src/modules/oauth/credentials.service.js';
import { startApp, type TestAccount, type TestApp } from '../../support/app.js';
import {
  startAuthorizationServer,
  type AuthorizationServer,
  type ProtectedUpstream,
} from '../../support/people/authorization-server.js';
import { age, personAt, storedText } from '../../support/people/credentials.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import type { Person, Shown } from '../../support/people/person.js';
import { until } from '../../support/until.js';
import { freePort } from '../../support/upstream/upstream-net.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const ID = 'by-hand';
const SECRET = 'hunter2+and/more=';
const PUBLIC_ID = 'by-hand-without-secret';

let app: TestApp;
let owner: TestAccount;
let upstream: Upstream;
let server: AuthorizationServer;
let guarded: ProtectedUpstream;
let namespace: string;
let person: Person;

beforeAll(async () => {
  const port = String(await freePort());
  [app, upstream] = await Promise.all([startApp({ PORT: port }), startUpstream()]);
  const redirectUri = `${app.env.baseUrl}/oauth/callback`;
  server = await startAuthorizationServer({
    registers: false,
    clients: [
      { clientId: ID, clientSecret: SECRET, redirectUri },
      { clientId: PUBLIC_ID, redirectUri },
    ],
  });
  guarded = await server.protect(upstream.url);
  owner = await app.account();
  namespace = await createNamespace(app, owner);
});

beforeEach(() => {
  person = personAt(app);
});

afterAll(async () => {
  await Promise.all([app.close(), upstream.close(), server.close()]);
});

interface Status {
  state: string;
  reason: string;
  message?: string;
  setupUrl: string;
}

interface Connected {
  path: string;
  connectionId: string;
}

const connect = (mcpUrl = guarded.url): Promise<Connected> => createConnection(app, owner, { mcpUrl }, { namespace });

async function statusOf({ path }: Connected): Promise<Status> {
  return ((await app.as(owner).get(path)).body as { status: Status }).status;
}

async function rowIdOf({ connectionId }: Connected): Promise<string> {
  const [{ id }] = await app.database.query('SELECT id FROM connections WHERE connection_id = $1', [connectionId]);
  return id as string;
}

/** Opens the setup page of a connection and sends its form as a browser does, with these values in it. */
async function give(connection: Connected, values: { id?: string; secret?: string }, issuer?: string): Promise<Shown> {
  const { setupUrl } = await statusOf(connection);
  const { html } = await person.open(setupUrl);
  const [, named = ''] = /name="client\.issuer" value="([^"]*)"/.exec(html) ?? [];
  return person.press(setupUrl, undefined, {
    'client.issuer': issuer ?? named,
    'client.id': values.id ?? '',
    'client.secret': values.secret ?? '',
    'key.header': 'Authorization',
    'key.value': '',
  });
}

async function connected(values = { id: ID, secret: SECRET }): Promise<Connected> {
  const connection = await connect();
  expect(await give(connection, values)).toMatchObject({ status: 200, html: expect.stringContaining('Authorized') });
  expect(await statusOf(connection)).toMatchObject({ state: 'connected' });
  return connection;
}

const echo = ({ path }: Connected) => app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' });

const lastOf = (endpoint: 'token' | 'authorize') => server.seen.findLast((request) => request.endpoint === endpoint);

describe('a connection whose authorization server has no registration', () => {
  verifies('connection:setup:client', 'asks for a client on its page, is authorized as that, and works', async () => {
    const connection = await connect();
    const { setupUrl } = await statusOf(connection);
    const { html } = await person.open(setupUrl);
    expect(html).toContain(`<code>${app.env.baseUrl}/oauth/callback</code>`);
    expect(html).toContain(new URL(server.issuer).host);
    expect(html).toMatch(/<input [^>]*name="client\.id"[^>]* type="text"/);
    expect(html).toMatch(/<input [^>]*name="client\.secret"[^>]* type="password"/);
    expect((await give(connection, { id: ID, secret: SECRET })).html).toContain('Authorized');
    expect(await statusOf(connection)).toMatchObject({ state: 'connected' });
    expect(await echo(connection)).toMatchObject({ status: 200 });
    expect(lastOf('authorize')?.params.get('client_id')).toBe(ID);
    const basic = Buffer.from(`${ID}:${encodeURIComponent(SECRET)}`).toString('base64');
    expect(lastOf('token')?.authorization).toBe(`Basic ${basic}`);
    expect(server.registrations).toBe(0);
  });

  verifies('connection:setup:client', 'takes a client without a secret', async () => {
    const connection = await connected({ id: PUBLIC_ID, secret: '' });
    expect(await echo(connection)).toMatchObject({ status: 200 });
    expect(lastOf('token')?.authorization).toBeUndefined();
  });

  verifies(['connection:setup:client', 'connection:setup:header'], 'takes a token instead, and not both', async () => {
    const connection = await connect();
    const { setupUrl } = await statusOf(connection);
    await person.open(setupUrl);
    const both = {
      'client.id': ID,
      'client.secret': SECRET,
      'key.header': 'Authorization',
      'key.value': 'Bearer mine',
    };
    expect(await person.press(setupUrl, undefined, both)).toMatchObject({
      status: 422,
      html: expect.stringContaining('not both.'),
    });
    await person.press(setupUrl, undefined, { ...both, 'client.id': '', 'client.secret': '' });
    expect(guarded.tokens.at(-1)).toBe('mine');
  });

  verifies(
    'connection:setup:client',
    'shows the error of each entered value, the client ID and no secret',
    async () => {
      const connection = await connect();
      for (const [values, fault] of [
        [{}, 'Nothing was filled in.'],
        [{ secret: SECRET }, 'enter both'],
        [{ id: ID, secret: 's\u00e9cret' }, 'only plain letters'],
      ] as const) {
        const shown = await give(connection, values);
        expect([shown.status, shown.html]).toEqual([422, expect.stringContaining(fault)]);
        expect(shown.html).not.toMatch(/hunter2|s\u00e9cret/);
        if ('id' in values) expect(shown.html).toContain(`value="${values.id}"`);
      }
      expect(
        await app.database.query('SELECT 1 FROM oauth_clients WHERE owner_id = $1', [await rowIdOf(connection)]),
      ).toEqual([]);
    },
  );

  verifies(
    'connection:setup:client',
    'requests a client if its registration is refused, and shows the reason',
    async () => {
      const strict = await startAuthorizationServer({
        clients: [{ clientId: ID, clientSecret: SECRET, redirectUri: `${app.env.baseUrl}/oauth/callback` }],
      });
      strict.refuseRegistration({ error: 'invalid_redirect_uri', error_description: 'not on the list' });
      const connection = await connect((await strict.protect(upstream.url)).url);
      const { setupUrl } = await statusOf(connection);
      await person.open(setupUrl);
      const shown = await person.press(setupUrl);
      expect(shown.html).toContain('invalid_redirect_uri: not on the list');
      expect(shown.html).toContain('name="client.id"');
      expect((await give(connection, { id: ID, secret: SECRET }, strict.issuer)).html).toContain('Authorized');
      expect(await echo(connection)).toMatchObject({ status: 200 });
      await strict.close();
    },
  );
});

describe('a client that was given', () => {
  verifies('connection:setup:client-own', 'is used for its own connection only, and is stored encrypted', async () => {
    const connection = await connected();
    const other = await connect();
    const { setupUrl } = await statusOf(other);
    const shown = await person.open(setupUrl);
    expect(shown.html).not.toContain('A client ID is stored');
    expect((await person.press(setupUrl)).html).toContain('name="client.id"');
    expect(await statusOf(other)).toMatchObject({ state: 'auth_required' });
    const answers = await Promise.all([connection, other].map(({ path }) => app.as(owner).get(path)));
    const texts = [await storedText(app), shown.html, JSON.stringify(answers.map(({ body }) => body as object))];
    expect(texts[0]).toContain(ID);
    for (const text of texts) expect(text).not.toContain(SECRET);
  });

  verifies('connection:setup:client-own', 'is in no log line, when all goes well and when it is refused', async () => {
    const chatty = await app.sibling({
      PORT: String(await freePort()),
      PUBLIC_URL: app.env.baseUrl,
      LOG_LEVEL: 'debug',
    });
    const lines: string[] = [];
    const write = (...words: unknown[]) => void lines.push(inspect(words, { depth: 10, breakLength: Infinity }));
    Logger.overrideLogger({ log: write, error: write, warn: write, debug: write, verbose: write, fatal: write });
    try {
      person = personAt(chatty);
      const connection = await connect();
      expect(await give(connection, { id: ID, secret: `${SECRET}wrong` })).toMatchObject({ status: 502 });
      expect((await give(connection, { id: ID, secret: SECRET })).html).toContain('Authorized');
      const written = lines.join('\n');
      expect(written).toContain('answered 502');
      for (const secret of [SECRET, encodeURIComponent(SECRET)]) expect(written).not.toContain(secret);
    } finally {
      Logger.overrideLogger(false);
      await chatty.close();
    }
  });

  verifies('connection:setup:client-own', 'is not stored for an issuer the page did not name', async () => {
    const connection = await connect();
    const shown = await give(connection, { id: ID, secret: SECRET }, 'https://elsewhere.test');
    expect(shown.html).toContain('name="client.id"');
    expect(shown.html).toContain(`The authorization server is ${server.issuer} now.`);
    const id = await rowIdOf(connection);
    expect(await app.database.query('SELECT 1 FROM oauth_clients WHERE owner_id = $1', [id])).toEqual([]);
  });

  verifies(
    ['connection:setup:client-own', 'oauth:remove'],
    'goes with its connection, after it revoked the token',
    async () => {
      const connection = await connected();
      const id = await rowIdOf(connection);
      const { accessToken } = server.issued.at(-1) ?? {};
      expect((await app.as(owner).delete(connection.path)).status).toBe(200);
      expect(await app.database.query('SELECT 1 FROM oauth_clients WHERE owner_id = $1', [id])).toEqual([]);
      const isRevoked = () =>
        server.seen.some(({ endpoint, params }) => endpoint === 'revoke' && params.get('token') === accessToken);
      await until(isRevoked, 'the authorization server hears of it');
    },
  );

  verifies('connection:setup:client-refused', 'is reported as wrong when rejected, and requested again', async () => {
    const connection = await connect();
    const refused = await give(connection, { id: ID, secret: 'wrong' });
    expect([refused.status, refused.html]).toEqual([502, expect.stringContaining('does not accept the client ID')]);
    const { setupUrl } = await statusOf(connection);
    expect((await person.open(setupUrl)).html).toContain('does not accept the client ID that was entered');
    expect((await give(connection, {})).status).toBe(422);
    expect((await give(connection, { id: ID, secret: SECRET })).html).toContain('Authorized');
    expect(await echo(connection)).toMatchObject({ status: 200 });
  });

  verifies(
    ['connection:setup:client-refused', 'connection:state:refresh-refused'],
    'invalidates the authorization when rejected at a refresh, without a new registration',
    async () => {
      const hand = { clientId: ID, clientSecret: SECRET, redirectUri: `${app.env.baseUrl}/oauth/callback` };
      const strict = await startAuthorizationServer({ registers: false, clients: [hand] });
      const connection = await connect((await strict.protect(upstream.url)).url);
      expect((await give(connection, { id: ID, secret: SECRET })).html).toContain('Authorized');
      const id = await rowIdOf(connection);
      // The client's credentials are sent in a second way too.
      strict.refuseTokens('invalid_client', 2);
      await age(app, { kind: 'connection', id }, 'ended');
      const { cache } = app.get(CredentialsService) as unknown as { cache: { drop(key: string): void } };
      cache.drop(`connection/${id}`);
      expect(await echo(connection)).toMatchObject({ status: 409, body: { error: 'auth_required' } });
      expect(await statusOf(connection)).toMatchObject({
        state: 'auth_required',
        reason: 'authorization_ended',
        message: expect.stringContaining('no longer accepts the client that was given for this (invalid_client)'),
      });
      const { setupUrl } = await statusOf(connection);
      expect((await person.open(setupUrl)).html).toContain('does not accept the client ID that was entered');
      expect(strict.registrations).toBe(0);
      expect((await give(connection, { id: ID, secret: SECRET })).html).toContain('Authorized');
      expect(await echo(connection)).toMatchObject({ status: 200 });
      await strict.close();
    },
  );

  verifies('connection:setup:client', 'need not be given twice, and can be replaced', async () => {
    const connection = await connect();
    await person.open((await statusOf(connection)).setupUrl);
    // Unknown already where the person signs in: that server never sends anybody back.
    expect((await give(connection, { id: 'mistyped', secret: SECRET })).status).toBe(400);
    expect((await give(connection, { id: ID, secret: SECRET })).html).toContain('Authorized');
    await app.database.query(
      `UPDATE upstream_credentials SET state = 'required', sealed_tokens = NULL WHERE owner_id = $1`,
      [await rowIdOf(connection)],
    );
    const { cache } = app.get(CredentialsService) as unknown as { cache: { drop(key: string): void } };
    cache.drop(`connection/${await rowIdOf(connection)}`);
    expect(await echo(connection)).toMatchObject({ status: 409 });
    expect((await person.open((await statusOf(connection)).setupUrl)).html).toContain('A client ID is stored');
    expect((await give(connection, {})).html).toContain('Authorized');
    expect(await echo(connection)).toMatchObject({ status: 200 });
  });
});
