import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { ForbiddenError, TooManyError } from '../../platform/errors/domain-error.js';
import type { OwnCookie } from '../../platform/pages/browser-cookie.js';
import type { ClientContext } from '../../platform/pages/client-context.js';
import { PlainPage, Redirect } from '../../platform/pages/frame.js';
import { ApiKeysService } from '../auth/api-keys.service.js';
import { UnauthenticatedError } from '../auth/auth.errors.js';
import { ownNext } from './own-next.js';
import { PasswordsService } from './passwords.service.js';
import { loginPage, type LoginView } from './people-pages.js';
import type { SignInWay, SignOutLink } from './sign-in-way.types.js';
import { SessionsService } from './sessions.service.js';

/** Message for a wrong password, an unknown account, and an account without a password. */
const WRONG =
  'The account or the password is wrong. Check both, and try again. Members of an organization sign in with their own accounts.';

/** Message that is used only after the correct password. */
const OVER =
  'This account is disabled, or an organization whose members sign in with their own accounts. Ask the operator of this service.';

const OF_ORGANIZATION = 'This API key belongs to an organization with members, who sign in with their own accounts.';

const FOR_OPERATORS = 'Only operators sign in with an API key here. Sign in with your company account.';

const TOO_MANY = 'Too many attempts. Wait 15 minutes, or sign in with an API key.';

const SCOPED =
  'This API key may do only a part of what its account may. Use a key without such limits, or your password.';

type LoginRequest = Omit<LoginView, 'token' | 'ways' | 'next' | 'hasPasswords'> & { next: unknown };

@Injectable()
export class SignInService {
  readonly ways: SignInWay[] = [];

  constructor(
    private readonly apiKeysService: ApiKeysService,
    private readonly passwordsService: PasswordsService,
    private readonly sessionsService: SessionsService,
    private readonly env: Env,
  ) {}

  async page({ next, ...view }: LoginRequest, status = 200): Promise<PlainPage> {
    const ways = await Promise.all(this.ways.map(async (way) => ({ ...way, problem: await way.problem() })));
    const hasPasswords = !this.passwordsService.isOff;
    return new PlainPage(
      (token) => loginPage(this.env, { ...view, next: ownNext(next), ways, hasPasswords, token: token() }),
      status,
    );
  }

  /** Returns links by which the user also signs out of the services that signed the browser in. */
  async signOutLinks(client: ClientContext): Promise<SignOutLink[]> {
    const person = this.ways.length === 0 ? null : await this.sessionsService.current(client);
    if (!person) return [];
    const links = await Promise.all(this.ways.map(async (way) => way.signOut?.(person)));
    return links.filter((link) => !!link);
  }

  /** Redirects to the first page unless a page is requested. */
  redirect(next: unknown, ...cookies: OwnCookie[]): Redirect {
    return new Redirect(ownNext(next)?.slice(1) ?? 'ui/', cookies);
  }

  /**
   * Reads the field `key`, or `name` and `password`.
   *
   * @returns the cookie for the browser
   * @throws ForbiddenError, TooManyError; UnauthenticatedError for an API key that is not valid; PageError while too many passwords are
   * checked
   */
  async signIn(client: ClientContext, form: URLSearchParams): Promise<OwnCookie> {
    const key = form.get('key');
    if (key === null) {
      const name = form.get('name')?.trim() ?? '';
      const account = await this.passwordsService.check(client, name, form.get('password') ?? '');
      if (account === 'too-many') throw new TooManyError(TOO_MANY, 15 * 60);
      if (account === 'wrong') throw new ForbiddenError(WRONG).atField('password');
      const cookie = await this.sessionsService.begin(client, { ...account, keyId: null });
      if (!cookie) throw new ForbiddenError(OVER);
      return cookie;
    }
    const from = { socket: { remoteAddress: client.address }, headers: {} };
    const { accountId, keyId, scopes, memberships, isOperator } = await this.apiKeysService.verify(key.trim(), from);
    if (this.passwordsService.isOff && !isOperator) throw new ForbiddenError(FOR_OPERATORS);
    if (scopes !== null) throw new ForbiddenError(SCOPED);
    if (memberships.has(accountId)) throw new ForbiddenError(OF_ORGANIZATION);
    const cookie = await this.sessionsService.begin(client, { accountId, keyId, passwordHash: null });
    if (!cookie) throw UnauthenticatedError.invalid();
    return cookie;
  }
}
