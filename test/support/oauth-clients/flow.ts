/*
 * An MCP client of `clients.ts` from its registration to the end of its login, at any authorization server: RFC 7591, 6749 with
 * PKCE, 8707, 7523 and 7009. The person who decides, and the MCP call, are functions of the test.
 */
import { createHash, generateKeyPairSync, randomBytes, randomUUID, sign } from 'node:crypto';
import { Readable } from 'node:stream';
import type { Egress } from '../../../src/platform/egress/egress.js';
import { clients, type ClientFixture } from './clients.js';

/** Answer of the token endpoint. */
export interface TokenAnswer {
  status: number;
  body: { access_token: string; refresh_token: string; error?: string; error_description?: string };
}

/** What a test does for a client. */
export interface FlowSteps {
  /** Opens the address as a person who allows it. @returns where the browser goes at last: the redirect URI with a code */
  allow(authorizeUrl: string): Promise<URL>;
  /** Calls the MCP endpoint. @returns the HTTP status */
  call(accessToken: string): Promise<number>;
}

/** The key with which clients of method `private_key_jwt` sign; its public part is at their `jwks_uri`. */
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
const KEY_ID = 'test';

/** Every document of the fixtures, and the key sets they name, as JSON by URL. */
function publishedDocuments(): Map<string, string> {
  const keys = JSON.stringify({
    keys: [{ ...publicKey.export({ format: 'jwk' }), alg: 'RS256', use: 'sig', kid: KEY_ID }],
  });
  const documents = new Map<string, string>();
  for (const { kind, metadata } of clients) {
    if (kind === 'document') documents.set(String(metadata.client_id), JSON.stringify(metadata));
    if (typeof metadata.jwks_uri === 'string') documents.set(metadata.jwks_uri, keys);
  }
  return documents;
}

/** Answers requests for {@link publishedDocuments} in the place of the hosts that publish them: tests dial loopback only. */
export function publishDocuments(egress: Egress): void {
  const documents = publishedDocuments();
  const request = egress.request.bind(egress);
  egress.request = (url, options) => {
    const body = documents.get(url.href);
    if (body === undefined) return request(url, options);
    const answer = { statusCode: 200, headers: {}, body: Readable.from([Buffer.from(body)]) };
    return Promise.resolve(answer as unknown as Awaited<ReturnType<Egress['request']>>);
  };
}

/** One client at one authorization server, for one MCP endpoint. */
export class FlowClient {
  clientId = '';
  private secret: string | undefined;
  private method = 'none';
  private scopesSupported: string[] = [];
  private endpoints: Record<'authorize' | 'token' | 'register' | 'revoke', string>;
  private issuer: string;
  private readonly verifier = randomBytes(32).toString('base64url');
  private readonly state = randomUUID();

  /** @param origin of the authorization server @param resource URL of the MCP endpoint as its user typed it */
  constructor(
    readonly fixture: ClientFixture,
    private readonly origin: string,
    private readonly resource: string,
  ) {}

  /** Reads the metadata of the server (RFC 8414), and registers unless the client has a document. */
  async register(): Promise<void> {
    const answer = await fetch(`${this.origin}/.well-known/oauth-authorization-server`);
    const metadata = (await answer.json()) as Record<string, string> & { scopes_supported: string[] };
    this.issuer = metadata.issuer;
    this.scopesSupported = metadata.scopes_supported;
    this.endpoints = {
      authorize: metadata.authorization_endpoint,
      token: metadata.token_endpoint,
      register: metadata.registration_endpoint,
      revoke: metadata.revocation_endpoint,
    };
    const { kind, metadata: clientMetadata } = this.fixture;
    if (kind === 'document') {
      this.clientId = String(clientMetadata.client_id);
      this.method = String(clientMetadata.token_endpoint_auth_method);
      return;
    }
    const response = await fetch(this.endpoints.register, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(clientMetadata),
    });
    const body = (await response.json()) as Record<string, string | undefined>;
    if (response.status !== 201) throw new Error(`Registration of ${this.fixture.name}: ${JSON.stringify(body)}`);
    this.clientId = body.client_id ?? '';
    this.secret = body.client_secret;
    this.method = body.token_endpoint_auth_method ?? '';
  }

  /** What the client opens in a browser. */
  authorizeUrl(): string {
    const { scope, redirectUri } = this.fixture;
    const parameters = new URLSearchParams({
      response_type: 'code',
      client_id: this.clientId,
      redirect_uri: redirectUri,
      state: this.state,
      resource: this.resource,
      code_challenge: createHash('sha256').update(this.verifier).digest('base64url'),
      code_challenge_method: 'S256',
    });
    if (scope !== null) parameters.set('scope', scope.replace('{supported}', this.scopesSupported.join(' ')));
    return `${this.endpoints.authorize}?${parameters.toString()}`;
  }

  /** Exchanges the code in the address to which the browser came back. Checks `state` and `iss` (RFC 9207). */
  redeem(back: URL): Promise<TokenAnswer> {
    const { redirectUri, name } = this.fixture;
    const [code, state, iss] = ['code', 'state', 'iss'].map((each) => back.searchParams.get(each));
    if (!back.href.startsWith(redirectUri) || !code || state !== this.state || iss !== this.issuer) {
      throw new Error(`${name} came back to ${back.href}`);
    }
    return this.post(this.endpoints.token, {
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectUri,
      code_verifier: this.verifier,
      resource: this.resource,
    });
  }

  refresh(refreshToken: string): Promise<TokenAnswer> {
    const resource: Record<string, string> = this.fixture.refreshHasResource ? { resource: this.resource } : {};
    return this.post(this.endpoints.token, { grant_type: 'refresh_token', refresh_token: refreshToken, ...resource });
  }

  revoke(token: string): Promise<TokenAnswer> {
    return this.post(this.endpoints.revoke, { token });
  }

  /** Sends a form with the client's authentication. */
  private async post(url: string, fields: Record<string, string>): Promise<TokenAnswer> {
    const body = new URLSearchParams(fields);
    const headers: Record<string, string> = {};
    if (this.method === 'client_secret_basic') {
      const [id, secret] = [this.clientId, this.secret ?? ''].map(encodeURIComponent);
      headers.authorization = `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
    } else body.set('client_id', this.clientId);
    if (this.method === 'client_secret_post') body.set('client_secret', this.secret ?? '');
    if (this.method === 'private_key_jwt') {
      body.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer');
      body.set('client_assertion', this.assertion());
    }
    const response = await fetch(url, { method: 'POST', headers, body });
    const text = await response.text();
    return { status: response.status, body: JSON.parse(text === '' ? '{}' : text) as TokenAnswer['body'] };
  }

  /** A signed assertion of the client (RFC 7523 section 3) for the issuer. */
  private assertion(): string {
    const now = Math.floor(Date.now() / 1000);
    const [iss, sub] = [this.clientId, this.clientId];
    const parts = [
      { alg: 'RS256', kid: KEY_ID },
      { iss, sub, aud: this.issuer, jti: randomUUID(), iat: now, exp: now + 60 },
    ];
    const text = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
    return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`;
  }
}

/** A step of a client's life, and what it was answered. */
export type LifeStep = [step: string, status: number];

/**
 * Takes a client through its whole life: register, authorize, token, call, refresh, refresh with a lost answer, revoke. The
 * second refresh sends the same refresh token twice, as a client does that never got the first answer.
 *
 * @returns the status of each step, for comparison with {@link wholeLife}
 */
export async function live(client: FlowClient, { allow, call }: FlowSteps): Promise<LifeStep[]> {
  const steps: LifeStep[] = [];
  const note = (step: string, answer: TokenAnswer): TokenAnswer['body'] => {
    steps.push([
      answer.body.error === undefined ? step : `${step}: ${answer.body.error_description ?? ''}`,
      answer.status,
    ]);
    return answer.body;
  };
  await client.register();
  const first = note('token', await client.redeem(await allow(client.authorizeUrl())));
  steps.push(['call', await call(first.access_token)]);
  const second = note('refresh', await client.refresh(first.refresh_token));
  steps.push(['call after the refresh', await call(second.access_token)]);
  note('refresh whose answer is lost', await client.refresh(second.refresh_token));
  const third = note('the same refresh again', await client.refresh(second.refresh_token));
  steps.push(['call after it', await call(third.access_token)]);
  note('revoke', await client.revoke(third.refresh_token));
  const { status, body } = await client.refresh(third.refresh_token);
  steps.push([`refresh after the end: ${body.error ?? 'accepted'}`, status]);
  return steps;
}

/** What {@link live} returns for a client that works. */
export const wholeLife: LifeStep[] = [
  ['token', 200],
  ['call', 200],
  ['refresh', 200],
  ['call after the refresh', 200],
  ['refresh whose answer is lost', 200],
  ['the same refresh again', 200],
  ['call after it', 200],
  ['revoke', 200],
  ['refresh after the end: invalid_grant', 400],
];
