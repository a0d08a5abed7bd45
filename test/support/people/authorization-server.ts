import { generateKeyPairSync } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { InteractionResults, default as Provider } from 'oidc-provider';
import { parseUrl } from '../../../src/config/parse-url.js';
import { listen, shut } from '../upstream/upstream-net.js';

/** The signing key of every server: making one takes 0.3 s. */
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });

/** How an authorization server behaves. Without options it does all that MCP asks for and lets everybody in. */
export interface AuthorizationServerOptions {
  /** PKCE methods in the metadata. PKCE is required in any case. Default true. */
  announcesPkce?: boolean;
  /** Takes client registrations. Default true. */
  registers?: boolean;
  /** Clients that were registered here by hand. Default: none. */
  clients?: { clientId: string; clientSecret?: string; redirectUri: string; authMethod?: string }[];
  /** Reads client id metadata documents, through this function instead of the network. Default: it does not. */
  fetchDocument?: (url: string) => Promise<Response>;
  /** Shows a page with the buttons Allow and Deny, instead of letting everybody in at once. */
  asks?: boolean;
  /** Changes the metadata before they are answered. */
  changeMetadata?: (metadata: Record<string, unknown>) => void;
  /** A refresh token that was used may be used again: the server tolerates a lost answer. Default false. */
  toleratesReuse?: boolean;
  /** Gives refresh tokens. Default true. */
  givesRefreshTokens?: boolean;
  /** The claims of who signs in next. Default: the subject `somebody` alone. */
  person?: () => { sub: string } & Record<string, unknown>;
}

/** One request to the authorize, registration, token or revocation endpoint. */
export interface SeenRequest {
  endpoint: 'authorize' | 'register' | 'token' | 'revoke';
  params: URLSearchParams;
  /** The body as it came. */
  body: string;
  authorization: string | undefined;
}

/** An MCP server behind a check of its access tokens. */
export interface ProtectedUpstream {
  /** The MCP endpoint. */
  url: string;
  /** Its origin. */
  origin: string;
  /** The bearer tokens it saw, in order. */
  tokens: string[];
  close(): Promise<void>;
}

/** How an upstream is protected. */
export interface ProtectOptions {
  /** The `resource` it announces; default its own URL. */
  resource?: string;
  /** The `resource_name` of its metadata; default none. */
  resourceName?: string;
  /** `scopes_supported` of its metadata; default `tools:read tools:write`. */
  scopesSupported?: string[];
  /** The scope a 401 asks for; default none. */
  challengeScope?: string;
  /** A tool call wants this scope, and is answered 403 without it, or in any case. Default none. */
  toolScope?: string;
  toolScopeSatisfies?: boolean;
  /** Issuers it lists; default this one. */
  authorizationServers?: string[];
}

/** A running authorization server. */
export interface AuthorizationServer {
  issuer: string;
  /** All requests, in order. */
  seen: SeenRequest[];
  /** Every access and refresh token it gave, in order. */
  issued: { accessToken: string; refreshToken?: string }[];
  /** Clients it registered. */
  registrations: number;
  /** Requested refreshes, successful or not. */
  refreshes: number;
  /** The life of access tokens from now on; 3600 at first. */
  setAccessTokenTtl(seconds: number): void;
  /** The next token requests are answered with this status instead of being looked at. */
  failTokens(status: number, times?: number): void;
  /** The next token requests, by default one, are refused with this error of RFC 6749 section 5.2. */
  refuseTokens(error: string, times?: number): void;
  /** So many token requests are carried out and their answers kept back until released; all of them by default. */
  holdTokens(count?: number): void;
  /** Token requests arrive and are not looked at until released; a cut ends them without. */
  delayTokens(): void;
  /** Answers what was kept back, or cuts it off. */
  releaseTokens(how?: 'answer' | 'cut'): void;
  /** Answers being kept back now. */
  readonly held: number;
  /** Nothing answers any more, and sockets break; until `up`. */
  down(): void;
  up(): void;
  /** Refuses registrations with this error. */
  refuseRegistration(error: { error: string; error_description?: string }): void;
  /** Forgets a client, as servers that were reset do. */
  forgetClient(id: string): Promise<void>;
  /** Puts a check of tokens, and the metadata that point here, in front of an MCP server. */
  protect(upstreamUrl: string, options?: ProtectOptions): Promise<ProtectedUpstream>;
  close(): Promise<void>;
}

// oidc-provider warns about settings that are wrong in production only.
const { warn } = globalThis.console;
globalThis.console.warn = (...words: unknown[]) => {
  if (!String(words[0]).includes('oidc-provider WARNING')) warn(...words);
};
// oidc-provider is written for Node 22, which has this function.
(URL as { parse?: (url: string) => URL | null }).parse ??= (url) => parseUrl(url);
const { default: OidcProvider } = await import('oidc-provider');

const RESOURCE_SCOPES = 'tools:read tools:write tools:admin';

/**
 * Starts a real authorization server (oidc-provider) on loopback: PKCE, resource indicators, dynamic registration, and
 * rotating refresh tokens, of which a used one ends the whole authorization.
 */
export async function startAuthorizationServer(options: AuthorizationServerOptions = {}): Promise<AuthorizationServer> {
  const started = new TestAuthorizationServer(options);
  await started.start();
  return started;
}

class TestAuthorizationServer implements AuthorizationServer {
  issuer = '';
  readonly seen: SeenRequest[] = [];
  readonly issued: { accessToken: string; refreshToken?: string }[] = [];
  registrations = 0;
  refreshes = 0;
  private provider: Provider;
  private ttl = 3_600;
  private failure: { status: number; times: number; error: string } | null = null;
  private registrationRefusal: object | null = null;
  private toHold = 0;
  private isDelaying = false;
  private isDown = false;
  private readonly people = new Map<string, Record<string, unknown>>();
  private readonly kept: ((how: 'answer' | 'cut') => void)[] = [];
  private readonly closing: (() => Promise<void>)[] = [];
  private readonly server = createServer((request, response) => void this.receive(request, response));

  constructor(private readonly options: AuthorizationServerOptions) {}

  get held(): number {
    return this.kept.length;
  }

  async start(): Promise<void> {
    this.issuer = `http://127.0.0.1:${await listen(this.server)}`;
    this.provider = new OidcProvider(this.issuer, this.configuration());
    this.provider.use(async (context, next) => {
      await next();
      if (context.path.startsWith('/.well-known/o')) this.changeMetadata(context.body as Record<string, unknown>);
    });
  }

  setAccessTokenTtl(seconds: number): void {
    this.ttl = seconds;
  }

  failTokens(status: number, times = 1): void {
    this.failure = { status, times, error: 'server_error' };
  }

  refuseTokens(error: string, times = 1): void {
    this.failure = { status: 400, times, error };
  }

  holdTokens(count = Infinity): void {
    this.toHold = count;
  }

  delayTokens(): void {
    this.isDelaying = true;
  }

  releaseTokens(how: 'answer' | 'cut' = 'answer'): void {
    this.toHold = 0;
    this.isDelaying = false;
    for (const release of this.kept.splice(0)) release(how);
  }

  down(): void {
    this.isDown = true;
    this.server.closeAllConnections();
  }

  up(): void {
    this.isDown = false;
  }

  refuseRegistration(error: { error: string; error_description?: string }): void {
    this.registrationRefusal = error;
  }

  async forgetClient(id: string): Promise<void> {
    await (this.provider.Client as unknown as { adapter: { destroy(id: string): Promise<void> } }).adapter.destroy(id);
  }

  async close(): Promise<void> {
    this.releaseTokens('cut');
    await Promise.all(this.closing.map((close) => close()));
    await shut(this.server);
  }

  async protect(upstreamUrl: string, options: ProtectOptions = {}): Promise<ProtectedUpstream> {
    const tokens: string[] = [];
    let origin = '';
    const resource = (): string => options.resource ?? `${origin}/mcp`;
    const server = createServer((request, response) => {
      const path = request.url ?? '';
      if (path.startsWith('/.well-known/oauth-protected-resource')) {
        return void json(response, 200, {
          resource: resource(),
          authorization_servers: options.authorizationServers ?? [this.issuer],
          scopes_supported: options.scopesSupported ?? ['tools:read', 'tools:write'],
          bearer_methods_supported: ['header'],
          resource_name: options.resourceName,
        });
      }
      void this.guard(request, response, { upstreamUrl, resource: resource(), origin, tokens, options });
    });
    origin = `http://127.0.0.1:${await listen(server)}`;
    const close = () => shut(server);
    this.closing.push(close);
    return { url: `${origin}/mcp`, origin, tokens, close };
  }

  private async guard(
    request: IncomingMessage,
    response: ServerResponse,
    behind: { upstreamUrl: string; resource: string; origin: string; tokens: string[]; options: ProtectOptions },
  ): Promise<void> {
    const { upstreamUrl, resource, origin, tokens, options } = behind;
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
    if (token !== undefined) tokens.push(token);
    const accessToken = token === undefined ? undefined : await this.provider.AccessToken.find(token);
    if (!accessToken || accessToken.aud !== resource) {
      const scope = options.challengeScope === undefined ? '' : `, scope="${options.challengeScope}"`;
      const metadata = `resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`;
      const error = token === undefined ? '' : 'error="invalid_token", ';
      response.setHeader('www-authenticate', `Bearer ${error}${metadata}${scope}`);
      return void json(response, 401, { error: 'invalid_token' });
    }
    const body = await text(request);
    const { toolScope, toolScopeSatisfies = true } = options;
    const isGranted = toolScopeSatisfies && (accessToken.scope ?? '').split(' ').includes(toolScope ?? '');
    if (toolScope !== undefined && body.includes('"tools/call"') && !isGranted) {
      response.setHeader('www-authenticate', `Bearer error="insufficient_scope", scope="${toolScope}"`);
      return void json(response, 403, { error: 'insufficient_scope' });
    }
    const { accept = '', 'content-type': type = 'application/json' } = request.headers;
    const answer = await fetch(upstreamUrl, {
      method: request.method,
      headers: { accept, 'content-type': type },
      body: body === '' ? undefined : body,
    });
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'application/json' });
    response.end(await answer.text());
  }

  private async receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.isDown) return void request.socket.destroy();
    const { pathname, searchParams } = new URL(request.url ?? '/', this.issuer);
    if (pathname.startsWith('/ask/')) return this.ask(request, response, searchParams.get('answer'));
    const endpoint = endpoints[pathname];
    if (endpoint === undefined) return this.provider.callback()(request, response);
    const body = request.method === 'POST' ? await text(request) : '';
    const params = request.method === 'POST' && endpoint !== 'register' ? new URLSearchParams(body) : searchParams;
    this.seen.push({ endpoint, params, body, authorization: request.headers.authorization });
    Object.assign(request, { body: endpoint === 'register' ? parse(body) : Object.fromEntries(params) });
    if (endpoint === 'register') {
      if (this.registrationRefusal) return void json(response, 400, this.registrationRefusal);
      this.registrations += 1;
    }
    if (endpoint === 'token' && !(await this.admitToken(params, response))) return;
    void this.provider.callback()(request, response);
  }

  /** False when the request was answered here. */
  private async admitToken(params: URLSearchParams, response: ServerResponse): Promise<boolean> {
    if (params.get('grant_type') === 'refresh_token') this.refreshes += 1;
    if (this.failure) {
      const { status, error } = this.failure;
      this.failure.times -= 1;
      if (this.failure.times === 0) this.failure = null;
      json(response, status, { error });
      return false;
    }
    if (this.isDelaying) {
      const how = await new Promise<'answer' | 'cut'>((resolve) => this.kept.push(resolve));
      if (how === 'cut') {
        response.destroy();
        return false;
      }
    }
    const end = response.end.bind(response) as (chunk?: unknown) => ServerResponse;
    response.end = ((chunk?: unknown) => {
      const answer = parse(String(chunk)) as { access_token?: string; refresh_token?: string };
      if (answer.access_token) {
        this.issued.push({ accessToken: answer.access_token, refreshToken: answer.refresh_token });
      }
      if (this.toHold === 0) return end(chunk);
      this.toHold -= 1;
      this.kept.push((how) => void (how === 'cut' ? response.destroy() : end(chunk)));
      return response;
    }) as typeof response.end;
    return true;
  }

  /** Answers the interaction of a person, who signs in and allows everything, at once or by a button. */
  private async ask(request: IncomingMessage, response: ServerResponse, answer: string | null): Promise<void> {
    const { params } = await this.provider.interactionDetails(request, response);
    if (this.options.asks && answer === null) {
      response.setHeader('content-type', 'text/html');
      return void response.end(
        '<!doctype html><title>Test authorization server</title><h1>Sign in</h1><form>' +
          '<button name="answer" value="allow">Allow</button><button name="answer" value="deny">Deny</button></form>',
      );
    }
    const result = answer === 'deny' ? { error: 'access_denied' } : await this.allowed(params);
    const location = await this.provider.interactionResult(request, response, result);
    response.writeHead(303, { location }).end();
  }

  private async allowed(params: Record<string, unknown>): Promise<InteractionResults> {
    const person = this.options.person?.() ?? { sub: 'somebody' };
    this.people.set(person.sub, person);
    const grant = new this.provider.Grant({ accountId: person.sub, clientId: String(params.client_id) });
    grant.addOIDCScope('openid profile email offline_access');
    if (params.resource !== undefined) grant.addResourceScope(String(params.resource), RESOURCE_SCOPES);
    return { login: { accountId: person.sub }, consent: { grantId: await grant.save() } };
  }

  private changeMetadata(metadata: Record<string, unknown>): void {
    if (this.options.announcesPkce === false) delete metadata.code_challenge_methods_supported;
    this.options.changeMetadata?.(metadata);
  }

  private configuration(): object {
    const { fetchDocument, toleratesReuse = false, registers = true, clients = [] } = this.options;
    return {
      clients: clients.map(({ clientId, clientSecret, redirectUri, authMethod }) => ({
        client_id: clientId,
        ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_method: authMethod ?? (clientSecret === undefined ? 'none' : 'client_secret_basic'),
      })),
      jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), alg: 'RS256', use: 'sig', kid: 'test' }] },
      cookies: { keys: ['only for tests'] },
      findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ ...this.people.get(id), sub: id }) }),
      claims: {
        openid: ['sub', 'groups'],
        email: ['email', 'email_verified'],
        profile: ['name', 'preferred_username'],
      },
      interactions: { url: (_: unknown, { uid }: { uid: string }) => `/ask/${uid}` },
      pkce: { required: () => true },
      routes: Object.fromEntries(
        Object.entries({ authorization: '/auth', registration: '/reg', token: '/token', revocation: '/revoke' }),
      ),
      issueRefreshToken: () => this.options.givesRefreshTokens ?? true,
      rotateRefreshToken: !toleratesReuse,
      ttl: {
        AccessToken: () => this.ttl,
        IdToken: 3_600,
        RefreshToken: 86_400,
        Grant: 86_400,
        Session: 86_400,
        Interaction: 3_600,
      },
      features: {
        devInteractions: { enabled: false },
        registration: { enabled: registers },
        revocation: { enabled: true, allowedPolicy: () => true },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => undefined,
          useGrantedResource: () => false,
          getResourceServerInfo: (_: unknown, resource: string) => ({
            scope: RESOURCE_SCOPES,
            audience: resource,
            accessTokenTTL: this.ttl,
            accessTokenFormat: 'opaque',
          }),
        },
        ...(fetchDocument
          ? { clientIdMetadataDocument: { enabled: true, ack: 'draft-02', allowFetch: () => true } }
          : {}),
      },
      ...(fetchDocument ? { fetch: (url: URL) => fetchDocument(String(url)) } : {}),
    };
  }
}

const endpoints: Record<string, SeenRequest['endpoint']> = {
  '/auth': 'authorize',
  '/reg': 'register',
  '/token': 'token',
  '/revoke': 'revoke',
};

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return {};
  }
}
