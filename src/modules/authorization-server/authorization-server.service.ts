/**
 * Slipway's OAuth authorization server (RFC 6749 with PKCE, RFC 7591, RFC 8707, client id metadata documents): `oidc-provider`, configured
 * here. It serves its own paths ahead of guards and routes; users decide on the pages of `consent.controller.ts`.
 *
 * Policy: only codes and refresh tokens, always PKCE S256, always one resource, no ID tokens, and no sessions of the library: each
 * authorization goes through our consent page, which knows who is signed in.
 */
import { generateKeyPairSync } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable, Logger } from '@nestjs/common';
import type {
  Configuration,
  default as Provider,
  Grant,
  Interaction,
  InteractionResults,
  KoaContextWithOIDC,
} from 'oidc-provider';
import { Env } from '../../config/env.js';
import { BodyBudget } from '../../platform/http/body/body-budget.js';
import { readBody } from '../../platform/http/body/request-body.js';
import { DomainError, statusOf } from '../../platform/errors/domain-error.js';
import { logFailure } from '../../platform/errors/log-failure.js';
import { JSON_TYPE } from '../../platform/http/json-answer.js';
import { keysFor } from '../../platform/http/secrets.js';
import { requireOwnHost } from '../../platform/pages/own-host.js';
import { messagePage, PageError, PlainPageError } from '../../platform/pages/page.js';
import { Schedule } from '../../platform/schedule/schedule.js';
import { Vault } from '../../platform/vault/vault.js';
import { TOKEN_PREFIX } from '../auth/mcp-endpoint.access.js';
import { RequestLimits } from '../auth/request-limits.service.js';
import { AuthorizationServerRepository, UNFINISHED_PER_ADDRESS_MAX } from './authorization-server.repository.js';
import { MCP_SCOPE, paths } from './authorization-server.types.js';
import { CLIENT_DOCUMENT_BYTES_MAX, ClientDocumentError, ClientDocuments } from './client-documents.js';
import { allowLoopbackPorts, clientMetadataExtension } from './client-metadata.js';
import { RefreshTokens } from './refresh-tokens.js';
import { endpointOfResource, issuerOf, resourceOf, wellKnown } from './protected-resource.js';
import { adapterOf, type ModelStore } from './stored-models.js';
import { TokensService } from './tokens.service.js';

const REFRESH_SECONDS = 90 * 24 * 60 * 60;

/** Lifetime of an authorization, longer than that of a refresh token, whose use extends it. */
export const GRANT_SECONDS = REFRESH_SECONDS + 24 * 60 * 60;

/** Lifetime of a code. Clients redeem it immediately; the log names those that do not. */
const CODE_SECONDS = 60;

const INTERACTION_SECONDS = 60 * 60;

/** Maximum number of characters of `state`, which is returned to clients unchanged. Common clients send less than 500. */
const STATE_LENGTH_MAX = 4_096;

/** Parameters of OpenID Connect that are ignored, and response modes other than the query: a form would run a script on our origin. */
const IGNORED_PARAMETERS =
  'nonce max_age acr_values claims claims_locales id_token_hint login_hint display ui_locales response_mode'.split(' ');

@Injectable()
export class AuthorizationServerService {
  private readonly logger = new Logger('login');
  private readonly refreshTokens: RefreshTokens;
  private provider: Provider | null = null;
  private callback: (request: IncomingMessage, response: ServerResponse) => Promise<void> = () => Promise.resolve();

  constructor(
    private readonly authorizationServerRepository: AuthorizationServerRepository,
    private readonly tokensService: TokensService,
    private readonly clientDocuments: ClientDocuments,
    private readonly vault: Vault,
    private readonly requestLimits: RequestLimits,
    private readonly bodyBudget: BodyBudget,
    private readonly schedule: Schedule,
    private readonly env: Env,
  ) {
    this.refreshTokens = new RefreshTokens(keysFor(env, 'slipway refresh tokens'));
  }

  /** Starts the server; {@link tryServe} does not serve requests before. */
  async start(): Promise<void> {
    // The library is written for Node 22: Node 20 lacks one function, and the library prints a line about it.
    type Parse = (url: string) => URL | null;
    (URL as unknown as { parse?: Parse }).parse ??= (url) => (URL.canParse(url) ? new URL(url) : null);
    const output = globalThis.console;
    const warn = output.warn.bind(output);
    output.warn = (...words: unknown[]) => {
      if (!String(words[0]).includes('Unsupported runtime')) warn(...words);
    };
    const library = await import('oidc-provider').finally(() => (output.warn = warn));
    const provider = new library.default(issuerOf(this.env), this.configuration(library));
    provider.proxy = true;
    const { refreshTokens } = this;
    const readRotatedJti = () => library.default.ctx?.oidc.entities.RotatedRefreshToken?.jti ?? null;
    const access = idsOf(provider.AccessToken);
    const { generateTokenId } = access;
    access.generateTokenId = function () {
      const random = generateTokenId.call(this);
      const presented = readRotatedJti();
      return TOKEN_PREFIX + (presented === null ? random : refreshTokens.accessSecret(presented));
    };
    idsOf(provider.RefreshToken).generateTokenId = function () {
      return refreshTokens.next(this.grantId, readRotatedJti());
    };
    allowLoopbackPorts(provider.Client as unknown as Parameters<typeof allowLoopbackPorts>[0]);
    provider.on('server_error', (_context: unknown, error: Error) => this.logger.error(error));
    provider.on('grant.revoked', (_context: unknown, grantId: string) =>
      this.tokensService.announceRevocation([grantId]),
    );
    this.callback = provider.callback();
    this.provider = provider;
    this.schedule.every('sweep of authorization codes', CODE_SECONDS * 1_000, async () => {
      for (const client of await this.authorizationServerRepository.sweepCodes()) {
        this.logger.warn(
          `${client} was authorized by its user and did not fetch its token within ${CODE_SECONDS} s: the login failed in the client`,
        );
      }
    });
  }

  /** Serves a request for one of its paths. @returns false for any other path */
  tryServe(request: IncomingMessage, response: ServerResponse): boolean {
    const { url = '', method } = request;
    const [path = ''] = url.split('?');
    if (path.startsWith('/.well-known/') || path === paths.jwks) {
      const document = path === paths.jwks ? { keys: [] } : wellKnown(request, this.env);
      if (!document || !this.provider) return false;
      this.answering(request, response, async () => {
        if (openToPages(request, response)) return;
        this.requestLimits.admitStranger(request, response);
        if (method !== 'GET' && method !== 'HEAD')
          return sendJson(response, 405, { error: 'invalid_request' }, { allow: 'GET' });
        response.setHeader('cache-control', 'public, max-age=300');
        sendJson(response, 200, document);
      });
      return true;
    }
    const isClientPath = path === paths.token || path === paths.register || path === paths.revoke;
    const isPersonPath = path === paths.authorize || path.startsWith(`${paths.authorize}/`);
    if (!this.provider || !(isClientPath || isPersonPath)) return false;
    this.answering(request, response, async () => {
      if (isPersonPath) return this.authorize(request, response);
      if (openToPages(request, response)) return;
      if (path === paths.register) return this.register(request, response);
      const form = new URLSearchParams(await this.bodyOf(request, response));
      const token = form.get('grant_type') === 'refresh_token' ? form.get('refresh_token') : null;
      // A client may repeat the scopes that it first requested, and gets the granted ones (RFC 6749 section 6).
      if (token !== null) form.delete('scope');
      const grantId = token === null ? null : this.refreshTokens.grantOf(token);
      // Refreshes are limited by authorization, not by address: one office can have many.
      if (grantId === null) this.requestLimits.admitStranger(request, response);
      else this.requestLimits.admitRefresh(grantId);
      this.spellResources(form);
      await this.serve(request, response, { body: form.toString() });
      if (grantId !== null && response.statusCode >= 400) this.requestLimits.countRefused(request);
    });
    return true;
  }

  /** @returns null if this browser has no pending authorization, or an expired one */
  async interaction(request: IncomingMessage, response: ServerResponse): Promise<Interaction | null> {
    if (!this.provider) return null;
    try {
      return await this.provider.interactionDetails(this.forLibrary(request), response);
    } catch (error) {
      if ((error as Error).name === 'SessionNotFound') return null;
      throw error;
    }
  }

  async client(
    id: string,
  ): Promise<{ id: string; name: string; host: string | null; redirectUris: readonly string[] } | null> {
    const client = await this.startedProvider.Client.find(id);
    if (!client) return null;
    const host = /^https:\/\//.test(id) ? new URL(id).host : null;
    return { id, name: client.clientName ?? host ?? 'An app', host, redirectUris: client.redirectUris ?? [] };
  }

  /** @returns the URL to which the browser is redirected */
  finish(request: IncomingMessage, response: ServerResponse, result: InteractionResults): Promise<string> {
    return this.startedProvider.interactionResult(this.forLibrary(request), response, result);
  }

  private get startedProvider(): Provider {
    if (!this.provider) throw new Error('The authorization server is off');
    return this.provider;
  }

  /** Drops unknown scopes, and gives the resource one spelling. @throws PageError */
  private async authorize(request: IncomingMessage, response: ServerResponse): Promise<void> {
    requireOwnHost(request, this.env);
    this.requestLimits.admitStranger(request, response);
    const url = new URL(request.url ?? '', this.env.baseUrl);
    if (url.pathname !== paths.authorize) return this.serve(request, response);
    url.searchParams.set('scope', `${MCP_SCOPE} offline_access`);
    for (const name of IGNORED_PARAMETERS) url.searchParams.delete(name);
    if ((url.searchParams.get('state')?.length ?? 0) > STATE_LENGTH_MAX) {
      throw new PlainPageError(
        'invalid',
        'login',
        'This login cannot go on',
        `The app sent a "state" of more than ${STATE_LENGTH_MAX} characters. Start again from the app. If it fails again, contact its developer.`,
      );
    }
    this.spellResources(url.searchParams);
    await this.serve(request, response, { url: url.pathname + url.search });
  }

  private async register(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requestLimits.admitStranger(request, response);
    await this.serve(request, response, { body: await this.bodyOf(request, response) });
  }

  private bodyOf(request: IncomingMessage, response: ServerResponse): Promise<string> {
    this.bodyBudget.admitStranger(request, response, request.url?.startsWith(paths.token) ? 'tokens' : 'forms');
    return readBody(request, Infinity);
  }

  /** Replaces each resource of a request by the canonical address of its endpoint, without duplicates. */
  private spellResources(parameters: URLSearchParams): void {
    const resources = parameters.getAll('resource').map((resource) => {
      const endpoint = endpointOfResource(resource, this.env);
      return endpoint ? resourceOf(endpoint, this.env) : resource;
    });
    parameters.delete('resource');
    for (const resource of new Set(resources)) parameters.append('resource', resource);
  }

  private serve(request: IncomingMessage, response: ServerResponse, changes: Changes = {}): Promise<void> {
    return this.clientDocuments.askedBy(this.requestLimits.addressOf(request), () =>
      this.callback(this.forLibrary(request, changes), response),
    );
  }

  /** Gives the request the host and protocol of `PUBLIC_URL`, and no `Origin`, since CORS is handled here. */
  private forLibrary(request: IncomingMessage, { url, body }: Changes = {}): IncomingMessage {
    const { host, protocol } = new URL(this.env.baseUrl);
    const { origin: _origin, 'x-forwarded-host': _host, ...headers } = request.headers;
    const overrides: PropertyDescriptorMap = {
      headers: {
        value: {
          ...headers,
          host,
          'x-forwarded-proto': protocol.slice(0, -1),
          ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }),
        },
      },
      url: { value: url ?? request.url, writable: true },
    };
    if (body !== undefined) {
      overrides.readable = { value: true };
      overrides.iterator = {
        value: async function* () {
          yield Buffer.from(body);
        },
      };
    }
    return Object.create(request, overrides) as IncomingMessage;
  }

  /** Runs in the background; errors become those of RFC 6749, or a page for people. */
  private answering(request: IncomingMessage, response: ServerResponse, answer: () => Promise<void>): void {
    answer().catch((error: unknown) => {
      if (response.headersSent) return void response.destroy();
      if (error instanceof PageError) {
        const { html, headers } = messagePage(this.env, error.title, error.message);
        return void response.writeHead(statusOf[error.kind], headers).end(html);
      }
      if (error instanceof DomainError) {
        const { kind, retryAfterSeconds, message } = error;
        const word = kind === 'rate_limited' ? 'temporarily_unavailable' : 'invalid_request';
        const headers: Record<string, string> =
          retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
        return sendJson(response, statusOf[kind], { error: word, error_description: message }, headers);
      }
      logFailure(this.logger, error, request);
      sendJson(response, 500, {
        error: 'server_error',
        error_description: 'The login failed here. Try again in a moment.',
      });
    });
  }

  private configuration({ errors, interactionPolicy, default: Provider }: Library): Configuration {
    const { env } = this;
    const store: ModelStore = {
      rows: this.authorizationServerRepository,
      vault: this.vault,
      logger: this.logger,
      grantSeconds: GRANT_SECONDS,
      refreshTokens: this.refreshTokens,
      asker: () => this.clientDocuments.asker ?? '',
      used: () => Provider.ctx?.oidc.entities.RotatedRefreshToken?.jti ?? null,
      endGrant: async (id) => {
        await this.authorizationServerRepository.deleteGrant(id);
        this.tokensService.announceRevocation([id]);
      },
      invalidGrant: (words) => new errors.InvalidGrant(words),
      usedAssertion: () => new errors.InvalidClientAuth('client assertion tokens must only be used once'),
      tooManyClients: () => {
        Provider.ctx?.set('retry-after', '3600');
        const error = new errors.CustomOIDCProviderError(
          'temporarily_unavailable',
          `${UNFINISHED_PER_ADDRESS_MAX} clients registered from this address within an hour and were never allowed anything. Try again in 3600 s.`,
        );
        return Object.assign(error, { status: 429, statusCode: 429 });
      },
    };
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const cookie = { signed: true, httpOnly: true, sameSite: 'lax' as const, secure: env.baseUrl.startsWith('https:') };
    const off = { enabled: false };
    // Prompts that clients can name. Only the consent page handles them; it also asks for the sign-in.
    const { Prompt, Check } = interactionPolicy;
    const policy = ['login', 'select_account'].map((name) => new Prompt({ name, requestable: true }));
    const isUndecided = ({ oidc }: KoaContextWithOIDC) => oidc.result?.consent?.grantId === undefined;
    const undecided = new Check('endpoint_consent', 'the person has not decided yet', isUndecided);
    policy.push(new Prompt({ name: 'consent', requestable: true }, undecided));
    return {
      adapter: (name: string) => adapterOf(name, store),
      // Signs nothing: there are no ID tokens. Without a key the library warns.
      jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'ES256' }] },
      clientDefaults: { id_token_signed_response_alg: 'ES256' },
      routes: {
        authorization: paths.authorize,
        token: paths.token,
        registration: paths.register,
        revocation: paths.revoke,
        jwks: paths.jwks,
      },
      scopes: ['offline_access'],
      claims: {},
      responseTypes: ['code'],
      clientAuthMethods: ['none', 'client_secret_post', 'client_secret_basic', 'private_key_jwt'],
      pkce: { required: () => true },
      cookies: {
        keys: keysFor(env, 'slipway login cookies').map((key) => key.toString('base64url')),
        names: { session: 'slipway-login', interaction: 'slipway-consent', resume: 'slipway-resume' },
        long: cookie,
        short: cookie,
      },
      ttl: {
        AccessToken: () => env.oauthTokenHours * 60 * 60,
        AuthorizationCode: CODE_SECONDS,
        RefreshToken: () => REFRESH_SECONDS,
        Grant: () => GRANT_SECONDS,
        Interaction: INTERACTION_SECONDS,
        Session: INTERACTION_SECONDS,
        ReplayDetection: CODE_SECONDS * 10,
      },
      features: {
        devInteractions: off,
        userinfo: off,
        rpInitiatedLogout: off,
        pushedAuthorizationRequests: off,
        dPoP: off,
        clientCredentials: off,
        revocation: {
          enabled: true,
          allowedPolicy: (_context: unknown, client: { clientId: string }, token: { clientId?: string }) =>
            token.clientId === client.clientId,
        },
        registration: { enabled: true, issueRegistrationAccessToken: false },
        clientIdMetadataDocument: {
          enabled: true,
          ack: 'draft-02',
          allowFetch: () => true,
          allowClient: () => true,
          // Our own fetch caches.
          cacheDuration: { min: 60, max: 300 },
        },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => {
            throw new errors.InvalidTarget(
              'resource is missing: it must be the address of an MCP endpoint of this service',
            );
          },
          useGrantedResource: () => true,
          getResourceServerInfo: ({ oidc }: KoaContextWithOIDC, resource: string) => {
            if (Array.isArray(oidc.params?.resource)) {
              throw new errors.InvalidTarget('a login is for one resource, and more than one was sent');
            }
            if (!endpointOfResource(resource, env)) {
              throw new errors.InvalidTarget('resource must be the address of an MCP endpoint of this service');
            }
            return {
              scope: MCP_SCOPE,
              audience: resource,
              accessTokenFormat: 'opaque',
              accessTokenTTL: env.oauthTokenHours * 60 * 60,
            };
          },
        },
      },
      extraClientMetadata: clientMetadataExtension(errors.CustomOIDCProviderError, env.oauthRedirectHosts),
      fetch: this.clientDocuments.fetch,
      fetchResponseBodyLimits: {
        'client_id metadata document': CLIENT_DOCUMENT_BYTES_MAX,
        jwks_uri: CLIENT_DOCUMENT_BYTES_MAX,
      },
      clientBasedCORS: () => true,
      expiresWithSession: () => false,
      issueRefreshToken: () => true,
      rotateRefreshToken: true,
      // Revoking an access token also revokes its authorization: its streams close, and no client remains without a refresh token.
      revokeGrantPolicy: () => true,
      findAccount: async (_context: unknown, accountId: string) => ({
        accountId,
        claims: () => Promise.resolve({ sub: accountId }),
      }),
      loadExistingGrant: async ({ oidc }: KoaContextWithOIDC): Promise<Grant | undefined> => {
        const grantId = oidc.result?.consent?.grantId;
        return grantId === undefined ? undefined : oidc.provider.Grant.find(grantId);
      },
      interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/consent/${uid}`, policy },
      renderError: (
        context: KoaContextWithOIDC,
        { error, error_description: description }: { error: string; error_description?: string },
        failure: Error,
      ) => {
        const { cause } = failure;
        const word = failure instanceof errors.SessionNotFound ? 'session_not_found' : error;
        const reason =
          cause instanceof ClientDocumentError ? cause.message : (REASONS[word] ?? REASONS.invalid_request);
        const note = description === undefined ? error : `${error}: ${description}`;
        const { html, headers } = messagePage(env, 'This login cannot go on', String(reason), { note });
        context.set(headers);
        context.body = html;
      },
    } as Configuration;
  }
}

/** Messages of errors on a page. Errors that the app can receive are sent to the app instead. */
const REASONS: Record<string, string> = {
  invalid_client: 'This service no longer knows the app. Remove the server in your app, and add it again.',
  invalid_redirect_uri:
    'The app wants to return to an address that it did not register. Start again from the app. If it fails again, contact its developer.',
  invalid_request:
    'The request of the app is not complete. Start again from the app. If it fails again, contact its developer.',
  server_error: 'The login failed here. The operator finds the reason in the log. Try again in a moment.',
  // The authorization has expired, or began in another browser.
  session_not_found:
    'This login is no longer valid, or was started in another browser. Go back to your app and connect again.',
};

interface Changes {
  url?: string;
  body?: string;
}

type Library = typeof import('oidc-provider');

/** Lets scripts of any web page read the response: these paths read no cookies. @returns true for a preflight, which is then complete */
function openToPages({ method, headers }: IncomingMessage, response: ServerResponse): boolean {
  response.setHeader('access-control-allow-origin', '*');
  response.setHeader('access-control-expose-headers', '*');
  if (method !== 'OPTIONS') return false;
  response.setHeader('access-control-allow-methods', 'GET, POST');
  response.setHeader(
    'access-control-allow-headers',
    headers['access-control-request-headers'] ?? 'Authorization, Content-Type',
  );
  response.setHeader('access-control-max-age', '7200');
  response.writeHead(204).end();
  return true;
}

function sendJson(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
  response
    .writeHead(status, { 'cache-control': 'no-store', ...headers, 'content-type': JSON_TYPE })
    .end(JSON.stringify(body));
}

/** Returns the model with a method that the types of the library do not declare. */
function idsOf(model: unknown): { generateTokenId: (this: { grantId: string }) => string } {
  return (model as { prototype: { generateTokenId: () => string } }).prototype;
}
