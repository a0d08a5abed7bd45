import type { Requirement } from '../requirements.js';

/** People who sign in with a browser. */
export const people = {
  'people:sign-in': {
    source: 'House',
    behavior:
      'A person signs in at `/login` with a password, or with an API key that has no scopes, and gets a session of 14 days from its last use on.',
  },
  'people:enumeration': {
    source: 'House',
    behavior:
      'A wrong password, an unknown account, a disabled one and one without a password have the same answer and take the same work.',
  },
  'people:guesses': {
    source: 'House',
    behavior:
      'After 10 attempts for one name within 15 minutes, those under way included, every further one answers 429, whether the account exists or not.',
  },
  'people:processes': {
    source: 'House',
    behavior: 'A session that began at one process is known to every other, and a sign-out at one counts in all.',
  },
  'people:sign-out-everywhere': {
    source: 'House',
    behavior:
      "`/me` shows who is signed in and in how many browsers; a person ends all of their sessions, and nobody else's.",
  },
  'people:key-sets-none': {
    source: 'House',
    behavior:
      'A session that began with an API key sets no password, and a key makes no invitation for its own account; both say who does.',
  },
  'people:logins': {
    source: 'House',
    behavior:
      '`GET /accounts/{accountId}/logins` shows the account and the operator its browsers, its password and its MCP clients; `DELETE` ends one of them, or all, in every process. The rotation of a key moves its logins.',
  },
  'people:key-ends': {
    source: 'House',
    behavior: 'A session that began with an API key ends when the key is revoked or expires.',
  },
  'people:pages-only': {
    source: 'House',
    behavior: 'The cookie of a session opens pages only: REST, MCP and run endpoints answer 401.',
  },
  'people:turns': {
    source: 'House',
    behavior: 'Passwords are checked for 4 attempts of an address and of a name at once, so that others can sign in.',
  },
  'people:csrf': {
    source: 'House',
    behavior:
      'A form of a page changes nothing without the token of its browser and session, with that of another, and with headers of another site.',
  },
  'people:host': {
    source: 'House',
    behavior:
      'While the service has no https address, pages for people refuse a `Host` that is not that of `PUBLIC_URL`, or of this machine with our port while it is local only.',
  },
  'people:invite': {
    source: 'House',
    behavior:
      '`POST /accounts/{accountId}/invitations` by the operator, and `npm run keys -- --invite NAME`, answer a link for 72 h by which a person chooses a password and is signed in.',
  },
  'people:invite:once': {
    source: 'House',
    behavior:
      'An invitation link works once, also for two browsers at the same moment, not after its time and not after a newer one; opening it changes nothing.',
  },
  'people:password': {
    source: 'House',
    behavior:
      'A person changes the password at `/me` with the present one; a new password has 12 to 200 characters and ends all other sessions.',
  },
  'people:start-page': {
    source: 'House',
    behavior:
      '`GET /` shows a browser the service, who is signed in, the documentation and the API reference; programs get JSON.',
  },
  'account:disable': {
    source: 'House',
    behavior:
      '`PATCH /accounts/{accountId} {disabled: true}` by the operator refuses the keys of an account in every process within 5 s, ends its streams, sessions and invitations, and never those of an operator.',
  },
} as const satisfies Record<string, Requirement>;
