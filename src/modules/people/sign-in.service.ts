import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { formToken } from '../../platform/pages/form-token.js';
import { sendPage } from '../../platform/pages/page.js';
import { ApiKeysService } from '../auth/api-keys.service.js';
import { TooManyError } from '../../platform/errors/domain-error.js';
import { UnauthenticatedError } from '../auth/auth.errors.js';
import { RequestLimits } from '../auth/request-limits.service.js';
import { PasswordsService } from './passwords.service.js';
import { loginPage, type LoginView } from './people-pages.js';
import { SessionsService } from './sessions.service.js';

/** Why a sign-in was refused. */
export interface SignInRefusal {
  status: 403 | 429;
  fault: string;
  retryAfterSeconds?: number;
}

/** One answer for an unknown account, one without a password, a disabled one, an organization with members and a wrong password. */
const WRONG: SignInRefusal = {
  status: 403,
  fault:
    'The account or the password is wrong. Check both, and try again. Members of an organization sign in with their own accounts.',
};

const OF_ORGANIZATION: SignInRefusal = {
  status: 403,
  fault: 'This API key belongs to an organization with members, who sign in with their own accounts.',
};

const TOO_MANY: SignInRefusal = {
  status: 429,
  fault: 'Too many attempts. Wait 15 minutes, or sign in with an API key.',
  retryAfterSeconds: 15 * 60,
};

const SCOPED: SignInRefusal = {
  status: 403,
  fault: 'This API key may do only a part of what its account may. Use a key without such limits, or your password.',
};

/** Signs people in by the form of `/login`. */
@Injectable()
export class SignInService {
  constructor(
    private readonly env: Env,
    private readonly apiKeysService: ApiKeysService,
    private readonly requestLimits: RequestLimits,
    private readonly passwordsService: PasswordsService,
    private readonly sessionsService: SessionsService,
  ) {}

  /** Shows the form, whose token belongs to the browser. */
  show(request: Request, response: Response, view: Omit<LoginView, 'token'>, status = 200): void {
    const token = formToken(this.env, request, response);
    sendPage(response, loginPage(this.env, { ...view, token }), status);
  }

  /**
   * Signs in with the field `key`, or with `name` and `password`.
   *
   * @returns null when the person is signed in
   * @throws PageError while too many passwords are checked
   */
  async attempt(request: Request, response: Response, form: URLSearchParams): Promise<SignInRefusal | null> {
    const key = form.get('key');
    if (key === null) {
      const name = form.get('name')?.trim() ?? '';
      const account = await this.passwordsService.check(request, name, form.get('password') ?? '');
      if (account === 'too-many') return TOO_MANY;
      const isBegun =
        account !== 'wrong' && (await this.sessionsService.begin(request, response, { ...account, keyId: null }));
      return isBegun ? null : WRONG;
    }
    try {
      const { accountId, keyId, scopes, memberships } = await this.apiKeysService.verify(key.trim(), request);
      if (scopes !== null) return SCOPED;
      if (memberships.has(accountId)) return OF_ORGANIZATION;
      const isBegun = await this.sessionsService.begin(request, response, { accountId, keyId, passwordHash: null });
      if (!isBegun) throw UnauthenticatedError.invalid();
      return null;
    } catch (thrown) {
      const error = await this.requestLimits.refusal(thrown, request, response);
      if (error instanceof UnauthenticatedError) return { status: 403, fault: error.message };
      if (!(error instanceof TooManyError)) throw error;
      const { message: fault, retryAfterSeconds } = error;
      return { status: 429, fault, retryAfterSeconds };
    }
  }
}
