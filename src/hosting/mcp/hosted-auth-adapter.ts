import { exchange, type HttpDispatcher } from '../../mcp/client/http/http-exchange.js';
import { UpstreamFailure } from '../../mcp/protocol/mcp-errors.js';
import { UnclearRefusalError, TokenEndpointUnreachableError, TokenRefusedError } from '../../mcp/oauth/oauth-errors.js';
import { tokenSetOf, type TokenSet, type AuthAdapter } from '../../mcp/oauth/tokens.js';
import { isObject } from '../../platform/text/json.js';
import { parseUrl } from '../../config/parse-url.js';
import { withoutAddress } from '../../mcp/client/http/hidden-address.js';
import { jsonIn } from '../../platform/text/json-bounds.js';

/** Timeout of one operation; a refresh locks its credential's row for this long. */
const ANSWER_MS_MAX = 10_000;

/** Error codes of a permanent rejection (RFC 6749 section 5.2, OpenID Connect Core, GitHub). */
const REFUSALS = ['invalid_grant', 'bad_refresh_token', 'access_denied', 'interaction_required', 'login_required'];

const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** The auth adapter of a module, whose error messages are never repeated: they can contain tokens. */
export class HostedAuthAdapter implements AuthAdapter {
  /**
   * @param url URL of its path, with the caller's configuration as the query
   *
   * @param name name of the server, quoted
   */
  constructor(
    private readonly dispatcher: HttpDispatcher,
    private readonly url: URL,
    private readonly name: string,
  ) {}

  async authorizationUrl(ask: Parameters<AuthAdapter['authorizationUrl']>[0]): Promise<string> {
    const { authorizationUrl } = await this.callAdapter('getAuthorizationUrl', ask);
    const url = typeof authorizationUrl === 'string' ? parseUrl(authorizationUrl) : null;
    const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK.test(url.hostname));
    if (url && isSafe) return url.href;
    throw new UnclearRefusalError(`The auth adapter of ${this.name} named no https address to sign in at.`);
  }

  async exchangeCode(grant: Parameters<AuthAdapter['exchangeCode']>[0]): Promise<TokenSet> {
    return this.tokens(await this.callAdapter('exchangeCode', grant));
  }

  async refreshToken(refreshToken: string): Promise<TokenSet> {
    return this.tokens({ refreshToken, ...(await this.callAdapter('refreshToken', { refreshToken })) });
  }

  private tokens({ accessToken, refreshToken, expiresIn }: Record<string, unknown>): TokenSet {
    const tokens = tokenSetOf({ accessToken, refreshToken, expiresIn });
    if (tokens) return tokens;
    throw new UnclearRefusalError(`The auth adapter of ${this.name} gave no bearer token of up to 32 KB.`);
  }

  private async callAdapter(action: string, payload: object): Promise<Record<string, unknown>> {
    const headers = { 'content-type': 'application/json', accept: 'application/json' };
    const body = JSON.stringify({ action, payload });
    try {
      const request = { url: this.url, method: 'POST', headers, body, timeoutMs: ANSWER_MS_MAX } as const;
      const { status, text } = await exchange(this.dispatcher, request);
      const answer = jsonIn(text ?? '');
      const { ok, value, message } = isObject(answer) ? answer : {};
      if (status === 200 && ok === true && isObject(value)) return value;
      const refusal = REFUSALS.find((word) => typeof message === 'string' && message.includes(word));
      if (refusal !== undefined) throw new TokenRefusedError(refusal, this.name);
      throw new UnclearRefusalError(
        `The auth adapter of ${this.name} failed at ${action}: its author finds the reason in the logs of the server.`,
      );
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      throw new TokenEndpointUnreachableError(withoutAddress(error.message, this.url, this.name));
    }
  }
}
