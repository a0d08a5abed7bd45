import { describe, expect, it } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { clients } from '../../../test/support/oauth-clients/clients.js';
import { loadEnv, StartError } from '../../config/env.js';
import {
  isExactHttps,
  isLoopbackRedirect,
  normaliseClientMetadata,
  ClientRefusedError,
  redirectKey,
  type ClientMetadata,
} from './client-metadata.js';

const REDIRECT = 'https://app.example/callback';

function normalised(metadata: ClientMetadata, redirectHosts: string[] | null = null): ClientMetadata {
  const copy = { redirect_uris: [REDIRECT], ...metadata };
  normaliseClientMetadata(copy, redirectHosts);
  return copy;
}

function refusal(redirectUris: unknown, redirectHosts: string[] | null = null): string {
  try {
    normalised({ redirect_uris: redirectUris }, redirectHosts);
    return 'accepted';
  } catch (error) {
    expect(error).toBeInstanceOf(ClientRefusedError);
    return (error as Error).message;
  }
}

describe('normalised metadata', () => {
  it.each([
    [['https://app.example/callback'], 'web'],
    [['https://localhost:3443/callback'], 'web'],
    [['http://localhost/callback'], 'native'],
    [['http://127.0.0.1:1/', 'https://app.example/callback'], 'native'],
    [['http://[::1]:1/'], 'native'],
    [['cursor://anysphere/callback', 'vscode-insiders://x', 'windsurf://x', 'raycast://oauth'], 'native'],
    [['com.example.app:/callback'], 'native'],
  ])('with %j are of a %s client, whatever they say', (redirect_uris, type) => {
    for (const application_type of ['web', 'native', 'other', null]) {
      expect(normalised({ redirect_uris, application_type })).toMatchObject({ application_type: type, redirect_uris });
    }
  });

  it.each([
    [{ token_endpoint_auth_method: 'none' }, 'none'],
    [{ token_endpoint_auth_method: 'client_secret_post', client_secret: 's' }, 'client_secret_post'],
    [{ token_endpoint_auth_method: 'client_secret_basic', client_secret: 's' }, 'client_secret_basic'],
    [{ token_endpoint_auth_method: 'client_secret_jwt', client_secret: 's' }, 'none'],
    [{ token_endpoint_auth_method: 'private_key_jwt', jwks_uri: 'https://a.example/jwks' }, 'none'],
    [
      {
        token_endpoint_auth_method: 'private_key_jwt',
        client_id: 'https://a.example/c',
        jwks_uri: 'https://a.example/j',
      },
      'private_key_jwt',
    ],
    [
      {
        token_endpoint_auth_method: 'private_key_jwt',
        client_id: 'https://a.example/c',
        jwks_uri: 'http://a.example/j',
      },
      'none',
    ],
    [{ token_endpoint_auth_method: 'private_key_jwt', client_id: 'https://a.example/c', jwks: { keys: [] } }, 'none'],
    [
      { token_endpoint_auth_methods_supported: ['magic', 'client_secret_basic', 'none'], client_secret: 's' },
      'client_secret_basic',
    ],
    [{ token_endpoint_auth_methods_supported: ['private_key_jwt', 'none'], client_id: 'https://a.example/c' }, 'none'],
    [{ token_endpoint_auth_method: 'constructor' }, 'none'],
    [{ token_endpoint_auth_methods_supported: 'none' }, 'none'],
    [{}, 'none'],
  ])('%j authenticate by %s', (metadata, method) => {
    const result = normalised(metadata);
    expect(result.token_endpoint_auth_method).toBe(method);
    expect('client_secret' in result).toBe(method.startsWith('client_secret'));
    expect('jwks_uri' in result).toBe(method === 'private_key_jwt');
  });

  it('hold two grants, one response type, no scope, no null, and nothing that is unknown or malformed', () => {
    const metadata = {
      client_id: 'abc',
      client_name: '',
      client_uri: 'not a link',
      logo_uri: 'https://app.example/logo.png',
      tos_uri: null,
      scope: 'mcp',
      grant_types: ['client_credentials', 'implicit'],
      response_types: ['token'],
      subject_type: 'pairwise',
      sector_identifier_uri: 'https://internal.example/',
      id_token_signed_response_alg: 'HS256',
      contacts: 'nobody',
      software_id: 7,
      slipway: {},
      jwks: { keys: [] },
    };
    const expected = {
      client_id: 'abc',
      logo_uri: 'https://app.example/logo.png',
      redirect_uris: [REDIRECT],
      application_type: 'web',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    };
    expect(normalised(metadata)).toEqual(expected);
    expect(normalised(normalised(metadata))).toEqual(expected);
  });

  it.each([
    ['  Acme\n\u202egnp.exe\u200b\u0007 app ', 'Acme gnp.exe app'],
    ['\u2066\u200d', undefined],
    ['a'.repeat(500), 'a'.repeat(100)],
    [`${'a'.repeat(99)}😀😀`, `${'a'.repeat(99)}😀`],
    ['e\u0301\u0301\u0301\u0301', 'e\u0301\u0301'],
  ])('name %j as %j', (client_name, expected) => {
    expect(normalised({ client_name }).client_name).toBe(expected);
    expect(normalised(normalised({ client_name })).client_name).toBe(expected);
  });

  it('have at most 8 KB', () => {
    const redirects = (count: number) => Array.from({ length: count }, (_, i) => `${REDIRECT}/${i}`);
    expect(refusal(redirects(180))).toBe('accepted');
    expect(refusal(redirects(300))).toContain('it has more than 8 KB');
  });
});

describe('a redirect URI', () => {
  it.each([
    ['http://app.example/callback', 'http is allowed to localhost'],
    ['http://127.0.0.1.evil.example/', 'http is allowed to localhost'],
    ['http://0.0.0.0/', 'http is allowed to localhost'],
    ['https://app.example/callback#part', 'fragment'],
    ['cursor://callback#', 'fragment'],
    ['https://user:word@app.example/', 'user name or password'],
    ['https://app.example\\@evil.example/', 'not a valid URL'],
    ['java\nscript:alert(1)', 'not a valid URL'],
    ['https://app.example/a b', 'not a valid URL'],
    ['/callback', 'not a valid URL'],
    ['', 'not a valid URL'],
    ['https:evil/cb', 'not a valid URL'],
    ['HTTPS:/evil/cb', 'not a valid URL'],
    ['http:127.0.0.1:9/cb', 'not a valid URL'],
    ['https:///evil/cb', 'not a valid URL'],
    [null, 'not a valid URL'],
    ['intent://x#Intent', 'fragment'],
    ['JavaScript:alert(1)', 'leads to no app'],
    ['data:text/html,x', 'leads to no app'],
    ['file:///etc/passwd', 'leads to no app'],
    ['mailto:a@b.example', 'leads to no app'],
    ...(
      'javascript vbscript blob about view-source ws chrome chrome-extension res ms-msdt search-ms ms-appinstaller mhtml feed ' +
      'livescript android-app made-up'
    )
      .split(' ')
      .map((scheme) => [`${scheme}://x/cb`, 'leads to no app'] as [string, string]),
  ])('%j is refused: %s', (uri, words) => {
    expect(refusal([uri])).toContain(words);
    expect(refusal(['https://app.example/callback', uri])).toContain(words);
  });

  it.each([[undefined], [null], [[]], ['https://app.example/callback']])('list %j is refused', (redirectUris) => {
    expect(refusal(redirectUris)).toContain('redirect_uris is missing or empty');
  });

  it.each([
    ['http://localhost/callback', true, false, 'http://loopback/callback'],
    ['http://127.0.0.1:5000/callback', true, false, 'http://loopback/callback'],
    ['http://[::1]:5000/callback', true, false, 'http://loopback/callback'],
    ['http://127.0.0.1:5000/callback?a=1', true, false, 'http://loopback/callback?a=1'],
    ['http://LOCALHOST:1', true, false, 'http://loopback/'],
    ['https://localhost/callback', false, false, 'https://localhost/callback'],
    ['http://localhost.evil.example/', false, false, 'http://localhost.evil.example/'],
    ['http://localhost:1@evil.example/', false, false, 'http://localhost:1@evil.example/'],
    ['http://u@localhost/', false, false, 'http://u@localhost/'],
    ['http://localhost/#', false, false, 'http://localhost/#'],
    ['https://claude.ai/api/mcp/auth_callback', false, true, 'https://claude.ai/api/mcp/auth_callback'],
    ['https://u@claude.ai/', false, false, 'https://u@claude.ai/'],
    ['cursor://callback', false, false, 'cursor://callback'],
    ['nonsense', false, false, 'nonsense'],
    ['http:127.0.0.1:9/cb', false, false, 'http:127.0.0.1:9/cb'],
    ['https:claude.ai/cb', false, false, 'https:claude.ai/cb'],
  ])('%s: loopback %p, exact https %p, key %s', (uri, isLoopback, isHttps, key) => {
    expect([isLoopbackRedirect(uri), isExactHttps(uri), redirectKey(uri)]).toEqual([isLoopback, isHttps, key]);
  });
});

describe('OAUTH_REDIRECT_HOSTS', () => {
  const rules = loadEnv({ OAUTH_REDIRECT_HOSTS: 'Claude.ai, loopback,cursor:,house-app:' }).oauthRedirectHosts;

  it.each([
    ['https://claude.ai/callback', 'accepted'],
    ['https://claude.ai:8443/callback', 'accepted'],
    ['http://[::1]:9/', 'accepted'],
    ['https://localhost/', 'accepted'],
    ['cursor://x/callback', 'accepted'],
    ['house-app://x/callback', 'accepted'],
    ['https://evil.claude.ai/', 'and evil.claude.ai is not among them'],
    ['https://claude.ai.evil.example/', 'and claude.ai.evil.example is not among them'],
    ['vscode://x', 'lists the allowed ones in OAUTH_REDIRECT_HOSTS, and vscode: is not among them'],
  ])('with claude.ai, loopback, cursor: and house-app: – %s: %s', (uri, words) => {
    expect(refusal([uri], rules)).toContain(words);
  });

  it('is refused unless it is a list of hosts, loopback and schemes', () => {
    expect(loadEnv({}).oauthRedirectHosts).toBeNull();
    for (const value of ['https://claude.ai', 'claude.ai/x', '*.claude.ai', 'a,,b', 'claude.ai:443']) {
      expect(() => loadEnv({ OAUTH_REDIRECT_HOSTS: value })).toThrow(StartError);
    }
  });

  it('as docs/guides/log-in-by-url.md lists it for a client suffices for that client', async () => {
    const page = await readFile(new URL('../../../docs/guides/log-in-by-url.md', import.meta.url), 'utf8');
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
