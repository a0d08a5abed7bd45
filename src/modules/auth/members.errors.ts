import { ConflictError, NotFoundError } from '../../platform/errors/domain-error.js';
import { ACCOUNTS_MAX, INVITATIONS_MAX, MEMBERS_MAX, ORGANIZATIONS_MAX } from './memberships.access.js';

export type MemberRefusal = keyof typeof REFUSALS;

export const REFUSALS = {
  'no organization': () => new ConflictError('Only an account of the kind organization has members'),
  'no account': () => new NotFoundError('Account not found'),
  'no member': () => new NotFoundError('Member not found'),
  'a member': () => new ConflictError('This account is a member of the organization already'),
  'last owner': () => new ConflictError('An organization keeps an owner: make another member an owner first'),
  full: () =>
    new ConflictError(`This organization has ${MEMBERS_MAX} members, as many as it may have: remove one first`),
  invitations: () =>
    new ConflictError(
      `This organization has ${INVITATIONS_MAX} unused invitations, the maximum. Revoke one, or wait until one is used.`,
    ),
  accounts: () =>
    new ConflictError(
      `Invitations of this organization have created ${ACCOUNTS_MAX} accounts, the maximum. Invite existing accounts.`,
    ),
  imitation: () => new ConflictError('This name looks like the name of another account. Choose a different one.'),
  'too many': () =>
    new ConflictError(`This account is a member of ${ORGANIZATIONS_MAX} organizations, as many as it may be`),
};
