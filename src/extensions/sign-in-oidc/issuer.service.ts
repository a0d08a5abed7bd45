import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { ClientAuth, Configuration, CustomFetch } from 'openid-client';
import { type Egress, egressTo, Env, InjectSettings, readWithin, withTimeout } from '../../extension.js';
import { type Claims, GOOGLE } from './identity.js';
import { issuerUnavailable, SignInError, signInRejected } from './oidc-errors.js';
import { nameOf, oidcSettingsSchema, type OidcSettings } from './oidc-settings.js';

/** Random values that bind the issuer's response to the request. */
export interface Checks {
  state: string;
  nonce: string;
  verifier: string;
}

export interface Confirmed {
  claims: Claims;
  refreshToken: string | null;
  idToken: string | null;
}

const ANSWER_BYTES_MAX = 1024 * 1024;

/** The scope of refresh tokens that outlive the session at the issuer. */
const OFFLINE = 'offline_access';

const TIMEOUT_SECONDS = 10;

/**
 * Codes of `openid-client` for an issuer that does not respond, or responds with something else. A network error has no
 * code.
 */
const NO_ANSWER = new Set([undefined, 'OAUTH_TIMEOUT', 'OAUTH_RESPONSE_IS_NOT_CONFORM', 'OAUTH_PARSE_ERROR']);

/** Accepted difference between the clocks of the issuer and of this process. */
const SKEW_SECONDS = 60;

const CHECKED_MS = 60_000;
const WAIT_MS = 2_000;

/** The issuer. Each sign-in reads its metadata and keys again, so that a rotation needs no restart. */
@Injectable()
export class IssuerService implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly name: string;
  private readonly logger = new Logger('oidc');
  private readonly egress: Egress;
  private readonly redirectUri: string;
  private readonly signedOutUri: string;
  private readonly isGoogle: boolean;
  /** Seconds by which the issuer's clock was ahead in its last response. */
  private aheadSeconds = 0;
  private lastCheck: { isAvailable: boolean; at: number } | null = null;
  private checking: Promise<unknown> | null = null;

  constructor(
    env: Env,
    @InjectSettings(oidcSettingsSchema) private readonly oidcSettings: OidcSettings,
  ) {
    this.name = nameOf(oidcSettings);
    this.egress = egressTo(new URL(oidcSettings.OIDC_ISSUER).hostname, env);
    this.isGoogle = oidcSettings.OIDC_ISSUER === GOOGLE;
    this.signedOutUri = `${env.baseUrl}/login`;
    this.redirectUri = `${env.baseUrl}/login/oidc/callback`;
  }

  /** Discovers the issuer in the background: an unavailable issuer does not block the start. */
  onApplicationBootstrap(): void {
    void this.check();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.egress.close();
  }

  /** Returns the problem of a check that is at most a minute old; null if people can sign in. */
  async problem(): Promise<string | null> {
    const { isAvailable = false, at = 0 } = this.lastCheck ?? {};
    if (!isAvailable || Date.now() - at > CHECKED_MS) {
      const check = this.check();
      if (this.lastCheck === null) await withTimeout(WAIT_MS, check, null);
    }
    return this.lastCheck?.isAvailable
      ? null
      : `${this.name} is unavailable right now. Try again in a minute, or use another way to sign in.`;
  }

  /** Checks the issuer, its clock and the redirect address. @returns what was found @throws Error with the next step */
  async examine(): Promise<string> {
    const { OIDC_ISSUER, OIDC_CLIENT_ID } = this.oidcSettings;
    const { url } = await this.authorizationUrl().catch((error: SignInError) => {
      throw new Error(`${OIDC_ISSUER} is unavailable: ${reasonOf(error.detail)}. Check OIDC_ISSUER and EGRESS_PROXY.`);
    });
    if (Math.abs(this.aheadSeconds) > SKEW_SECONDS) {
      throw new Error(
        `The clock of ${OIDC_ISSUER} differs by ${this.aheadSeconds} s from the one of this machine: synchronize it (NTP).`,
      );
    }
    const { status } = await this.fetch(url, { method: 'GET', headers: {}, body: undefined, redirect: 'manual' });
    if (status >= 400) {
      throw new Error(
        `${OIDC_ISSUER} responds with ${status} to a sign-in: register the redirect address ${this.redirectUri} for the client ${OIDC_CLIENT_ID}.`,
      );
    }
    return `${OIDC_ISSUER} accepts the redirect address ${this.redirectUri}`;
  }

  /** @throws SignInError */
  async authorizationUrl(): Promise<{ url: string; checks: Checks }> {
    const { buildAuthorizationUrl, calculatePKCECodeChallenge, ...random } = await import('openid-client');
    const configuration = await this.discover();
    const checks = {
      state: random.randomState(),
      nonce: random.randomNonce(),
      verifier: random.randomPKCECodeVerifier(),
    };
    const url = buildAuthorizationUrl(configuration, {
      redirect_uri: this.redirectUri,
      scope: this.scopesAt(configuration),
      ...(this.isGoogle ? { access_type: 'offline' } : {}),
      state: checks.state,
      nonce: checks.nonce,
      code_challenge: await calculatePKCECodeChallenge(checks.verifier),
      code_challenge_method: 'S256',
    });
    return { url: url.href, checks };
  }

  /**
   * @param search the query of the response
   * @throws SignInError
   */
  async confirm(search: string, { state, nonce, verifier }: Checks): Promise<Confirmed> {
    const { authorizationCodeGrant } = await import('openid-client');
    const configuration = await this.discover();
    try {
      const tokens = await authorizationCodeGrant(configuration, new URL(this.redirectUri + search), {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims() as Claims;
      if (claims.azp !== undefined && claims.azp !== this.oidcSettings.OIDC_CLIENT_ID) {
        throw signInRejected(this.name, 'The claim "azp" names another client', 'azp');
      }
      const isKept = this.isOffline(configuration);
      return {
        claims: await this.withUserInfo(configuration, tokens.access_token, claims),
        refreshToken: (isKept && tokens.refresh_token) || null,
        idToken: tokens.id_token ?? null,
      };
    } catch (error) {
      throw this.toSignInError(error);
    }
  }

  /** @returns `rejected` if the issuer reports that the person can no longer sign in; null for any other error */
  async refresh(refreshToken: string, subject: string): Promise<Confirmed | 'rejected' | null> {
    try {
      const { refreshTokenGrant } = await import('openid-client');
      const configuration = await this.discover();
      const tokens = await refreshTokenGrant(configuration, refreshToken);
      const { iss = this.oidcSettings.OIDC_ISSUER, sub = subject, ...rest } = tokens.claims() ?? {};
      if (sub !== subject) throw new Error('The ID token is that of another person');
      const claims = await this.withUserInfo(configuration, tokens.access_token, { ...rest, iss, sub });
      return { claims, refreshToken: tokens.refresh_token ?? null, idToken: null };
    } catch (error) {
      if ((error as { error?: string }).error === 'invalid_grant') return 'rejected';
      this.logger.warn(`The check of a person failed: ${reasonOf(error)}`);
      return null;
    }
  }

  /** Returns the requested scopes. By default they include refresh tokens that outlive the session at the issuer, if it supports them. */
  private scopesAt(configuration: Configuration): string {
    const isAnnounced = configuration.serverMetadata().scopes_supported?.includes(OFFLINE);
    return this.oidcSettings.OIDC_SCOPES ?? `openid profile email${isAnnounced ? ` ${OFFLINE}` : ''}`;
  }

  /**
   * Returns false for refresh tokens that expire with the session at the issuer: the person would seem to have left.
   */
  private isOffline(configuration: Configuration): boolean {
    return this.isGoogle || this.scopesAt(configuration).split(' ').includes(OFFLINE);
  }

  /** Returns the address at which a person signs out; null if the issuer has none, or does not respond within 2 s. */
  async signOutUrl(idToken: string | null): Promise<string | null> {
    const { buildEndSessionUrl } = await import('openid-client');
    const discovered = this.discover().catch(() => null);
    const configuration = await withTimeout(WAIT_MS, discovered, null);
    if (!configuration?.serverMetadata().end_session_endpoint) return null;
    return buildEndSessionUrl(configuration, {
      post_logout_redirect_uri: this.signedOutUri,
      ...(idToken === null ? {} : { id_token_hint: idToken }),
    }).href;
  }

  private async withUserInfo(configuration: Configuration, accessToken: string, claims: Claims): Promise<Claims> {
    const { OIDC_GROUPS, OIDC_GROUPS_CLAIM } = this.oidcSettings;
    const isComplete =
      claims.email !== undefined && (OIDC_GROUPS.length === 0 || claims[OIDC_GROUPS_CLAIM] !== undefined);
    if (isComplete || configuration.serverMetadata().userinfo_endpoint === undefined) return claims;
    const { fetchUserInfo } = await import('openid-client');
    return { ...(await fetchUserInfo(configuration, accessToken, claims.sub)), ...claims };
  }

  /** @throws SignInError */
  private async discover(): Promise<Configuration> {
    const settings = this.oidcSettings;
    const client = await import('openid-client');
    // Many issuers accept a secret with special characters in the form of RFC 6749 only in the body.
    const authenticate: ClientAuth = (server, ...request) => {
      const isPost = server.token_endpoint_auth_methods_supported?.includes('client_secret_post');
      const method = isPost ? client.ClientSecretPost : client.ClientSecretBasic;
      method(settings.OIDC_CLIENT_SECRET)(server, ...request);
    };
    const isInsecure = settings.OIDC_ISSUER.startsWith('http:');
    try {
      const configuration = await client.discovery(
        new URL(settings.OIDC_ISSUER),
        settings.OIDC_CLIENT_ID,
        { client_secret: settings.OIDC_CLIENT_SECRET, [client.clockTolerance]: SKEW_SECONDS },
        authenticate,
        {
          timeout: TIMEOUT_SECONDS,
          [client.customFetch]: this.fetch,
          // Checks the signature of the ID token, although it arrives over TLS.
          execute: [client.enableNonRepudiationChecks, ...(isInsecure ? [client.allowInsecureRequests] : [])],
        },
      );
      this.note(true);
      return configuration;
    } catch (error) {
      this.note(false, error);
      throw issuerUnavailable(this.name, error);
    }
  }

  private check(): Promise<unknown> {
    const done = () => (this.checking = null);
    return (this.checking ??= this.discover().then(done, done));
  }

  private note(isAvailable: boolean, error?: unknown): void {
    if (!isAvailable && this.lastCheck?.isAvailable !== false) {
      this.logger.warn(`The issuer ${this.oidcSettings.OIDC_ISSUER} is unavailable: ${reasonOf(error)}`);
    }
    this.lastCheck = { isAvailable, at: Date.now() };
  }

  private toSignInError(error: unknown): SignInError {
    if (error instanceof SignInError) return error;
    this.logger.warn(`A sign-in failed: ${reasonOf(error)}`);
    const { code, error: issuerCode = code } = error as { code?: string; error?: string };
    return NO_ANSWER.has(code) ? issuerUnavailable(this.name, error) : signInRejected(this.name, error, issuerCode);
  }

  private readonly fetch: CustomFetch = async (url, { method, headers, body, signal }) => {
    const sent = body === undefined || body === null ? undefined : String(body as string | URLSearchParams);
    const request = { method: method as 'GET' | 'POST', headers, body: sent, signal: signal ?? undefined };
    const answer = await this.egress.request(this.egress.check(url), request);
    const bytes = await readWithin(answer.body, ANSWER_BYTES_MAX);
    if (bytes === null) throw new Error(`${url} responded with more than ${ANSWER_BYTES_MAX} bytes`);
    const { statusCode: status, headers: received } = answer;
    const time = Date.parse(String(received.date));
    if (!Number.isNaN(time)) this.aheadSeconds = Math.round((time - Date.now()) / 1_000);
    return new Response(bytes.length === 0 ? null : new Uint8Array(bytes), {
      status,
      headers: received as Record<string, string>,
    });
  };
}

/** Returns the reason of an error, without the checked values. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error && cause.message !== '' ? `${message}: ${cause.message}` : message;
}
