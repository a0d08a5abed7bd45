/**
 * The owner's choices for the login of a connection: `oauth` with issuer, client and scopes, in place of what the MCP server
 * and its authorization server announce.
 */
import { inspect } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { personAt, storedText } from '../../support/people/credentials.js';
import type { Shown } from '../../support/people/person.js';
import { startQuirky, type QuirkyProvider } from '../../support/people/quirky-provider.js';
import { verifies } from '../../support/verifies.js';

const SECRET = 'hunter2+and/more=';
const BY_HAND = { clientId: 'by-hand', clientSecret: SECRET };

const app = testApp();
const owner = testAccount(app);
const manager = testAccount(app);
let provider: QuirkyProvider;
let other: QuirkyProvider;

beforeAll(async () => {
  [provider, other] = await Promise.all([startQuirky(), startQuirky()]);
});
afterAll(() => Promise.all([provider.close(), other.close()]));
beforeEach(async () => {
  await app.database.query('DELETE FROM oauth_clients');
  for (const one of [provider, other]) {
    one.quirk = () => undefined;
    one.seen.length = 0;
  }
});

const connect = (oauth?: object) => createConnection(app, owner, { mcpUrl: provider.mcpUrl, ...(oauth && { oauth }) });

/** Opens the setup page and presses its button: the page before, and the page at the end. */
async function logIn(path: string): Promise<{ before: Shown; after: Shown }> {
  const { setupUrl } = (await app.as(owner).get(path)).body.status;
  const person = personAt(app);
  const before = await person.open(setupUrl);
  return { before, after: await person.press(setupUrl) };
}

async function loggedIn(path: string): Promise<string> {
  const { before, after } = await logIn(path);
  expect(after.html).toContain('Authorized');
  expect((await app.as(owner).post(`${path}/.tools/run`, {})).status).toBe(200);
  return before.html;
}

describe('the owner of a connection', () => {
  verifies('connection:oauth-choice', 'chooses the issuer, whatever the metadata announce', async () => {
    // Metadata that no login can be begun with: another resource, another issuer, no authorization server at all.
    const faults = [{ resource: 'https://elsewhere.example/mcp' }, { authorization_servers: ['https://127.0.0.1:1'] }];
    for (const fault of faults) {
      provider.quirk = ({ endpoint }, answer) =>
        endpoint === 'resource' ? { ...answer, body: { ...(answer.body as object), ...fault } } : undefined;
      const { path } = await connect();
      expect((await logIn(path)).after.html).not.toContain('Authorized');
      const { body } = await app.as(owner).put(path, { oauth: { issuer: other.origin } });
      expect(body).toMatchObject({ oauth: { issuer: other.origin }, status: { state: 'auth_required' } });
      expect(await loggedIn(path)).toContain(`<code>${other.origin}</code>`);
      expect(other.of('token').at(-1)?.params.get('resource')).toBe(provider.mcpUrl);
    }
  });

  verifies(
    'connection:oauth-choice',
    'may choose an issuer whose document names another one, as which it answers',
    async () => {
      const named = 'https://tenant.example/{tenantid}';
      let iss = named;
      provider.quirk = ({ endpoint, params }, answer) => {
        if (endpoint === 'authorize') {
          const answered = new URLSearchParams({ code: 'c', state: params.get('state') ?? '', iss });
          return { ...answer, headers: { location: `${params.get('redirect_uri')}?${answered.toString()}` } };
        }
        const members = { issuer: named, authorization_response_iss_parameter_supported: true };
        return endpoint === 'server' ? { ...answer, body: { ...(answer.body as object), ...members } } : undefined;
      };
      const { path } = await connect();
      expect((await logIn(path)).before.html).toContain('the two must be spelled alike');
      await app.as(owner).put(path, { oauth: { issuer: provider.origin } });
      await loggedIn(path);
      // A client of the issuer that it claims to be is not taken.
      const clients = await app.database.query('SELECT issuer FROM oauth_clients');
      expect(clients).toEqual([{ issuer: provider.origin }]);
      iss = provider.origin;
      const second = await connect({ issuer: provider.origin });
      expect((await logIn(second.path)).after.html).toContain('not from the server');
    },
  );

  verifies('connection:oauth-choice', 'gives the client, and nobody is asked for one', async () => {
    provider.quirk = ({ endpoint }, answer) =>
      endpoint === 'server'
        ? { ...answer, body: { ...(answer.body as object), registration_endpoint: null } }
        : undefined;
    const { path } = await connect();
    expect((await logIn(path)).before.html).toContain('client.id');
    await app.as(owner).put(path, { oauth: BY_HAND });
    const page = await loggedIn(path);
    expect(page).toContain('<code>by-hand</code>');
    expect(page).not.toContain('client.id');
    const basic = Buffer.from(`by-hand:${encodeURIComponent(SECRET)}`).toString('base64');
    expect(provider.of('token').at(-1)?.headers.authorization).toBe(`Basic ${basic}`);
    expect(provider.of('authorize').at(-1)?.params.get('client_id')).toBe('by-hand');
    // The same client without a secret keeps it; a public one has none.
    await app.as(owner).put(path, { oauth: { clientId: 'by-hand', scopes: ['a'] } });
    await app.database.query('UPDATE upstream_credentials SET due_at = now(), expires_at = now()');
    await app.as(owner).put(path, { oauth: { clientId: 'by-hand', scopes: ['b'] } });
    expect(provider.of('token').at(-1)?.headers.authorization).toBe(`Basic ${basic}`);
    const open = await connect({ clientId: 'public' });
    await loggedIn(open.path);
    expect(provider.of('token').at(-1)?.params.get('client_id')).toBe('public');
    expect(provider.of('register')).toEqual([]);
  });

  verifies('connection:oauth-choice', 'changes the client secret, with which the login goes on', async () => {
    const { path } = await connect(BY_HAND);
    await loggedIn(path);
    provider.quirk = ({ endpoint, headers }) =>
      endpoint === 'token' &&
      !Buffer.from(headers.authorization?.slice(6) ?? '', 'base64')
        .toString()
        .endsWith(':new')
        ? { status: 401, body: { error: 'invalid_client' } }
        : undefined;
    await app.as(owner).put(path, { oauth: { clientId: 'by-hand', clientSecret: 'wrong' } });
    expect((await logInAgain(path)).html).toContain('only the owner can correct them');
    await app.as(owner).put(path, { oauth: { clientId: 'by-hand', clientSecret: 'new' } });
    expect((await logInAgain(path)).html).toContain('Authorized');
  });

  verifies(
    'connection:oauth-choice',
    'keeps the client from another server than the first, unless it is named',
    async () => {
      const { path } = await connect(BY_HAND);
      await loggedIn(path);
      provider.quirk = ({ endpoint }, answer) => {
        if (endpoint === 'mcp') return { ...answer, status: 401, body: {} };
        const members = { authorization_servers: [other.origin] };
        return endpoint === 'resource' ? { ...answer, body: { ...(answer.body as object), ...members } } : undefined;
      };
      await app.as(owner).put(path, { headers: { 'x-any': '1' } });
      expect((await logIn(path)).after.html).toContain(`its authorization server is ${other.origin} now`);
      expect(other.of('token')).toEqual([]);
      await app.as(owner).put(path, { oauth: { issuer: other.origin, ...BY_HAND } });
      provider.quirk = () => undefined;
      expect((await logInAgain(path)).html).toContain('Authorized');
      expect(other.of('token')).toHaveLength(1);
    },
  );

  verifies('connection:oauth-choice', 'chooses the scopes, and takes all back with null', async () => {
    const { path } = await connect({ scopes: ['mail.read', 'offline'] });
    expect(await loggedIn(path)).toContain('<code>mail.read</code>');
    expect(provider.of('authorize').at(-1)?.params.get('scope')).toBe('mail.read offline');
    const revision = async () => {
      const rows = await app.database.query('SELECT revision FROM connections WHERE connection_id = $1', [
        path.split('/').at(-1),
      ]);
      return rows[0].revision as number;
    };
    const before = await revision();
    await app.as(owner).put(path, { oauth: { scopes: ['mail.read', 'offline'] } });
    expect(await revision()).toBe(before);
    expect((await app.as(owner).put(path, { oauth: null })).body).not.toHaveProperty('oauth');
    expect(await revision()).toBe(before + 1);
    expect((await logInAgain(path)).html).toContain('Authorized');
    expect(provider.of('authorize').at(-1)?.params.get('scope')).toBe('read');
    for (const oauth of [{ clientSecret: 'x' }, { scopes: [] }, { scopes: ['a b'] }, { issuer: 'x' }, { x: 1 }, 'x']) {
      expect([oauth, (await app.as(owner).put(path, { oauth })).status]).toEqual([oauth, 400]);
    }
  });

  verifies('connection:oauth-choice:owner', 'alone may: a grant to manage does not suffice', async () => {
    const { path } = await connect(BY_HAND);
    await app.as(owner).post(`${path}/grants`, { account: manager.id, level: 'manage' });
    expect((await app.as(manager).put(path, { name: 'theirs' })).status).toBe(200);
    for (const oauth of [{ issuer: other.origin }, null]) {
      expect((await app.as(manager).put(path, { oauth })).status).toBe(403);
    }
    expect((await app.as(owner).get(path)).body.oauth).toEqual({ clientId: 'by-hand' });
  });

  verifies('connection:oauth-choice:secret', 'reads the secret nowhere', async () => {
    const lines: unknown[] = [];
    const { path, body } = await connect(BY_HAND);
    const logged = (['log', 'warn', 'error', 'debug'] as const).map((level) => {
      const before = Logger.prototype[level];
      Logger.prototype[level] = function (this: Logger, ...args: unknown[]) {
        lines.push(args);
        return Reflect.apply(before, this, args) as void;
      };
      return () => (Logger.prototype[level] = before);
    });
    const page = await loggedIn(path);
    provider.quirk = ({ endpoint }) =>
      endpoint === 'token' ? { status: 401, body: { error: 'invalid_client' } } : undefined;
    const { html } = await logInAgain(path);
    for (const restore of logged) restore();
    const [row] = await app.database.query('SELECT c::text AS text FROM connections c WHERE connection_id = $1', [
      path.split('/').at(-1),
    ]);
    const shown = [body, (await app.as(owner).get(path)).body, (await app.as(owner).get(`${path}/diagnosis`)).body];
    const all = inspect([...shown, lines, page, html, row, await storedText(app)], { depth: 9, maxStringLength: null });
    expect(all).toContain('by-hand');
    for (const secret of [SECRET, encodeURIComponent(SECRET)]) expect(all).not.toContain(secret);
  });
});

/** {@link logIn} at the end of an authorization that stands. */
async function logInAgain(path: string): Promise<Shown> {
  // Observations of calls are written first.
  await app.as(owner).get(path);
  await app.database.query(
    `UPDATE connections SET status_state = 'auth_required', status_reason = 'unauthorized' WHERE connection_id = $1`,
    [path.split('/').at(-1)],
  );
  return (await logIn(path)).after;
}
