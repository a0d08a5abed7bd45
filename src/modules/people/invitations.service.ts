/**
 * Invitations: links by which a person chooses a password, the first or a new one for a forgotten one. A link works once, for
 * 72 h, until a newer one is made. The secret stands in its query, since logs write paths only; the table has its SHA-256.
 */
import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { ConflictError, ForbiddenError, NotFoundError } from '../../platform/errors/domain-error.js';
import { hashSecret, isSecret, newSecret } from '../../platform/http/secrets.js';
import type { Caller } from '../auth/access.types.js';
import type { InvitationDto } from './invitation.dto.js';
import { PasswordsService } from './passwords.service.js';
import { invitationEnded } from './people.errors.js';
import { PeopleRepository } from './people.repository.js';
import { SessionsService } from './sessions.service.js';

/** Makes an invitation for an account. Only the answer has the link. @throws NotFoundError, ConflictError */
export async function makeInvitation(
  rows: PeopleRepository,
  { baseUrl }: Env,
  accountId: string,
  createdBy: string,
): Promise<InvitationDto> {
  const secret = newSecret();
  const expiresAt = await rows.addInvitation(accountId, createdBy, hashSecret(secret));
  if (expiresAt === null) throw new NotFoundError('Account not found');
  if (expiresAt === 'disabled') {
    throw new ConflictError(
      'The account is disabled: enable it first, with PATCH /accounts/{accountId} {"disabled": false}',
    );
  }
  return { url: `${baseUrl}/invite?token=${secret}`, expiresAt: expiresAt.toISOString() };
}

/** Makes and uses invitations. */
@Injectable()
export class InvitationsService {
  constructor(
    private readonly rows: PeopleRepository,
    private readonly passwords: PasswordsService,
    private readonly sessions: SessionsService,
    private readonly env: Env,
  ) {}

  /** @throws ForbiddenError for the caller's own account, and as {@link makeInvitation} */
  async create(accountId: string, caller: Caller): Promise<InvitationDto> {
    // eslint-disable-next-line no-restricted-syntax -- A password outlives the key that invited.
    if (accountId === caller.accountId) {
      throw new ForbiddenError(
        'Forbidden: an API key makes no invitation for its own account. Run npm run keys -- --invite operator on the machine of the service',
      );
    }
    return makeInvitation(this.rows, this.env, accountId, caller.accountId);
  }

  /** Name of the account that a link is for. @throws PageError */
  async open(token: unknown): Promise<string> {
    return (await this.invited(token)).accountName;
  }

  /**
   * Uses a link up: sets the password, ends the sessions of the account, and signs the person in.
   *
   * @returns null; or the fault of the password, with the name of the account
   * @throws PageError
   */
  async use(
    request: Request,
    response: Response,
    form: URLSearchParams,
  ): Promise<{ fault: string; accountName: string } | null> {
    const { hash, accountId, accountName } = await this.invited(request.query.token);
    const password = form.get('password') ?? '';
    const fault = this.passwords.faultOf(password, form.get('repeated') ?? '');
    if (fault !== null) return { fault, accountName };
    const passwordHash = await this.passwords.hash(password);
    if (!(await this.rows.useInvitation(hash, accountId, passwordHash))) throw invitationEnded();
    await this.sessions.begin(request, response, { accountId, keyId: null, passwordHash });
    return null;
  }

  private async invited(token: unknown): Promise<{ hash: Buffer; accountId: string; accountName: string }> {
    const hash = isSecret(token) ? hashSecret(token) : null;
    const account = hash && (await this.rows.invited(hash));
    if (!account) throw invitationEnded();
    return { hash, ...account };
  }
}
