/*
 * The registration of every client of test/support/oauth-clients at a real oidc-provider in memory, up to the page that asks
 * the person. "Plain" is the same provider without this module, which shows what the module is for.
 */
import { createHash, generateKeyPairSync } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parseUrl } from '../../config/parse-url.js';
import {
  clients,
  machineClient,
  refusedClients,
  type ClientFixture,
} from '../../../test/support/oauth-clients/clients.js';
import { FlowClient, live, publishedDocuments, wholeLife } from '../../../test/support/oauth-clients/flow.js';
import { listen, shut } from '../../../test/support/upstream/upstream-net.js';
import {
  allowLoopbackPorts,
  clientMetadataExtension,
  normaliseClientMetadata,
  type ClientMetadata,
  type OidcErrorClass,
  type RedirectingClient,
} from './client-metadata.js';

interface Provider {
  Client: { prototype: RedirectingClient };
  callback(): (request: IncomingMessage, response: ServerResponse) => void;
  AccessToken: { find(token: string): Promise<unknown> };
  Grant: new (fields: object) => {
    addOIDCScope(scope: string): void;
    addResourceScope(resource: string, scope: string): void;
    save(): Promise<string>;
  };
  interactionResult(request: IncomingMessage, response: ServerResponse, result: object): Promise<string>;
  interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<{ params: { client_id: string } }>;
}

interface Library {
  default: new (issuer: string, configuration: object) => Provider;
  errors: { CustomOIDCProviderError: OidcErrorClass };
}

interface Setup {
  origin: string;
  provider: Provider;
  /** What its documents are, by URL. */
  documents: Map<string, ClientMetadata>;
}

const RESOURCE = 'https://slipway.example/connect/acme/notes/mcp';
const SCOPES = ['mcp', 'offline_access'];
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const closing: (() => Promise<void>)[] = [];
let library: Library;
let full: Setup;
let plain: Setup;

beforeAll(async () => {
  // The library warns about Node 20 when it is imported, and about in-memory storage when a provider is used.
  const { warn } = globalThis.console;
  globalThis.console.warn = (...words: unknown[]) => {
    if (!String(words[0]).includes('oidc-provider WARNING')) warn(...words);
  };
  // oidc-provider is written for Node 22, which has this function.
  (URL as { parse?: (url: string) => URL | null }).parse ??= (url) => parseUrl(url);
  library = (await import('oidc-provider')) as unknown as Library;
  full = await start(true, null);
  plain = await start(false, null);
});
afterAll(async () => {
  for (const close of closing.splice(0)) await close();
});

async function start(isFull: boolean, redirectHosts: string[] | null): Promise<Setup> {
  const documents = new Map<string, ClientMetadata>();
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', origin);
    if (url.pathname.startsWith('/ask/')) return void allow(provider, request, response);
    // What the service does before the library: the scopes that a client asks for say nothing.
    if (url.pathname === '/authorize') url.searchParams.set('scope', SCOPES.join(' '));
    request.url = url.pathname + url.search;
    provider.callback()(request, response);
  });
  const origin = `http://127.0.0.1:${await listen(server)}`;
  closing.push(() => shut(server));
  const provider = new library.default(origin, {
    scopes: SCOPES,
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig', kid: 'test' }] },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    cookies: { keys: ['only for tests'] },
    responseTypes: ['code'],
    routes: { authorization: '/authorize', registration: '/register', token: '/token' },
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/ask/${uid}` },
    pkce: { required: () => true },
    ttl: { Interaction: 3_600, Session: 3_600, Grant: 3_600, AccessToken: 3_600, RefreshToken: 3_600 },
    renderError: (context: { body: unknown }, out: object) => void (context.body = out),
    findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    issueRefreshToken: () => true,
    // The service has a grace period for used refresh tokens in its place.
    rotateRefreshToken: false,
    features: {
      revocation: { enabled: true, allowedPolicy: () => true },
      devInteractions: { enabled: false },
      registration: { enabled: true, issueRegistrationAccessToken: false },
      clientIdMetadataDocument: { enabled: true, ack: 'draft-02', allowFetch: () => true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({ scope: 'mcp', audience: RESOURCE, accessTokenFormat: 'opaque' }),
      },
    },
    fetch: (url: string) => {
      const document = documents.get(url);
      return Promise.resolve(document ? Response.json(document) : new Response('none', { status: 404 }));
    },
    ...(isFull
      ? { extraClientMetadata: clientMetadataExtension(library.errors.CustomOIDCProviderError, redirectHosts) }
      : {}),
  });
  if (isFull) allowLoopbackPorts(provider.Client);
  return { origin, provider, documents };
}

/** Allows what a client asks for, without a page. */
async function allow(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { params } = await provider.interactionDetails(request, response);
  const grant = new provider.Grant({ accountId: 'somebody', clientId: params.client_id });
  grant.addOIDCScope(SCOPES.join(' '));
  grant.addResourceScope(RESOURCE, 'mcp');
  const result = { login: { accountId: 'somebody' }, consent: { grantId: await grant.save() } };
  response.writeHead(303, { location: await provider.interactionResult(request, response, result) }).end();
}

/** Follows an address with cookies until it leaves the server. */
async function browse(at: Setup, address: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = new URL(address);
  for (let hops = 0; url.origin === at.origin; hops += 1) {
    if (hops > 10) throw new Error(`Redirects without end, last to ${url.href}`);
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const location = response.headers.get('location');
    if (location === null) throw new Error(await response.text());
    url = new URL(location, url);
  }
  return url;
}

async function register(at: Setup, metadata: ClientMetadata): Promise<{ status: number; body: ClientMetadata }> {
  const response = await fetch(`${at.origin}/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(metadata),
  });
  return { status: response.status, body: (await response.json()) as ClientMetadata };
}

/** The client id: that of a document, or of a new registration, which succeeds. */
async function clientIdOf(at: Setup, { kind, metadata }: ClientFixture): Promise<string> {
  if (kind === 'document') {
    at.documents.set(metadata.client_id as string, metadata);
    return metadata.client_id as string;
  }
  const { status, body } = await register(at, metadata);
  expect([status, body.error_description]).toEqual([201, undefined]);
  return body.client_id as string;
}

/** Where an authorization request leads: `asks` to the page for the person; else the words of the refusal. */
async function authorize(at: Setup, clientId: string, redirectUri: string, scope = 'mcp'): Promise<string> {
  const parameters = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope,
    resource: RESOURCE,
    state: 's',
    code_challenge: createHash('sha256').update('v'.repeat(43)).digest('base64url'),
    code_challenge_method: 'S256',
  });
  const response = await fetch(`${at.origin}/authorize?${parameters.toString()}`, {
    redirect: 'manual',
    headers: { accept: 'application/json' },
  });
  const location = response.headers.get('location') ?? '';
  if (location.startsWith('/ask/')) return 'asks';
  return location === '' ? JSON.stringify(await response.json()) : location;
}

/** The scope of a fixture as the authorization server reads it: unknown ones are dropped, and `mcp` is the default. */
function scopeOf({ scope }: ClientFixture): string {
  const asked = (scope ?? '').replace('{supported}', SCOPES.join(' ')).split(' ');
  const known = asked.filter((each) => SCOPES.includes(each));
  return known.length === 0 ? 'mcp' : known.join(' ');
}

describe('a client', () => {
  it.each(clients.map((client) => [client.name, client] as const))(
    '%s gets to the page for the person',
    async (_, client) => {
      const clientId = await clientIdOf(full, client);
      expect(await authorize(full, clientId, client.redirectUri, scopeOf(client))).toBe('asks');
    },
  );

  it.each(clients.map((client) => [client.name, client] as const))(
    '%s logs in, refreshes and logs out',
    async (_, client) => {
      for (const [address, body] of publishedDocuments())
        full.documents.set(address, JSON.parse(body) as ClientMetadata);
      const steps = await live(new FlowClient(client, full.origin, RESOURCE), {
        allow: (address) => browse(full, address),
        call: async (token) => ((await full.provider.AccessToken.find(token)) ? 200 : 401),
      });
      expect(steps).toEqual(wholeLife);
    },
  );

  it.each(refusedClients.map((client) => [client.name, client] as const))(
    'with %s is refused in words',
    async (_, client) => {
      const { status, body } = await register(full, client.metadata);
      expect([status, body.error]).toEqual([400, 'invalid_redirect_uri']);
      expect(body.error_description).toMatch(client.refusal);
      const client_id = `https://wrong.example/${client.name.replaceAll(' ', '-')}`;
      full.documents.set(client_id, { ...client.metadata, client_id });
      const answer = JSON.parse(await authorize(full, client_id, 'https://good.example/cb')) as ClientMetadata;
      expect(answer.error_description).toMatch(client.refusal);
    },
  );

  it('that asks for client_credentials is registered without that grant', async () => {
    const { status, body } = await register(full, machineClient.metadata);
    expect([status, body.grant_types]).toEqual([201, ['authorization_code', 'refresh_token']]);
    const credentials = Buffer.from(`${String(body.client_id)}:${String(body.client_secret)}`).toString('base64');
    const response = await fetch(`${full.origin}/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${credentials}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', resource: RESOURCE }),
    });
    expect(await response.json()).toMatchObject({ error: 'unsupported_grant_type' });
  });

  it.each([
    'https://evil.example/callback',
    'http://127.0.0.1.evil.example/callback',
    'http://127.0.0.1:1/other',
    'http://u@127.0.0.1/callback',
  ])('may not use %s, which it did not register', async (redirectUri) => {
    const claudeCode = clients.find(({ name }) => name === 'Claude Code') as ClientFixture;
    const clientId = await clientIdOf(full, claudeCode);
    expect(await authorize(full, clientId, redirectUri)).toContain('redirect_uri did not match');
  });
});

describe('the answer to a registration', () => {
  it('has no null member, and an integer as the end of a secret', async () => {
    const metadata = { client_name: null, logo_uri: null, contacts: null, redirect_uris: ['https://a.example/cb'] };
    const { status, body } = await register(full, metadata);
    expect(status).toBe(201);
    expect(Object.values(body)).not.toContain(null);
    expect(body).toMatchObject({ token_endpoint_auth_method: 'client_secret_basic', client_secret_expires_at: 0 });
    expect(typeof body.client_secret).toBe('string');
  });

  it('has no secret for a client that cannot use one', async () => {
    for (const method of ['none', 'client_secret_jwt', 'private_key_jwt', 'tls_client_auth', 'magic']) {
      const metadata = { redirect_uris: ['https://a.example/cb'], token_endpoint_auth_method: method };
      const { status, body } = await register(full, metadata);
      expect([status, body.token_endpoint_auth_method]).toEqual([201, 'none']);
      expect(body).not.toHaveProperty('client_secret');
      expect(body).not.toHaveProperty('client_secret_expires_at');
    }
  });

  it('repeats nothing that was not asked by this server', async () => {
    const { body } = await register(full, {
      redirect_uris: ['https://a.example/cb'],
      token_endpoint_auth_method: 'none',
      token_endpoint_auth_methods_supported: ['none'],
      slipway: 'x',
      scope: 'mcp admin',
    });
    for (const member of ['token_endpoint_auth_methods_supported', 'slipway', 'scope']) {
      expect(body).not.toHaveProperty(member);
    }
  });
});

describe('OAUTH_REDIRECT_HOSTS', () => {
  it('refuses other redirect addresses in words that name it', async () => {
    const strict = await start(true, ['claude.ai', 'loopback']);
    const codes = await clientIdOf(strict, clients.find(({ name }) => name === 'Claude Code') as ClientFixture);
    expect(await authorize(strict, codes, 'http://localhost:1/callback')).toBe('asks');
    const cursor = clients.find(({ name }) => name === 'Cursor') as ClientFixture;
    const { status, body } = await register(strict, cursor.metadata);
    expect([status, body.error]).toEqual([400, 'invalid_redirect_uri']);
    expect(body.error_description).toContain('in OAUTH_REDIRECT_HOSTS, and www.cursor.com is not among them.');
    const chatgpt = clients.find(({ name }) => name === 'ChatGPT') as ClientFixture;
    const id = await clientIdOf(strict, chatgpt);
    expect(await authorize(strict, id, chatgpt.redirectUri)).toContain('chatgpt.com is not among them.');
  });

  it('as docs/log-in-by-url.md lists it for a client suffices for that client', async () => {
    const page = await readFile(new URL('../../../docs/log-in-by-url.md', import.meta.url), 'utf8');
    const lists = [
      ...page.matchAll(/(Cursor|VS Code|Claude|ChatGPT)\s+(?:needs\s+)?`([\w.,:-]+,[\w.,:-]+|chatgpt\.com)`/g),
    ];
    expect(lists.map(([, name]) => name)).toEqual(['Cursor', 'VS Code', 'Claude', 'ChatGPT']);
    for (const [, name, list = ''] of lists) {
      for (const { metadata } of clients.filter((each) => each.name.split(',')[0] === name)) {
        normaliseClientMetadata({ ...metadata }, list.split(','));
      }
    }
  });
});

describe('oidc-provider without this module', () => {
  it.each([
    ['Cursor', 'redirect_uris must only contain web uris'],
    ['Windsurf', 'client_uri must be a non-empty string if provided'],
    ['mcp-remote', 'scope must only contain Authorization Server supported scope values'],
    ['Gemini CLI', 'scope must be a non-empty string if provided'],
  ])('refuses the registration of %s', async (name, words) => {
    const { metadata } = clients.find((client) => client.name === name) as ClientFixture;
    const { status, body } = await register(plain, metadata);
    expect([status, body.error_description]).toEqual([400, expect.stringContaining(words)]);
  });

  it('takes another port of a client that declares itself native, localhost included, but no other name of loopback', async () => {
    const client_id = 'https://native.example/client.json';
    const redirect_uris = ['http://localhost/callback'];
    const metadata = { client_id, redirect_uris, application_type: 'native', token_endpoint_auth_method: 'none' };
    for (const at of [plain, full]) at.documents.set(client_id, metadata);
    expect(await authorize(plain, client_id, 'http://localhost:4/callback')).toBe('asks');
    expect(await authorize(plain, client_id, 'http://127.0.0.1:4/callback')).toContain('redirect_uri did not match');
    expect(await authorize(full, client_id, 'http://127.0.0.1:4/callback')).toBe('asks');
  });

  it.each(['Claude Code', 'Goose', 'Zed'])('refuses another port of %s', async (name) => {
    const client = clients.find((each) => each.name === name) as ClientFixture;
    const clientId = await clientIdOf(plain, client);
    expect(await authorize(plain, clientId, client.redirectUri)).toContain('redirect_uri did not match');
  });
});
