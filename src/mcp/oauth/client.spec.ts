import { describe, expect, it } from '@jest/globals';
import { clientAuthentication, clientMetadata, type OAuthClientIdentity } from './client.js';
import type { AuthorizationServer } from './discovery.js';

const server: AuthorizationServer = {
  issuer: 'https://as.example',
  authorizationEndpoint: 'https://as.example/auth',
  tokenEndpoint: 'https://as.example/token',
  registrationEndpoint: null,
  revocationEndpoint: null,
  tokenEndpointAuthMethods: null,
  readsClientDocuments: false,
  sendsIss: false,
};

/** Authentication sent for a client at a server that offers these methods. */
async function sent(client: Partial<OAuthClientIdentity>, offered: string[] | null = null) {
  const whole: OAuthClientIdentity = {
    clientId: 'id',
    clientSecret: null,
    authMethod: null,
    secretExpiresAt: null,
    ...client,
  };
  const headers = new Headers();
  const params = new URLSearchParams();
  await clientAuthentication(whole, { ...server, tokenEndpointAuthMethods: offered })(headers, params, '');
  const basic = headers.get('authorization')?.replace('Basic ', '');
  return { basic: basic && Buffer.from(basic, 'base64').toString(), params: params.toString() };
}

describe('client authentication', () => {
  it.each([
    [{ clientSecret: 's' }, null, { basic: 'id:s', params: '' }],
    [{ clientSecret: 's', authMethod: 'client_secret_post' }, null, { params: 'client_id=id&client_secret=s' }],
    [{ clientSecret: 's' }, ['client_secret_post'], { params: 'client_id=id&client_secret=s' }],
    [{ clientSecret: 's', authMethod: 'none' }, null, { params: 'client_id=id' }],
    [{}, null, { params: 'client_id=id' }],
    [{}, ['client_secret_basic'], { params: 'client_id=id' }],
    // RFC 6749 section 2.3.1: id and secret are form-encoded before they are joined, which allows colons and
    // non-Latin-1 letters.
    [{ clientId: 'a:b c', clientSecret: 'ä+%/€' }, null, { basic: 'a%3Ab+c:%C3%A4%2B%25%2F%E2%82%AC', params: '' }],
  ])('%j where %j is offered: %j', async (client, offered, expected) => {
    expect(await sent(client, offered)).toEqual({ basic: undefined, ...expected });
  });
});

it.each([
  ['https://slipway.example/oauth/callback', 'web'],
  ['http://127.0.0.1:3000/oauth/callback', 'native'],
  ['http://localhost:3000/oauth/callback', 'native'],
  ['http://[::1]:3000/oauth/callback', 'native'],
  ['https://localhost.example/oauth/callback', 'web'],
])('with the callback %s has the application type %s', (redirectUri, type) => {
  expect(clientMetadata(redirectUri, 'none').application_type).toBe(type);
});
