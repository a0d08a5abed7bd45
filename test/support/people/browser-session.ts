import supertest from 'supertest';
import { PasswordsService } from '../../../src/modules/people/passwords.service.js';
import { SessionsService } from '../../../src/modules/people/sessions.service.js';
import type { SessionCaller } from '../../../src/modules/auth/access.types.js';
import type { TestAccount, TestApp } from '../app.js';

/** Name of the cookie of a session over http. */
export const SESSION_COOKIE = 'slipway-session';

/** Answer to a request of {@link Browser}, redirects not followed. */
export type Answer = supertest.Response;

/** A browser without a screen: cookies of one service, and forms with their hidden fields. */
export interface BrowserSession {
  /** Its cookies by name. May be changed. */
  cookies: Map<string, string>;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  /**
   * Sends a form of a page of ours, which is opened first.
   *
   * @param fields `form` is the name of the form, which its address ends with, if that is not the path
   * @param page where the form is, if it is not the path
   */
  submit(path: string, fields: Record<string, string>, page?: string): Promise<Answer>;
  /** Sends exactly these fields. */
  post(path: string, fields: Record<string, string>, headers?: Record<string, string>): Promise<Answer>;
  /** The same browser at another process of the service. */
  at(app: TestApp): BrowserSession;
}

/** The hidden field against forged requests in a page; an empty text without one. */
export function formTokenIn({ text }: Answer): string {
  return /name="form-token" value="([^"]+)"/.exec(text)?.[1] ?? '';
}

/** Opens a browser at a process of the service. */
export function openBrowser({ url }: Pick<TestApp, 'url'>, cookies = new Map<string, string>()): BrowserSession {
  async function send(test: supertest.Test, headers: Record<string, string>): Promise<Answer> {
    if (cookies.size > 0) void test.set('cookie', [...cookies].map(([name, value]) => `${name}=${value}`).join('; '));
    const answer = await test
      .redirects(0)
      .ok(() => true)
      .set('accept', 'text/html')
      .set(headers);
    for (const line of ([] as string[]).concat(answer.headers['set-cookie'] ?? [])) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') cookies.delete(name);
      else cookies.set(name, value);
    }
    return answer;
  }
  const session: BrowserSession = {
    cookies,
    get: (path, headers = {}) => send(supertest(url).get(path), { 'sec-fetch-site': 'none', ...headers }),
    post: (path, fields, headers = {}) =>
      send(supertest(url).post(path).type('form').send(fields), { 'sec-fetch-site': 'same-origin', ...headers }),
    submit: async (path, { form, ...fields }, page = path) => {
      const token = formTokenIn(await session.get(page));
      return session.post(form === undefined ? path : path.replace(/(?=\?|$)/, `/${form}`), {
        'form-token': token,
        ...fields,
      });
    },
    at: (app) => openBrowser(app, cookies),
  };
  return session;
}

/** Opens a browser that is signed in with an API key. */
export async function signedInBrowser(app: Pick<TestApp, 'url'>, { key }: { key: string }): Promise<BrowserSession> {
  const browser = openBrowser(app);
  const answer = await browser.submit('/login', { key });
  if (answer.status !== 303) throw new Error(`Not signed in: ${answer.status} ${answer.text}`);
  return browser;
}

/** An account that can sign in with this password. */
export async function accountWithPassword(app: TestApp, password: string): Promise<TestAccount> {
  const account = await app.account();
  await app.database.query('INSERT INTO people (account_id, password_hash, password_at) VALUES ($1, $2, now())', [
    account.id,
    await app.get(PasswordsService).hash(password),
  ]);
  return account;
}

/** The person that a process takes the browser for. */
export function personAt(app: TestApp, { cookies }: BrowserSession): Promise<SessionCaller | null> {
  return app
    .get(SessionsService)
    .current({ sessionSecret: cookies.get(SESSION_COOKIE) ?? cookies.get(`__Host-${SESSION_COOKIE}`) });
}
