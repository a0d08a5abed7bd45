/**
 * Links by which a user chooses a password, for the first time or after forgetting it, or joins an organization with a role. A link works
 * once, for 72 h; that of the first start for 15 minutes. A newer link for a password replaces the older one; a link into an organization
 * is invalid once its creator is no longer an owner. The secret is in the query, since logs only write paths; the table stores its SHA-256.
 */
import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { ConflictError, ForbiddenError, InvalidInputError, NotFoundError } from '../../platform/errors/domain-error.js';
import type { Actor } from '../../platform/database/actor.js';
import type { ClientContext } from '../../platform/pages/client-context.js';
import { Redirect } from '../../platform/pages/frame.js';
import { hashSecret, isSecret, newSecret } from '../../platform/http/secrets.js';
import type { Caller, Joining, Role } from '../auth/access.types.js';
import { ACCOUNT_NAME } from '../auth/accounts.service.js';
import { REFUSALS } from '../auth/members.errors.js';
import { MembersService } from '../auth/members.service.js';
import type { InvitationDto } from './invitation.dto.js';
import { PasswordsService } from './passwords.service.js';
import { invitationEnded, passwordsOff } from './people.errors.js';
import { PeopleRepository, type Invited } from './people.repository.js';
import { SessionsService } from './sessions.service.js';

/**
 * Issues an invitation, whose link only the response contains.
 *
 * @param minutes of validity; 72 h by default
 * @throws NotFoundError, ConflictError
 */
export async function makeInvitation(
  rows: PeopleRepository,
  { baseUrl }: Env,
  accountId: string,
  actor: Actor,
  minutes?: number,
): Promise<InvitationDto> {
  const secret = newSecret();
  const expiresAt = await rows.addInvitation(actor, accountId, hashSecret(secret), minutes);
  if (expiresAt === null) throw new NotFoundError('Account not found');
  if (expiresAt === 'disabled') {
    throw new ConflictError(
      'The account is disabled: enable it first, with PATCH /accounts/{accountId} {"disabled": false}',
    );
  }
  if (expiresAt === 'members') {
    throw new ConflictError('Nobody signs in as an organization with members: invite the accounts of its members');
  }
  return { url: `${baseUrl}/invite?token=${secret}`, expiresAt: expiresAt.toISOString() };
}

@Injectable()
export class InvitationsService {
  constructor(
    private readonly peopleRepository: PeopleRepository,
    private readonly passwordsService: PasswordsService,
    private readonly sessionsService: SessionsService,
    private readonly membersService: MembersService,
    private readonly env: Env,
  ) {}

  /** @throws ForbiddenError for the caller's own account, and as {@link makeInvitation} */
  async create(accountId: string, caller: Caller): Promise<InvitationDto> {
    if (this.passwordsService.isOff) throw passwordsOff();
    // eslint-disable-next-line no-restricted-syntax -- A password outlives the key that invited.
    if (accountId === caller.accountId) {
      throw new ForbiddenError(
        'Forbidden: an API key cannot create an invitation for its own account. Run npm run keys -- --invite operator on the machine of the service',
      );
    }
    return makeInvitation(this.peopleRepository, this.env, accountId, caller);
  }

  /** Creates an invitation into an organization. Only the response contains the link. @throws ConflictError */
  async inviteMember(organizationId: string, role: Role, caller: Caller): Promise<InvitationDto> {
    if (this.passwordsService.isOff) throw passwordsOff();
    const secret = newSecret();
    const expiresAt = await this.peopleRepository.addMemberInvitation(caller, organizationId, role, hashSecret(secret));
    if (expiresAt === 'full') throw REFUSALS.invitations();
    if (!expiresAt) {
      throw new ConflictError(
        'Only an organization with an owner invites: add the first one with PUT /accounts/{organizationId}/members/{accountId}',
      );
    }
    return { url: `${this.env.baseUrl}/invite?token=${secret}`, expiresAt: expiresAt.toISOString() };
  }

  /** Returns the account of a link, and the role. @throws PageError */
  async open(token: unknown): Promise<Invited & { hash: Buffer }> {
    const hash = isSecret(token) && !this.passwordsService.isOff ? hashSecret(token) : null;
    const account = hash && (await this.peopleRepository.invited(hash));
    if (!account) throw invitationEnded();
    return { hash, ...account };
  }

  /**
   * @param person null: joins with a new account, by the name and password of the form
   * @returns a redirect to the organization, or home
   * @throws InvalidInputError, PageError
   */
  async use(
    token: unknown,
    client: ClientContext,
    form: URLSearchParams,
    person: { accountId: string } | null,
  ): Promise<Redirect> {
    const { hash, accountId: invited, role } = await this.open(token);
    const path = role === null ? 'ui/' : `ui/o/${invited}?done=joined`;
    const join = async (joiner: Joining) => {
      const joined = await this.membersService.join({ hash, organizationId: invited }, joiner);
      if (joined === null) throw invitationEnded();
      return joined;
    };
    try {
      if (role !== null && person) {
        await join({ accountId: person.accountId });
        return new Redirect(path);
      }
      const name = form.get('name')?.trim() ?? '';
      if (role !== null && !ACCOUNT_NAME.test(name))
        throw new InvalidInputError(
          'Choose a name of 1 to 255 visible characters for your account, with the letters of one script',
        ).atField('name');
      const passwordHash = await this.passwordsService.hash(this.passwordsService.newPasswordIn(form));
      let accountId = invited;
      if (role !== null) accountId = await join({ name, passwordHash });
      else if (!(await this.peopleRepository.useInvitation(hash, invited, passwordHash))) throw invitationEnded();
      const cookie = await this.sessionsService.begin(client, { accountId, keyId: null, passwordHash });
      return new Redirect(path, cookie ? [cookie] : []);
    } catch (error) {
      if (error instanceof ConflictError) throw new InvalidInputError(error.message).atField('name');
      throw error;
    }
  }
}
