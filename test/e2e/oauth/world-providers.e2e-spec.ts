/**
 * Quirks of public authorization servers, from reports about other clients: each must let a person log in, and keep the login.
 * One app, one provider; the seed of generated rows is in the title.
 */
import { afterAll, beforeAll, beforeEach, describe, expect } from '@jest/globals';
import fc from 'fast-check';
import { registerAt } from '../../../src/mcp/oauth/client.js';
import { discoverTarget } from '../../../src/mcp/oauth/discovery.js';
import { CredentialsService } from '../../../src/modules/oauth/credentials.service.js';
import type { CredentialOwner } from '../../../src/modules/oauth/credentials.types.js';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { send } from '../../support/mcp/calls.js';
import { age, authorize, beginSetup, newOwner, personAt } from '../../support/people/credentials.js';
import {
  startQuirky,
  type Quirk,
  type QuirkyEndpoint,
  type QuirkyProvider,
} from '../../support/people/quirky-provider.js';
import { verifies } from '../../support/verifies.js';
import { testSeed } from '../../support/seed.mjs';

const app = testApp();
const account = testAccount(app);
let provider: QuirkyProvider;

beforeAll(async () => void (provider = await startQuirky()));
afterAll(() => provider.close());
beforeEach(() => {
  provider.quirk = () => undefined;
  provider.seen.length = 0;
});

/** Overrides members of one document. */
function withMembers(at: QuirkyEndpoint, members: object | ((document: object) => object)): Quirk {
  return ({ endpoint }, answer) => {
    if (endpoint !== at) return undefined;
    const body = answer.body as object;
    return { ...answer, body: typeof members === 'function' ? members(body) : { ...body, ...members } };
  };
}

const discover = (challenge: string[] = []) =>
  discoverTarget(fetch, {
    upstreamUrl: provider.mcpUrl,
    challenge,
    knownAmong: async () => new Set(),
    pkceUnannounced: null,
  });

/** Forgets what was discovered and the tokens that are cached, as a process that starts. */
async function refreshed(owner: CredentialOwner, how: 'due' | 'ended' = 'ended'): Promise<string | null> {
  await age(app, owner, how);
  (app.get(CredentialsService) as unknown as { cache: { drop(key: string): void } }).cache.drop(
    `${owner.kind}/${owner.id}`,
  );
  return app.get(CredentialsService).accessToken(owner, provider.mcpUrl);
}

/** A new owner who has logged in under the quirk. */
async function loggedIn(quirk: Quirk = () => undefined): Promise<CredentialOwner> {
  await app.database.query('DELETE FROM oauth_clients');
  provider.quirk = quirk;
  const owner = newOwner();
  await authorize(app, owner, provider.mcpUrl);
  return owner;
}

const absent = [undefined, null, '', ' '];
const odd = [...absent, [], {}, 7, true, ['x', 5, null]];

describe(`a document with odd members that nobody needs (seed ${testSeed})`, () => {
  const unneeded: [at: QuirkyEndpoint, names: string[]][] = [
    ['resource', ['resource_name', 'scopes_supported', 'dpop_bound_access_tokens_required', 'resource_documentation']],
    [
      'server',
      ['scopes_supported', 'service_documentation', 'revocation_endpoint', 'jwks_uri', 'grant_types_supported'],
    ],
    [
      'server',
      ['response_types_supported', 'token_endpoint_auth_methods_supported', 'op_policy_uri', 'ui_locales_supported'],
    ],
    ['server', ['client_id_metadata_document_supported', 'authorization_response_iss_parameter_supported']],
    [
      'register',
      ['client_uri', 'logo_uri', 'client_secret_expires_at', 'scope', 'redirect_uris', 'contacts', 'grant_types'],
    ],
  ];

  verifies('provider:documents', 'lets a person log in', async () => {
    for (const [at, names] of unneeded) {
      for (const name of names) {
        for (const value of [...absent, ...fc.sample(fc.constantFrom(...odd), { numRuns: 3, seed: testSeed })]) {
          // These two change what is asked of the server, if they are of their own type.
          if (value === true || (name === 'revocation_endpoint' && value === 7)) continue;
          if (name === 'response_types_supported' && Array.isArray(value) && value.length > 0) continue;
          provider.quirk = withMembers(at, { [name]: value });
          const { server, resource } = await discover();
          expect([name, value, server.issuer, resource]).toEqual([name, value, provider.origin, provider.mcpUrl]);
          const client = await registerAt(fetch, server, 'http://127.0.0.1/cb');
          expect([name, value, client.clientId]).toEqual([name, value, 'the client']);
        }
      }
    }
  });

  verifies('provider:documents', 'gives tokens, also without a type or in the form of a query', async () => {
    const [token, more] = ['access_token=at-1&token_type=bearer', '&scope=read+write&expires_in=3600'];
    const form = 'application/x-www-form-urlencoded; charset=utf-8';
    const answers: (object | string)[] = [
      { access_token: 'at-1' },
      ...absent.flatMap((value) => [
        { scope: value },
        { refresh_token: value },
        { id_token: value },
        { token_type: value },
      ]),
      { scope: ['read', 'write'], token_type: 'bearer', expires_in: '3600' },
      { token_type: 'BEARER', expires_in: null, refresh_token_expires_in: 'never' },
      token + more,
      `${token}&refresh_token=rt-1`,
    ];
    for (const given of answers) {
      const owner = await loggedIn(({ endpoint }, answer) => {
        if (endpoint !== 'token') return undefined;
        if (typeof given === 'string') return { ...answer, type: form, body: given };
        return { ...answer, body: { access_token: 'at-1', ...given } };
      });
      expect([given, await app.get(CredentialsService).accessToken(owner, provider.mcpUrl)]).toEqual([given, 'at-1']);
    }
  });

  verifies('provider:documents', 'is skipped in favour of a good one, and reported where there is none', async () => {
    const foreign: object[] = [{ error: 'not found' }, { issuer: 'x' }, [], { issuer: null }];
    for (const body of foreign) {
      provider.quirk = ({ endpoint }, answer) => (endpoint === 'server' ? { ...answer, body } : undefined);
      expect((await discover()).server.issuer).toBe(provider.origin);
      provider.quirk = ({ endpoint }, answer) =>
        endpoint === 'server' || endpoint === 'openid' ? { ...answer, body } : undefined;
      await expect(discover()).rejects.toThrow(Array.isArray(body) ? 'there is no metadata at' : 'document that lacks');
    }
  });
});

describe('a provider', () => {
  verifies('provider:challenges', 'may name its metadata in any of its challenges', async () => {
    const { origin, mcpUrl } = provider;
    const good = `${origin}/.well-known/oauth-protected-resource/only`;
    provider.quirk = ({ endpoint, url }, answer) => {
      if (endpoint !== 'resource') return undefined;
      if (url.endsWith('/foreign'))
        return { ...answer, body: { ...(answer.body as object), resource: 'https://a.example' } };
      return url.endsWith('/broken') ? { ...answer, status: 500 } : url.endsWith('/only') ? undefined : null;
    };
    const named = (place: string) => `resource_metadata="${place}"`;
    const [broken, foreign] = ['broken', 'foreign'].map((place) => good.replace(/only$/, place));
    for (const challenge of [
      ['Bearer realm="proxy"', `Bearer ${named(good)}`],
      [`Bearer realm="proxy", Bearer ${named(good)}`],
      [`Bearer ${named(broken)}, ${named(good)}`],
      [`Bearer ${named(foreign)}`, `Basic realm=x, bearer ${named(good)}`],
      [`Bearer ${named('http://127.0.0.1:1/')}, Bearer resource_metadata='${good}'`],
      [`Bearer error="invalid_token" ${named(good)} scope="a"`],
      [`Bearer error=invalid_token;resource_metadata=${good};scope=a`],
      [`Bearer ${named(new URL(good).pathname)}`],
      [`Bearer ${named('.well-known/oauth-protected-resource/only')}`],
    ]) {
      const target = await discover(challenge);
      expect([challenge, target.resource, target.scopes]).toEqual([
        challenge,
        mcpUrl,
        expect.stringMatching(/^(read|a)$/),
      ]);
    }
    provider.seen.length = 0;
    const other = `//localhost:${new URL(origin).port}/.well-known/oauth-protected-resource/only`;
    await discover([`Bearer ${named(other)}`]).catch(() => undefined);
    expect(provider.seen.filter(({ headers }) => headers.host?.startsWith('localhost'))).toEqual([]);
    await expect(discover([`Bearer ${named(foreign)}`])).rejects.toThrow('announces the resource');
    await expect(discover([`Bearer ${named(broken)}`])).rejects.toThrow('answered 500');
  });

  verifies('provider:slash', 'may spell its issuer and the resource with a slash more or less', async () => {
    const slashed = `${provider.origin}/`;
    const spellings: [announced: string, answered: string, resource: string][] = [
      [provider.origin, slashed, provider.mcpUrl],
      [slashed, provider.origin, `${provider.mcpUrl}/`],
      [provider.origin, provider.origin, `${provider.mcpUrl}/`],
    ];
    for (const [announced, issuer, resource] of spellings) {
      provider.quirk = (request, answer) =>
        withMembers('resource', { authorization_servers: [announced], resource })(request, answer) ??
        withMembers('server', { issuer })(request, answer);
      const target = await discover();
      expect([target.server.issuer, target.resource]).toEqual([issuer, resource]);
    }
    for (const issuer of [`${provider.origin}//`, `${provider.origin}/x`, 'https://elsewhere.example']) {
      provider.quirk = withMembers('server', { issuer });
      await expect(discover()).rejects.toThrow('name another issuer');
    }
    let slashes = 0;
    provider.quirk = (request, answer) =>
      request.endpoint === 'server'
        ? withMembers('server', { issuer: provider.origin + '/'.repeat((slashes += 1)) })(request, answer)
        : undefined;
    await expect(discover()).rejects.toThrow('name another issuer');
    expect(slashes).toBe(2);
    for (const resource of [`${provider.mcpUrl}//`, `${provider.origin}/mcp2`, 'https://elsewhere.example/mcp']) {
      provider.quirk = withMembers('resource', { resource });
      await expect(discover()).rejects.toThrow('announces the resource');
    }
  });

  verifies(
    'provider:sender',
    'receives requests of a named sender behind a firewall, whose page is reported as one',
    async () => {
      const guarded: Quirk = ({ endpoint, headers }) => {
        if (endpoint === 'authorize') return undefined;
        if (/^Slipway\/\d+\.\d+$/.test(headers['user-agent'] ?? '')) return undefined;
        return { status: 403, type: 'text/html', body: '<h1>Forbidden</h1>' };
      };
      provider.quirk = guarded;
      const { path } = await createConnection(app, account, { mcpUrl: provider.mcpUrl });
      const owner = await loggedIn(guarded);
      expect(await refreshed(owner)).toMatch(/^at-/);
      expect((await send(app, account, `${path}/.tools`, undefined, { method: 'GET' })).status).toBe(409);
      const agents = provider.seen
        .filter(({ endpoint }) => endpoint !== 'authorize')
        .map(({ headers }) => headers['user-agent']);
      expect(new Set(agents).size).toBe(1);
      expect(new Set(provider.seen.map(({ endpoint }) => endpoint)).size).toBeGreaterThan(5);
      for (const status of [403, 503]) {
        provider.quirk = ({ endpoint }) =>
          endpoint === 'mcp' ? undefined : { status, type: 'Text/HTML; charset=x', body: '<p>' };
        await expect(discover()).rejects.toThrow('a firewall or proxy answered in its place');
      }
      await createConnection(app, account, { mcpUrl: provider.mcpUrl, headers: { 'User-Agent': 'mine' } });
      expect(provider.of('mcp').at(-1)?.headers['user-agent']).toBe('mine');
    },
  );

  const refusing =
    (parameter: string, error: string): Quirk =>
    ({ endpoint, params }) =>
      endpoint === 'token' && params.has(parameter) ? { status: 400, body: { error } } : undefined;

  verifies(
    'provider:resource',
    'may refuse "resource": it is left out from then on, and no token is lost',
    async () => {
      for (const error of ['invalid_target', 'invalid_request']) {
        const owner = await loggedIn(refusing('resource', error));
        const sent = provider.of('token').length;
        expect(await refreshed(owner)).toMatch(/^at-/);
        expect(
          provider
            .of('token')
            .slice(sent)
            .map(({ params }) => params.has('resource')),
        ).toEqual([false]);
        const later = await loggedIn();
        provider.quirk = refusing('resource', error);
        expect(await refreshed(later)).toMatch(/^at-/);
        expect(await refreshed(later)).toMatch(/^at-/);
        expect(
          provider
            .of('token')
            .slice(-3)
            .map(({ params }) => params.has('resource')),
        ).toEqual([true, false, false]);
      }
      provider.quirk = ({ endpoint }) =>
        endpoint === 'token' ? { status: 400, body: { error: 'invalid_target' } } : undefined;
      const owner = newOwner();
      const person = personAt(app);
      const link = await beginSetup(app, owner, provider.mcpUrl);
      await person.open(link);
      expect((await person.press(link)).html).not.toContain('Authorized');
    },
  );

  verifies(
    'provider:resource',
    'may refuse it where a person signs in, who is sent there again without it',
    async () => {
      let takesIt = true;
      provider.quirk = ({ endpoint, params }) => {
        if (endpoint !== 'authorize' || (takesIt && !params.has('resource'))) return undefined;
        const answer = new URLSearchParams({ error: 'invalid_target', state: params.get('state') ?? '' });
        return { status: 302, headers: { location: `${params.get('redirect_uri')}?${answer.toString()}` }, body: '' };
      };
      const owner = newOwner();
      const person = personAt(app);
      const link = await beginSetup(app, owner, provider.mcpUrl);
      await person.open(link);
      expect((await person.press(link)).html).toContain('Authorized');
      expect(await refreshed(owner)).toMatch(/^at-/);
      expect(provider.of('token').every(({ params }) => !params.has('resource'))).toBe(true);
      takesIt = false;
      const refused = await beginSetup(app, newOwner(), provider.mcpUrl);
      await person.open(refused);
      const before = provider.of('authorize').length;
      expect((await person.press(refused)).html).not.toContain('Authorized');
      expect(
        provider
          .of('authorize')
          .slice(before)
          .map(({ params }) => params.has('resource')),
      ).toEqual([true, false]);
    },
  );

  verifies(
    'provider:token-words',
    'is quoted where it refuses the tokens, in any form and with any status',
    async () => {
      const form = 'application/x-www-form-urlencoded';
      const words = 'The code ran out';
      for (const [status, type, body, says] of [
        [200, form, 'error=invalid_grant&error_description=The+code+ran+out', `invalid_grant: ${words}`],
        [
          200,
          'text/plain',
          'error_description=The+code+ran+out&error=bad_verification_code',
          `bad_verification_code: ${words}`,
        ],
        [200, 'application/json', { error: 'invalid_grant', error_description: words }, `invalid_grant: ${words}`],
        [200, 'application/json', { error: 'own_code', error_description: words }, `own_code: ${words}`],
        [400, form, 'error=invalid_grant', 'invalid_grant'],
        [400, 'text/html', { error: 'own_code' }, 'own_code'],
      ] as const) {
        provider.quirk = ({ endpoint }) => (endpoint === 'token' ? { status, type, body } : undefined);
        const person = personAt(app);
        const link = await beginSetup(app, newOwner(), provider.mcpUrl);
        await person.open(link);
        const { html } = await person.press(link);
        expect([body, html.includes(says), html.includes('did not answer')]).toEqual([body, true, false]);
      }
    },
  );

  verifies('provider:scope', 'may want the scopes again at a refresh', async () => {
    const owner = await loggedIn();
    provider.quirk = ({ endpoint, params }) =>
      endpoint === 'token' && !params.has('scope') ? { status: 400, body: { error: 'invalid_scope' } } : undefined;
    expect(await refreshed(owner)).toMatch(/^at-/);
    expect(provider.of('token').at(-1)?.params.get('scope')).toBe('read');
  });

  verifies(
    'provider:client-method',
    'is obeyed in how the client authenticates, and asked once in the other way',
    async () => {
      const answered = withMembers('register', { token_endpoint_auth_method: 'client_secret_post' });
      await loggedIn(
        (request, answer) =>
          withMembers('server', { token_endpoint_auth_methods_supported: ['none'] })(request, answer) ??
          answered(request, answer),
      );
      expect(provider.of('token').at(-1)?.params.get('client_secret')).toBe('s+c/r=t:%');
      const raw = `Basic ${Buffer.from('the client:s+c/r=t:%').toString('base64')}`;
      const ways: [
        methods: string[],
        isTaken: (request: { params: URLSearchParams; authorization?: string }) => boolean,
      ][] = [
        [['client_secret_basic', 'client_secret_post'], ({ params }) => params.has('client_secret')],
        [['client_secret_basic'], ({ authorization }) => authorization === raw],
      ];
      for (const [methods, isTaken] of ways) {
        provider.seen.length = 0;
        const owner = await loggedIn((request, answer) => {
          const { endpoint, params, headers } = request;
          if (endpoint === 'token' && !isTaken({ params, authorization: headers.authorization })) {
            return { status: 401, body: { error: 'invalid_client' } };
          }
          return withMembers('server', { token_endpoint_auth_methods_supported: methods })(request, answer);
        });
        expect(provider.of('token')).toHaveLength(2);
        expect(await refreshed(owner)).toMatch(/^at-/);
        expect(provider.of('token')).toHaveLength(3);
      }
    },
  );

  verifies('provider:refresh-kept', 'may give an empty refresh token: the one before stays', async () => {
    for (const value of ['', null, undefined]) {
      const owner = await loggedIn();
      provider.quirk = withMembers('token', { refresh_token: value });
      expect(await refreshed(owner)).toMatch(/^at-/);
      expect(await refreshed(owner)).toMatch(/^at-/);
      const [first, second] = provider
        .of('token')
        .slice(-2)
        .map(({ params }) => params.get('refresh_token'));
      expect(first).toBe(second);
    }
  });

  verifies('provider:early-refusal', 'may refuse an early refresh: the access token is used to its end', async () => {
    const owner = await loggedIn();
    provider.quirk = ({ endpoint }) =>
      endpoint === 'token' ? { status: 400, body: { error: 'invalid_grant', error_description: null } } : undefined;
    const token = await refreshed(owner, 'due');
    expect(token).toMatch(/^at-/);
    await expect(refreshed(owner)).rejects.toThrow();
    const [row] = await app.database.query('SELECT state FROM upstream_credentials WHERE owner_id = $1', [owner.id]);
    expect(row.state).toBe('required');
  });

  verifies(
    'provider:unclear-refusal',
    'may refuse in words of its own: its client ends, or the tenth time the login',
    async () => {
      const words: object[] = [
        { message: 'client not found' },
        { error: 'client_not_found' },
        { error: 'invalid_client_id' },
        { error: 'bad', error_description: 'Unknown client' },
      ];
      for (const body of words) {
        const owner = await loggedIn();
        provider.quirk = ({ endpoint }) => (endpoint === 'token' ? { status: 422, body } : undefined);
        await expect(refreshed(owner)).rejects.toThrow();
        expect((await app.database.query('SELECT 1 FROM oauth_clients')).length).toBe(0);
      }
      const owner = await loggedIn();
      provider.quirk = ({ endpoint }) => (endpoint === 'token' ? { status: 400, body: { error: 'odd' } } : undefined);
      for (let tries = 1; tries <= 10; tries += 1) {
        await app.database.query('UPDATE upstream_credentials SET retry_at = NULL WHERE owner_id = $1', [owner.id]);
        await expect(refreshed(owner)).rejects.toThrow();
        const [row] = await app.database.query('SELECT state FROM upstream_credentials WHERE owner_id = $1', [
          owner.id,
        ]);
        expect([tries, row.state]).toEqual([tries, tries < 10 ? 'active' : 'required']);
      }
    },
  );

  verifies(
    'provider:forgotten-client',
    'may forget its client without a word: the third browser comes with a new one',
    async () => {
      const owner = await loggedIn();
      const clients = () => provider.of('authorize').map(({ params }) => params.get('client_id'));
      let made = 0;
      provider.quirk = (request, answer) => {
        if (request.endpoint === 'register')
          return { ...answer, body: { ...(answer.body as object), client_id: `new ${(made += 1)}` } };
        if (request.endpoint !== 'authorize' || request.params.get('client_id')?.startsWith('new')) return undefined;
        return { status: 400, type: 'text/html', body: '<p>Unknown client' };
      };
      const pressed = async (who = newOwner()) => {
        const link = await beginSetup(app, who, provider.mcpUrl);
        const person = personAt(app);
        await person.open(link);
        return (await person.press(link)).html;
      };
      expect(await pressed()).toContain('Unknown client');
      expect(await pressed()).toContain('Unknown client');
      const later = newOwner();
      expect(await pressed(later)).toContain('Authorized');
      expect(clients().slice(-3)).toEqual(['the client', 'the client', 'new 1']);
      // The login of before is refreshed with its own client.
      expect(await refreshed(owner)).toMatch(/^at-/);
      const basic = provider.of('token').at(-1)?.headers.authorization ?? '';
      expect(Buffer.from(basic.slice(6), 'base64').toString()).toMatch(/^the\+client:/);
      // A provider that forgets the new one too gets no third within the day.
      provider.quirk = ({ endpoint }) =>
        endpoint === 'authorize' ? { type: 'text/html', body: '<p>Unknown' } : undefined;
      for (let n = 0; n < 4; n += 1) await pressed();
      expect([provider.of('register').length, new Set(clients()).size]).toEqual([2, 2]);
    },
  );

  verifies(
    'provider:token-status',
    'may refuse an expired token with any status: it is refreshed and the call made',
    async () => {
      for (const status of [400, 401, 403]) {
        await app.database.query('DELETE FROM oauth_clients');
        provider.quirk = () => undefined;
        const { path } = await createConnection(app, account, { mcpUrl: provider.mcpUrl });
        const { body } = await send(app, account, path, undefined, { method: 'GET' });
        const person = personAt(app);
        await person.open(body.status.setupUrl);
        expect((await person.press(body.status.setupUrl)).html).toContain('Authorized');
        const old = provider.of('mcp').at(-1)?.headers.authorization;
        const challenge = { 'www-authenticate': 'Bearer error="invalid_token"' };
        provider.quirk = ({ endpoint, headers }) =>
          endpoint === 'mcp' && headers.authorization === old ? { status, headers: challenge, body: {} } : undefined;
        const refreshes = provider.of('token').length;
        const answer = await send(app, account, `${path}/.tools/run`, {});
        expect([status, answer.status, provider.of('token').length - refreshes]).toEqual([status, 200, 1]);
      }
    },
  );
});
