/** Parts of the API document that the routes of grants share. */

export const grantIdParam = {
  name: 'grantId',
  description: "The grant's id.",
  example: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
};

export const setGrantErrors = [
  { status: 400, message: 'account is your own, which owns this already: name another account' },
  {
    status: 404,
    text: 'There is no such target, or no such account.',
    message: 'No account has this id or name: its owner finds both at GET /accounts/me',
  },
  {
    status: 409,
    message: 'This has 100 grants, as many as a server or a connection may have: withdraw one first',
  },
];
