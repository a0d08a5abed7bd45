import { SetGrantDto } from './grant.dto.js';

/** Example bodies for Swagger UI: all members together would exclude each other. */
export const grantBody = {
  type: SetGrantDto,
  examples: {
    account: { value: { account: 'bob', level: 'call' } },
    tools: { value: { everyone: true, level: 'call', tools: { allow: ['search'] } } },
  },
};

export const grantIdParam = {
  name: 'grantId',
  description: "The grant's id.",
  example: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
};

export const membersOnly = {
  status: 403,
  text: 'An editor of an organization grants to its members only.',
  message: 'Forbidden: editors grant to members of the organization only. Ask one of its owners for a grant to others.',
};

export const setGrantErrors = [
  membersOnly,
  {
    status: 400,
    text: 'The account owns it, or the terms do not go together.',
    message: 'account owns this already: name another account',
  },
  {
    status: 404,
    text: 'There is no such target, or no such account.',
    message: 'No account has this id or name: its owner finds both at GET /accounts/me',
  },
  { status: 409, message: 'This target has 100 grants, the maximum: revoke one first' },
];
