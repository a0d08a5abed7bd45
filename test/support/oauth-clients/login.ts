import { createHash, randomBytes } from 'node:crypto';
import type { TestApp } from '../app.js';
import type { BrowserSession } from '../people/browser-session.js';
import { formTokenIn } from '../people/browser-session.js';

/** Tokens of a login. */
export interface Tokens {
  access_token: string;
  refresh_token: string;
  token_type: string;
  expires_in: number;
  scope: string;
}

/** An MCP client that logs in by URL: registers, sends a person to the consent page, and fetches tokens. */
export class LoginClient {
  id = '';
  secret: string | undefined;
  readonly verifier = randomBytes(32).toString('base64url');
  readonly state = randomBytes(8).toString('hex');

  /** @param resource address of the MCP endpoint, as its user typed it */
  constructor(
    readonly app: Pick<TestApp, 'url'>,
    readonly resource: string,
    readonly redirectUri = 'http://127.0.0.1:43110/callback',
  ) {}

  /** Registers (RFC 7591). @returns the answer */
  async register(body: object = {}): Promise<{ status: number; body: Record<string, unknown> }> {
    const metadata = {
      client_name: 'Test client',
      redirect_uris: [this.redirectUri],
      token_endpoint_auth_method: 'none',
      ...body,
    };
    const answer = await this.json('/register', metadata);
    const registered = answer.body as { client_id: string; client_secret?: string };
    if (answer.status === 201) {
      this.id = registered.client_id;
      this.secret = registered.client_secret;
    }
    return answer;
  }

  /** The address that the client opens in a browser. A parameter that is undefined is left out. */
  authorizePath(changes: Record<string, string | undefined> = {}): string {
    const parameters = {
      client_id: this.id,
      response_type: 'code',
      redirect_uri: this.redirectUri,
      scope: 'mcp',
      state: this.state,
      code_challenge: createHash('sha256').update(this.verifier).digest('base64url'),
      code_challenge_method: 'S256',
      resource: this.resource,
      ...changes,
    };
    const defined = Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== undefined);
    return `/authorize?${new URLSearchParams(defined).toString()}`;
  }

  /**
   * Takes a browser through the authorization, and answers the consent page.
   *
   * @param fields of the form, besides its hidden ones
   * @returns the address to which the browser returns
   */
  async authorize(
    browser: BrowserSession,
    fields: Record<string, string> = { answer: 'allow' },
    changes: Record<string, string | undefined> = {},
  ): Promise<URL> {
    const begun = await browser.get(this.authorizePath(changes));
    if (begun.status !== 303) throw new Error(`/authorize answered ${begun.status}: ${begun.text}`);
    const page = pathOf(begun.headers.location ?? '');
    if (!page.startsWith('/consent/')) return new URL(begun.headers.location ?? '');
    const shown = await browser.get(page);
    if (shown.status === 303) return this.resume(browser, shown.headers.location ?? '');
    const account = /name="account" value="([^"]+)"/.exec(shown.text)?.[1] ?? '';
    const decided = await browser.post(page, { 'form-token': formTokenIn(shown), account, ...fields });
    if (decided.status !== 303) throw new Error(`${page} answered ${decided.status}: ${decided.text}`);
    return this.resume(browser, decided.headers.location ?? '');
  }

  /** Follows the browser back to the authorization endpoint, and from there to the client. */
  private async resume(browser: BrowserSession, location: string): Promise<URL> {
    const answer = await browser.get(pathOf(location));
    if (answer.status !== 303) throw new Error(`${location} answered ${answer.status}: ${answer.text}`);
    return new URL(answer.headers.location ?? '');
  }

  /** Exchanges a code. A parameter that is undefined is left out. */
  redeem(code: string, changes: Record<string, string | undefined> = {}): Promise<{ status: number; body: Tokens }> {
    return this.token({
      grant_type: 'authorization_code',
      code,
      redirect_uri: this.redirectUri,
      code_verifier: this.verifier,
      resource: this.resource,
      ...changes,
    });
  }

  refresh(
    refreshToken: string,
    changes: Record<string, string | undefined> = {},
  ): Promise<{ status: number; body: Tokens }> {
    return this.token({ grant_type: 'refresh_token', refresh_token: refreshToken, ...changes });
  }

  /** Registers, lets a person allow it, and fetches the first tokens. */
  async login(browser: BrowserSession, fields?: Record<string, string>): Promise<Tokens> {
    if (this.id === '') await this.register();
    const back = await this.authorize(browser, fields);
    const { status, body } = await this.redeem(back.searchParams.get('code') ?? '');
    if (status !== 200) throw new Error(`/token answered ${status}: ${JSON.stringify(body)}`);
    return body;
  }

  async token(
    parameters: Record<string, string | undefined>,
    path = '/token',
  ): Promise<{ status: number; body: Tokens }> {
    const all = { client_id: this.id, client_secret: this.secret, ...parameters };
    const defined = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const answer = await fetch(this.app.url + path, { method: 'POST', body: new URLSearchParams(defined) });
    const text = await answer.text();
    return { status: answer.status, body: (text === '' ? {} : JSON.parse(text)) as Tokens };
  }

  /** Ends a token, and with it the login (RFC 7009). */
  revoke(token: string): Promise<{ status: number; body: unknown }> {
    return this.token({ token }, '/revoke');
  }

  private async json(path: string, body: object): Promise<{ status: number; body: Record<string, unknown> }> {
    const answer = await fetch(this.app.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  }
}

function pathOf(location: string): string {
  const { pathname, search } = new URL(location, 'http://slipway');
  return pathname + search;
}
