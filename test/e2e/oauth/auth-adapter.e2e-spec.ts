import { beforeAll, describe, expect } from '@jest/globals';
import { CredentialsService } from '../../../src/modules/oauth/credentials.service.js';
import type { CredentialOwner } from '../../../src/modules/oauth/credentials.types.js';
import { startApp, type TestAccount, type TestApp } from '../../support/app.js';
import { age, personAt, storedText } from '../../support/people/credentials.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { bundled } from '../../support/hosting/hosted-programs.js';
import { publishHosted, type HostedServer } from '../../support/hosting/hosted-releases.js';
import type { Person, Shown } from '../../support/people/person.js';
import { longVerifies, verifies } from '../../support/verifies.js';

/**
 * A server that authorizes its users itself. Code that runs here reaches no address of this machine, so its authorization
 * server is in it: a code is the challenge it was asked with, and tokens are counted.
 */
const CALENDAR = `
  import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
  export default function ({ config, accessToken }) {
    const server = new McpServer({ name: 'calendar', version: '1.0.0' });
    server.registerTool('whoami', { description: 'Tells whose calendar it is' }, async () => ({
      content: [{ type: 'text', text: JSON.stringify({ accessToken, config }) }],
    }));
    return server.server;
  }
  async function challengeOf(verifier) {
    const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier)));
    return btoa(String.fromCharCode(...hash)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  }
  export const createAuthAdapter = async () => ({
    getAuthorizationUrl: async ({ callbackUrl, state, codeChallenge, config }) => {
      if (config.team === 'lost') throw new Error('no such team');
      const at = config.team === 'unsafe' ? 'http://id.test/in' : 'https://id.test/in';
      const asked = { redirect_uri: callbackUrl, state, code_challenge: codeChallenge, config: JSON.stringify(config) };
      return { authorizationUrl: at + '?' + new URLSearchParams(asked) };
    },
    exchangeCode: async ({ code, callbackUrl, codeVerifier, config }) => {
      if (code !== (await challengeOf(codeVerifier))) throw new Error('invalid_grant: of another browser');
      return { accessToken: 'access-1-' + config.team, refreshToken: 'refresh-1', expiresIn: 3600 };
    },
    refreshToken: async ({ refreshToken, config }) => {
      const [, count] = refreshToken.split('-');
      if (config.team === 'revoked') throw new Error('answered 400 {"error":"invalid_grant"}');
      if (config.team === 'away') throw new Error('id.test answered 503 to ' + refreshToken);
      const next = Number(count) + 1;
      return { accessToken: 'access-' + next + '-' + config.team, refreshToken: 'refresh-' + next, expiresIn: 3600 };
    },
  });`;

const configSchema = {
  type: 'object',
  properties: { team: { type: 'string' }, days: { type: 'integer', default: 7 } },
  required: ['team'],
};

interface Status {
  state: string;
  reason: string;
  message?: string;
  setupUrl?: string;
}

let app: TestApp;
let owner: TestAccount;
let server: HostedServer;
let namespace: string;

beforeAll(async () => {
  const [started, module] = await Promise.all([startApp(), bundled(CALENDAR)]);
  app = started;
  owner = await app.account();
  namespace = await createNamespace(app, owner);
  server = await publishHosted(app, owner, module, { configSchema, hasAuthAdapter: true });
});

const connect = (team = 'blue') =>
  createConnection(app, owner, { mcpUrl: `${server.url}?team=${team}` }, { namespace });

async function statusOf(path: string): Promise<Status> {
  const { body } = await app.as(owner).get(path);
  return (body as { status: Status }).status;
}

const whoami = (path: string) => app.as(owner).post(`${path}/.tools/whoami`, {});

async function tokenOf(path: string): Promise<string> {
  const { body } = await whoami(path);
  return (JSON.parse(body.content[0].text) as { accessToken: string }).accessToken;
}

/** Opens the page and presses its button; returns what the person is asked at the sign-in. */
async function pressed(path: string): Promise<{ person: Person; shown: Shown; asked: URLSearchParams }> {
  const { setupUrl = '' } = await statusOf(path);
  const person = personAt(app);
  const shown = await person.open(setupUrl);
  const { url } = await person.press(setupUrl, (address) => address.startsWith('https://id.test/'));
  return { person, shown, asked: new URL(url).searchParams };
}

/** Redirect of the authorization server, through the browser. */
function answer(asked: URLSearchParams, code = asked.get('code_challenge') ?? ''): string {
  const query = new URLSearchParams({ code, state: asked.get('state') ?? '', iss: 'https://id.test' });
  return `${asked.get('redirect_uri')}?${query.toString()}`;
}

async function authorized(team?: string): Promise<{ path: string; owner: CredentialOwner }> {
  const { path, connectionId } = await connect(team);
  const { person, asked } = await pressed(path);
  expect((await person.open(answer(asked))).html).toContain('Authorized');
  const [{ id }] = await app.database.query('SELECT id FROM connections WHERE connection_id = $1', [connectionId]);
  return { path, owner: { kind: 'connection', id: id as string } };
}

/** Lets the token be due or ended for the process too, which believes what it read for 5 s. */
async function grow(whose: CredentialOwner, how: 'due' | 'ended'): Promise<void> {
  await age(app, whose, how);
  const { cache } = app.get(CredentialsService) as unknown as { cache: { drop(key: string): void } };
  cache.drop(`connection/${whose.id}`);
}

describe('a connection to a hosted server with an auth adapter', () => {
  verifies(
    'oauth:adapter',
    'requires authorization until a person signed in at the URL of the adapter, and then sends that token',
    async () => {
      const { path, body } = await connect();
      expect(body.status).toMatchObject({
        state: 'auth_required',
        reason: 'unauthorized',
        message: expect.stringContaining(`The server ${server.name} authorizes its users itself`),
        setupUrl: expect.stringMatching(`^${app.env.baseUrl}/setup/connections/`),
      });
      expect(await whoami(path)).toMatchObject({ status: 409, body: { error: 'auth_required' } });

      const { person, shown, asked } = await pressed(path);
      for (const part of ['id.test', server.name]) expect(shown.html).toContain(part);
      expect(Object.fromEntries(asked)).toEqual({
        redirect_uri: `${app.env.baseUrl}/oauth/callback`,
        state: expect.any(String),
        code_challenge: expect.stringMatching(/^[\w-]{43}$/),
        config: '{"team":"blue","days":7}',
      });
      expect((await personAt(app).open(answer(asked))).status).toBe(403);
      const done = await person.open(answer(asked));
      expect([done.status, done.html]).toEqual([200, expect.stringContaining('Authorized')]);

      expect(await statusOf(path)).toMatchObject({ state: 'connected' });
      const called = await whoami(path);
      expect(JSON.parse(called.body.content[0].text)).toEqual({
        accessToken: 'access-1-blue',
        config: { team: 'blue', days: 7 },
      });
      expect((await person.open(answer(asked))).status).toBe(410);
      expect(await storedText(app)).not.toMatch(/access-1|refresh-1/);
    },
  );

  longVerifies(
    'oauth:adapter',
    'keeps the tokens of each connection apart, and gives a later release the same',
    async () => {
      const { path } = await authorized('green');
      const { body } = await connect('green');
      expect(body.status).toMatchObject({ state: 'auth_required' });
      await publishHosted(app, owner, await bundled(CALENDAR), {
        name: server.name,
        configSchema,
        hasAuthAdapter: true,
      });
      expect(await tokenOf(path)).toBe('access-1-green');
    },
  );

  verifies(
    'oauth:adapter-refresh',
    'renews a token that is due once for all calls, with the refresh token it got last',
    async () => {
      const { path, owner: whose } = await authorized();
      for (const count of [2, 3]) {
        await grow(whose, 'due');
        const tokens = await Promise.all([1, 2, 3, 4].map(() => tokenOf(path)));
        expect(tokens).toEqual(Array(4).fill(`access-${count}-blue`));
      }
    },
  );

  verifies('oauth:adapter-refresh', 'requires authorization again when the adapter refuses the grant', async () => {
    const { path, owner: whose } = await authorized('revoked');
    await grow(whose, 'ended');
    expect(await whoami(path)).toMatchObject({ status: 409, body: { error: 'auth_required' } });
    expect(await statusOf(path)).toMatchObject({ state: 'auth_required', reason: 'authorization_ended' });
    const { person, asked } = await pressed(path);
    expect((await person.open(answer(asked))).html).toContain('Authorized');
    expect(await tokenOf(path)).toBe('access-1-revoked');
  });

  longVerifies(
    'oauth:adapter-refresh',
    'keeps a token while the adapter fails, and gives one up that is past its end after ten failures',
    async () => {
      const { path, owner: whose } = await authorized('away');
      await grow(whose, 'due');
      expect(await tokenOf(path)).toBe('access-1-away');
      await grow(whose, 'ended');
      for (let failures = 2; failures <= 10; failures += 1) {
        await app.database.query(`UPDATE upstream_credentials SET retry_at = NULL WHERE owner_id = $1`, [whose.id]);
        const { status, body } = await whoami(path);
        expect([failures, status]).toEqual([failures, failures < 10 ? 502 : 409]);
        expect(JSON.stringify(body)).not.toContain('refresh-1');
      }
      expect(await statusOf(path)).toMatchObject({ state: 'auth_required', reason: 'authorization_ended' });
    },
  );

  verifies('oauth:adapter', 'stores nothing when the adapter refuses the code, and shows that', async () => {
    const { path } = await connect();
    const { person, asked } = await pressed(path);
    const refused = await person.open(answer(asked, 'stolen'));
    expect([refused.status, refused.html]).toEqual([502, expect.stringContaining('invalid_grant')]);
    expect(refused.html).not.toContain('another browser');
    expect(await statusOf(path)).toMatchObject({ state: 'auth_required' });
  });

  verifies(
    'oauth:adapter-run',
    'is named by the run endpoint when it refuses a call; the endpoint lists the tools',
    async () => {
      const { pathname } = new URL(server.url);
      const ask = async (method: string, params: object = {}) => {
        const request = { jsonrpc: '2.0', id: 1, method, params };
        const accept = 'application/json, text/event-stream';
        const { body } = await app.as(owner).post(`${pathname}?team=blue`, request).set('accept', accept);
        return body as object;
      };
      expect(await ask('tools/list')).toMatchObject({ result: { tools: [{ name: 'whoami' }] } });
      const way = `PUT /connect/{namespace}/{connectionId} with {"mcpUrl": "${server.url}"} returns a link`;
      expect(await ask('tools/call', { name: 'whoami' })).toMatchObject({
        result: { isError: true, content: [{ text: expect.stringContaining(way) }] },
      });
      expect(await ask('resources/read', { uri: 'a://b' })).toMatchObject({
        error: { message: expect.stringContaining(way) },
      });
      const { path } = await authorized();
      expect(await tokenOf(path)).toBe('access-1-blue');
    },
  );

  verifies(
    'oauth:adapter',
    'is the only way to the adapter: its path is closed to callers of the run endpoint',
    async () => {
      const { pathname } = new URL(server.url);
      const asked = await app
        .as(owner)
        .post(`${pathname}/__smithery/auth?team=x`, { action: 'refreshToken', payload: { refreshToken: 'refresh-1' } });
      expect([asked.status, JSON.stringify(asked.body)]).toEqual([404, expect.not.stringContaining('access')]);
    },
  );
});
