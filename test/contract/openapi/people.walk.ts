import { uniqueName } from '../../support/app.js';
import { signedInBrowser } from '../../support/people/browser-session.js';
import type { ApiWalk } from '../../support/documentation/api-walk.js';

/** Pages for people in a browser. */
export const undocumented = [
  'GET /login',
  'POST /login',
  'POST /logout',
  'GET /invite',
  'POST /invite',
  'GET /me',
  'POST /me',
  'POST /me/keys/create',
  'POST /me/zone',
  'POST /me/keys/rotate',
  'POST /me/keys/revoke',
  'POST /me/browsers',
];

/** Bodies of routes that take no empty one. */
export const bodies = {
  'PATCH /accounts/{accountId}': { disabled: false },
  'PUT /connect/{namespace}/{connectionId}/suspension': { reason: null },
  'PUT /namespaces/{name}/suspension': { reason: null },
  'PUT /servers/{qualifiedName}/suspension': { reason: null },
};

/** People: invitations, logins, and accounts that are disabled. */
export default async function (walk: ApiWalk): Promise<void> {
  const { id: accountId } = await walk.ask('POST /accounts', 201, {}, { name: uniqueName('person'), kind: 'user' });
  const key = await walk.ask('POST /accounts/{accountId}/api-keys', 201, { accountId }, { name: 'laptop' });
  const other = { bearer: key.key as string };
  const invite = 'POST /accounts/{accountId}/invitations';
  await walk.ask(invite, 201, { accountId });
  await walk.ask(invite, 404, { accountId: key.id });
  await walk.ask(invite, 403, { accountId: 'me' }, undefined, other);
  const logins = '/accounts/{accountId}/logins';
  await signedInBrowser(walk, { key: key.key as string });
  const { logins: found } = await walk.ask(`GET ${logins}`, 200, { accountId });
  const [{ id: loginId }] = found as { id: string }[];
  await walk.ask(`DELETE ${logins}/{loginId}`, 200, { accountId, loginId });
  await walk.ask(`GET ${logins}`, 400, { accountId }, undefined, { query: '?page=0' });
  await walk.ask(`GET ${logins}`, 404, { accountId: 'nobody' });
  await walk.ask(`DELETE ${logins}`, 200, { accountId });
  await walk.ask(`DELETE ${logins}`, 404, { accountId: 'nobody' });
  await walk.ask(`DELETE ${logins}/{loginId}`, 404, { accountId, loginId: 'password' });
  const change = 'PATCH /accounts/{accountId}';
  await walk.ask(change, 403, { accountId: 'me' }, { disabled: true }, other);
  await walk.ask(change, 200, { accountId }, { disabled: true });
  await walk.ask(invite, 409, { accountId });
  await walk.ask(change, 400, { accountId }, { disabled: 'yes' });
  await walk.ask(change, 404, { accountId: key.id }, { disabled: true });
  await walk.ask(change, 409, { accountId: 'me' }, { disabled: true });
}
