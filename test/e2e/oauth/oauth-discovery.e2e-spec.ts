import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { OAuthSetupError } from '../../../src/modules/oauth/credentials.errors.js';
import { AuthorizationsService } from '../../../src/modules/oauth/authorizations.service.js';
import { CredentialsService } from '../../../src/modules/oauth/credentials.service.js';
import { testApp } from '../../support/app.js';
import {
  startAuthorizationServer,
  type AuthorizationServer,
  type AuthorizationServerOptions,
  type ProtectOptions,
} from '../../support/people/authorization-server.js';
import { age, authorize, beginSetup, newOwner, personAt } from '../../support/people/credentials.js';
import { startSite, type Site, type SiteAnswer } from '../../support/people/site.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const PUBLIC_URL = 'https://slipway.test';

const app = testApp({ PUBLIC_URL });
let upstream: Upstream;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  upstream = await startUpstream();
});

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function authorizationServer(options?: AuthorizationServerOptions): Promise<AuthorizationServer> {
  const server = await startAuthorizationServer(options);
  closing.push(() => server.close());
  return server;
}

async function site(...args: Parameters<typeof startSite>): Promise<Site> {
  const started = await startSite(...args);
  closing.push(() => started.close());
  return started;
}

/** Metadata of an authorization server that does all MCP asks for. */
function metadataOf(issuer: string, changes: object = {}): object {
  return {
    issuer,
    authorization_endpoint: `${issuer}/auth`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/reg`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    ...changes,
  };
}

/** An MCP server that names these authorization servers; nothing else is there. */
function resourceSite(issuers: string[], more: Record<string, SiteAnswer> = {}, changes: object = {}): Promise<Site> {
  return site((origin) => ({
    '/.well-known/oauth-protected-resource/mcp': {
      resource: `${origin}/mcp`,
      authorization_servers: issuers,
      ...changes,
    },
    ...more,
  }));
}

/** A site that is its own authorization server, with these metadata. */
function ownSite(changes: (origin: string) => object): Promise<Site> {
  return site((origin) => ({
    '/.well-known/oauth-authorization-server': metadataOf(origin, changes(origin)),
    '/reg': { client_id: 'c1', redirect_uris: [`${PUBLIC_URL}/oauth/callback`] },
  }));
}

/** The sentence an attempt is refused with. */
async function refusal(url: string, challenge: string[] | null = null, from = app): Promise<string> {
  const error = await beginSetup(from, newOwner(), url, { challenge }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OAuthSetupError);
  return (error as OAuthSetupError).message;
}

/** Presses the button; the parameters the authorization server was asked with. */
async function askedWith(link: string): Promise<URLSearchParams> {
  const person = personAt(app);
  await person.open(link);
  const { url } = await person.press(link, (address) => !address.startsWith(PUBLIC_URL));
  return new URL(url).searchParams;
}

async function behind(server: AuthorizationServer, options?: ProtectOptions): Promise<string> {
  return (await server.protect(upstream.url, options)).url;
}

describe('an authorization server', () => {
  verifies('oauth:discovery', 'is found by the address in the challenge, among other challenges', async () => {
    const server = await authorizationServer();
    const odd = await site((origin) => ({
      '/odd/place.json': { resource: origin, authorization_servers: [server.issuer] },
    }));
    const challenge = [
      'Basic realm="x"',
      `Negotiate, Bearer realm="y", resource_metadata="${odd.origin}/odd/place.json"`,
    ];
    await expect(beginSetup(app, newOwner(), `${odd.origin}/mcp`, { challenge })).resolves.toContain('/setup/');
    expect(odd.asked).toEqual(['/odd/place.json']);
  });

  verifies('oauth:discovery', 'is found by the well-known address of its path, then that of its root', async () => {
    const server = await authorizationServer();
    const byPath = await site((origin) => ({
      '/.well-known/oauth-protected-resource/a/mcp?x=1': { resource: origin, authorization_servers: [server.issuer] },
    }));
    await beginSetup(app, newOwner(), `${byPath.origin}/a/mcp/?x=1`);
    expect(byPath.asked).toEqual(['/.well-known/oauth-protected-resource/a/mcp?x=1']);
    const byRoot = await site((origin) => ({
      '/.well-known/oauth-protected-resource': { resource: origin, authorization_servers: [server.issuer] },
    }));
    await beginSetup(app, newOwner(), `${byRoot.origin}/a/mcp`);
    expect(byRoot.asked).toEqual([
      '/.well-known/oauth-protected-resource/a/mcp',
      '/.well-known/oauth-protected-resource',
    ]);
  });

  verifies('oauth:discovery', 'is looked up again for the next authorization, after a page shared one', async () => {
    const [before, after] = [await authorizationServer(), await authorizationServer()];
    const issuers = [before.issuer];
    const moving = await resourceSite(issuers);
    const authorizations = app.get(AuthorizationsService);
    const owner = newOwner();
    const request = { upstreamUrl: `${moving.origin}/mcp`, challenge: null, label: 'moving' };
    await authorizations.preview(owner, request);
    await authorizations.begin(owner, request);
    expect(moving.asked).toHaveLength(1);
    issuers[0] = after.issuer;
    await authorizations.begin(owner, request);
    const begun = await app.database.query<{ issuer: string }[]>(
      `SELECT server ->> 'issuer' AS issuer FROM pending_authorizations WHERE owner_id = $1 ORDER BY created_at`,
      [owner.id],
    );
    expect(begun.map(({ issuer }) => issuer)).toEqual([before.issuer, after.issuer]);
  });

  verifies('oauth:discovery', 'is found at the well-known address if the one in the challenge is broken', async () => {
    const server = await authorizationServer();
    const broken = await resourceSite([server.issuer], { '/broken': { text: '<h1>Welcome</h1>' } });
    for (const place of ['/broken', '/missing']) {
      const challenge = [`Bearer resource_metadata="${broken.origin}${place}"`];
      await expect(beginSetup(app, newOwner(), `${broken.origin}/mcp`, { challenge })).resolves.toBeTruthy();
    }
  });

  verifies('oauth:discovery', 'is found at the MCP server as in 2025-03-26, with its address as resource', async () => {
    const own = await ownSite(() => ({}));
    const asked = await askedWith(await beginSetup(app, newOwner(), own.origin));
    expect(asked.get('resource')).toBe(own.origin);
  });

  verifies('oauth:discovery', 'is found at 2025-03-26 default endpoints, if the token endpoint is one', async () => {
    const tokenAnswer = (status: number, error: string) => ({
      status,
      headers: { 'content-type': 'application/json' },
      text: JSON.stringify({ error }),
    });
    for (const [status, error] of [
      [400, 'invalid_request'],
      [401, 'invalid_client'],
    ] as const) {
      const old = await site(() => ({
        '/token': tokenAnswer(status, error),
        '/register': { client_id: 'c1', redirect_uris: [`${PUBLIC_URL}/oauth/callback`] },
      }));
      const person = personAt(app);
      const link = await beginSetup(app, newOwner(), `${old.origin}/mcp`);
      await person.open(link);
      const { url } = await person.press(link, (address) => !address.startsWith(PUBLIC_URL));
      const { origin, pathname, searchParams } = new URL(url);
      expect([origin, pathname]).toEqual([old.origin, '/authorize']);
      expect(searchParams.get('code_challenge_method')).toBe('S256');
      expect(searchParams.get('resource')).toBe(`${old.origin}/mcp`);
    }
    // A server with API keys answers every path like this.
    for (const answer of [tokenAnswer(401, 'Unauthorized'), tokenAnswer(200, 'invalid_request'), { text: '{}' }]) {
      const keyed = await site(() => ({ '/token': answer }));
      expect(await refusal(`${keyed.origin}/mcp`)).toContain('No authorization server was found');
    }
    // One that publishes which authorization server it has does not mean another one.
    const named = await site((origin) => ({
      '/.well-known/oauth-protected-resource/mcp': { resource: `${origin}/mcp`, authorization_servers: [origin] },
      '/token': tokenAnswer(400, 'invalid_request'),
    }));
    expect(await refusal(`${named.origin}/mcp`)).toContain('No authorization server was found');
  });

  verifies(
    'oauth:discovery',
    'is found behind start pages that answer every path, redirects, and issuers with a path',
    async () => {
      const tenant = await site(
        (origin) => ({
          '/t/.well-known/openid-configuration': {
            ...metadataOf(`${origin}/t`),
            jwks_uri: `${origin}/jwks`,
            subject_types_supported: ['public'],
            id_token_signing_alg_values_supported: ['RS256'],
          },
          '/t/reg': { client_id: 'c1', redirect_uris: [] },
        }),
        { text: '<!doctype html><title>App</title>' },
      );
      const moved = await resourceSite([], {
        '/.well-known/oauth-protected-resource/mcp': { status: 302, headers: { location: '/elsewhere' }, text: '' },
      });
      const mcp = await site((origin) => ({
        '/.well-known/oauth-protected-resource/mcp': { status: 307, headers: { location: '/elsewhere' }, text: '' },
        '/elsewhere': { resource: `${origin}/mcp`, authorization_servers: [`${tenant.origin}/t`] },
      }));
      await beginSetup(app, newOwner(), `${mcp.origin}/mcp`);
      expect(tenant.asked).toEqual([
        '/.well-known/oauth-authorization-server/t',
        '/.well-known/openid-configuration/t',
        '/t/.well-known/openid-configuration',
        '/t/reg',
      ]);
      expect(await refusal(`${moved.origin}/mcp`)).toContain('No authorization server was found');
    },
  );

  it('is found among several: the one with a registration of this service, or the first that works', async () => {
    const [first, second] = [await authorizationServer(), await authorizationServer()];
    const gone = 'http://127.0.0.1:1';
    const some = await resourceSite([gone, first.issuer]);
    await beginSetup(app, newOwner(), `${some.origin}/mcp`);
    expect(first.registrations).toBe(1);
    const other = await resourceSite([second.issuer, first.issuer]);
    await beginSetup(app, newOwner(), `${other.origin}/mcp`);
    expect([first.registrations, second.registrations]).toEqual([1, 0]);
  });

  it('is accepted only if its issuer is the requested one', async () => {
    const other = await ownSite(() => ({ issuer: 'https://login.example' }));
    const message = await refusal(other.origin);
    expect(message).toContain('name another issuer, "https://login.example"');
  });
});

describe('PKCE', () => {
  verifies('oauth:pkce', 'must be announced, except for a listed issuer', async () => {
    const server = await authorizationServer({ announcesPkce: false });
    const url = await behind(server);
    expect(await refusal(url)).toContain('does not announce PKCE with S256');
    const trusting = await app.sibling({ OAUTH_PKCE_UNANNOUNCED: `https://other.example,${server.issuer}` });
    closing.push(() => trusting.close());
    const owner = newOwner();
    await authorize(trusting, owner, url);
    expect(server.seen.find(({ endpoint }) => endpoint === 'authorize')?.params.get('code_challenge_method')).toBe(
      'S256',
    );
    const careful = await app.sibling({ OAUTH_PKCE_UNANNOUNCED: 'https://other.example' });
    closing.push(() => careful.close());
    expect(await refusal(url, null, careful)).toContain('OAUTH_PKCE_UNANNOUNCED');
  });

  verifies('oauth:pkce', 'may be announced by the second document only', async () => {
    const two = await site((origin) => ({
      '/.well-known/oauth-authorization-server': metadataOf(origin, { code_challenge_methods_supported: undefined }),
      '/.well-known/openid-configuration': {
        ...metadataOf(origin),
        jwks_uri: `${origin}/jwks`,
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
      },
      '/reg': { client_id: 'c1', redirect_uris: [] },
    }));
    await expect(beginSetup(app, newOwner(), two.origin)).resolves.toBeTruthy();
  });
});

describe('the resource', () => {
  verifies('oauth:resource', 'is sent as announced in every request, without an added slash', async () => {
    const server = await authorizationServer();
    const announced: string[] = [];
    const guarded = await site((origin) => {
      announced.push(origin);
      return {
        '/.well-known/oauth-protected-resource/mcp': {
          resource: origin,
          authorization_servers: [server.issuer],
          scopes_supported: ['tools:read'],
        },
      };
    });
    const owner = newOwner();
    await authorize(app, owner, `${guarded.origin}/mcp`);
    await age(app, owner, 'ended');
    const next = await app.sibling();
    closing.push(() => next.close());
    await next.get(CredentialsService).accessToken(owner, `${guarded.origin}/mcp`);
    const sent = server.seen.filter(({ endpoint }) => endpoint === 'authorize' || endpoint === 'token');
    expect(sent.map(({ params }) => params.get('grant_type'))).toEqual([null, 'authorization_code', 'refresh_token']);
    expect(sent.map(({ params }) => params.getAll('resource'))).toEqual([announced, announced, announced]);
  });

  verifies('oauth:resource', 'replaces one that the authorization endpoint carries already', async () => {
    const own = await ownSite((origin) => ({ authorization_endpoint: `${origin}/auth?resource=wrong&keep=1` }));
    const asked = await askedWith(await beginSetup(app, newOwner(), `${own.origin}/mcp`));
    expect(asked.getAll('resource')).toEqual([`${own.origin}/mcp`]);
    expect(asked.get('keep')).toBe('1');
  });

  verifies('oauth:resource', 'is rejected when it is of another server, and both are shown', async () => {
    for (const resource of ['https://bank.example/', 'api://bank', 'https://127.0.0.1/mcp']) {
      const thief = await resourceSite(['https://login.bank.example'], {}, { resource });
      const message = await refusal(`${thief.origin}/mcp`);
      expect(message).toContain(`"${resource}"`);
      expect(message).toContain(`"${thief.origin}/mcp"`);
    }
    const neighbour = await site((origin) => ({
      '/.well-known/oauth-protected-resource/mcp': {
        resource: `${origin}/mc`,
        authorization_servers: ['https://as.example'],
      },
    }));
    expect(await refusal(`${neighbour.origin}/mcp`)).toContain('a token for another server');
  });
});

describe('scopes', () => {
  verifies('oauth:scopes', 'come from the challenge before those of the metadata', async () => {
    const server = await authorizationServer();
    const url = await behind(server, { scopesSupported: ['tools:read', 'tools:write'] });
    const challenge = ['Bearer scope="tools:admin"'];
    const challenged = await askedWith(await beginSetup(app, newOwner(), url, { challenge }));
    expect(challenged.get('scope')).toBe('tools:admin offline_access');
    const announced = await askedWith(await beginSetup(app, newOwner(), url));
    expect(announced.get('scope')).toBe('tools:read tools:write offline_access');
    const without = await behind(server, { scopesSupported: [] });
    expect((await askedWith(await beginSetup(app, newOwner(), without))).has('scope')).toBe(false);
  });

  verifies('oauth:scopes', 'are added to the granted ones by a step-up', async () => {
    const server = await authorizationServer();
    const url = await behind(server, { scopesSupported: ['tools:read'] });
    const owner = newOwner();
    await authorize(app, owner, url);
    const challenge = ['Bearer error="insufficient_scope", scope="tools:write"'];
    const asked = await askedWith(await beginSetup(app, owner, url, { challenge }));
    expect(asked.get('scope')?.split(' ').toSorted()).toEqual(['offline_access', 'tools:read', 'tools:write']);
    const other = await askedWith(await beginSetup(app, newOwner(), url, { challenge }));
    expect(other.get('scope')).toBe('tools:write offline_access');
  });
});

describe('registration', () => {
  verifies('oauth:registration', 'happens once, with what MCP asks for', async () => {
    const server = await authorizationServer();
    const url = await behind(server);
    for (let times = 0; times < 3; times += 1) await beginSetup(app, newOwner(), url);
    expect(server.registrations).toBe(1);
    const { body } = server.seen.find(({ endpoint }) => endpoint === 'register') ?? { body: '' };
    expect(JSON.parse(body)).toEqual({
      client_name: 'Slipway',
      redirect_uris: [`${PUBLIC_URL}/oauth/callback`],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_basic',
      application_type: 'web',
    });
  });

  it.each(['client_secret_post', 'none'])('authenticates by %s where only that is offered', async (method) => {
    const server = await authorizationServer({
      changeMetadata: (metadata) => (metadata.token_endpoint_auth_methods_supported = [method]),
    });
    const url = await behind(server);
    await authorize(app, newOwner(), url);
    const token = server.seen.find(({ endpoint }) => endpoint === 'token');
    expect(token?.authorization).toBeUndefined();
    expect(token?.params.has('client_secret')).toBe(method === 'client_secret_post');
  });

  verifies('oauth:registration', 'is reported with its reason, as text, when it is rejected', async () => {
    const server = await authorizationServer();
    server.refuseRegistration({ error: 'invalid_redirect_uri', error_description: `no \u0007${'x'.repeat(500)}` });
    const message = await refusal(await behind(server));
    expect(message).toContain(`${server.issuer} did not register Slipway: invalid_redirect_uri: no \\u{7}xxx`);
    expect(message).toContain('(status 400)');
    expect(message.length).toBeLessThan(500);
  });

  verifies('oauth:registration', 'is reported when it is not offered', async () => {
    const server = await authorizationServer({ registers: false });
    expect(await refusal(await behind(server))).toContain('registers no clients by itself');
  });

  verifies('oauth:client-document', 'is not needed where our metadata document is read', async () => {
    const fetched: string[] = [];
    const server = await authorizationServer({
      registers: false,
      fetchDocument: (url) => {
        fetched.push(url);
        return fetch(url.replace(PUBLIC_URL, app.url));
      },
    });
    const owner = newOwner();
    const url = await behind(server);
    await authorize(app, owner, url);
    expect(await app.get(CredentialsService).accessToken(owner, url)).toBe(server.issued.at(-1)?.accessToken);
    expect(fetched).toContain(`${PUBLIC_URL}/oauth/client.json`);
    expect(server.seen.find(({ endpoint }) => endpoint === 'token')?.params.get('client_id')).toBe(
      `${PUBLIC_URL}/oauth/client.json`,
    );
    const document = await app.as().get('/oauth/client.json').expect(200);
    expect(document.body).toEqual({
      client_id: `${PUBLIC_URL}/oauth/client.json`,
      client_name: 'Slipway',
      client_uri: PUBLIC_URL,
      redirect_uris: [`${PUBLIC_URL}/oauth/callback`],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      application_type: 'web',
    });
  });

  verifies('oauth:client-document', 'is needed if the document cannot be read from outside', async () => {
    const plain = await app.sibling({ PUBLIC_URL: 'http://127.0.0.1:3999' });
    closing.push(() => plain.close());
    await plain.as().get('/oauth/client.json').expect(404);
    const server = await authorizationServer({ fetchDocument: () => Promise.reject(new Error('nobody asks')) });
    await beginSetup(plain, newOwner(), await behind(server));
    expect(server.registrations).toBe(1);
    const { body } = server.seen.find(({ endpoint }) => endpoint === 'register') ?? { body: '' };
    expect(JSON.parse(body)).toMatchObject({
      application_type: 'native',
      redirect_uris: ['http://127.0.0.1:3999/oauth/callback'],
    });
  });
});

describe('addresses in metadata', () => {
  verifies('oauth:egress', 'are not dialled when they are private', async () => {
    const metadata = 'http://169.254.169.254/latest/meta-data';
    const mcp = await site(() => ({}));
    expect(await refusal(`${mcp.origin}/mcp`, [`Bearer resource_metadata="${metadata}"`])).toContain(
      'Slipway does not dial cloud metadata addresses',
    );
    for (const issuer of ['https://10.0.0.7', 'https://[fd00::1]/as', 'https://192.168.1.1/t']) {
      const named = await resourceSite([issuer]);
      expect(await refusal(`${named.origin}/mcp`)).toMatch(/Slipway does not dial (private|unique local) addresses/);
    }
    for (const endpoint of ['token_endpoint', 'registration_endpoint', 'revocation_endpoint']) {
      const inside = await ownSite(() => ({ [endpoint]: 'https://10.0.0.7/x' }));
      expect(await refusal(inside.origin)).toContain('Slipway does not dial private addresses');
      expect(inside.asked).not.toContain('/reg');
    }
    const named = await ownSite(() => ({ token_endpoint: 'https://user:word@as.example/token' }));
    expect(await refusal(named.origin)).toContain('carries a user name or password');
    const redirecting = await site(() => ({}), { status: 302, headers: { location: metadata }, text: '' });
    expect(await refusal(`${redirecting.origin}/mcp`)).toContain('Slipway does not dial cloud metadata addresses');
  });

  verifies('oauth:egress', 'are not dialled by way of the service’s own network either', async () => {
    const strict = await app.sibling({ EGRESS_ALLOW: '10.99.0.0/16' });
    closing.push(() => strict.close());
    const mcp = await site(() => ({}));
    expect(await refusal(`${mcp.origin}/mcp`, null, strict)).toContain('Slipway does not dial loopback addresses');
    expect(mcp.asked).toEqual([]);
  });

  it('must be https, except on this machine', async () => {
    for (const endpoint of ['token_endpoint', 'authorization_endpoint', 'registration_endpoint']) {
      const plain = await ownSite(() => ({ [endpoint]: 'http://as.example/x' }));
      expect(await refusal(plain.origin)).toContain('"http://as.example/x", which is not https');
    }
    const named = await ownSite((origin) => ({ authorization_endpoint: origin.replace('//', '//bank.example@') }));
    expect(await refusal(named.origin)).toContain('which carries a user name or password');
    const script = await ownSite(() => ({ authorization_endpoint: 'javascript:alert(1)' }));
    expect(await refusal(script.origin)).toContain('not a valid metadata document');
  });

  it('are not followed where a secret is sent', async () => {
    const elsewhere = await site(() => ({}));
    const moved = await site((origin) => ({
      '/.well-known/oauth-authorization-server': metadataOf(origin),
      '/reg': { status: 307, headers: { location: `${elsewhere.origin}/take` }, text: '' },
    }));
    expect(await refusal(moved.origin)).toContain('not followed');
    expect(elsewhere.asked).toEqual([]);
  });
});
