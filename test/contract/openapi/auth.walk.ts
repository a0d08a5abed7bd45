import { uniqueName } from '../../support/app.js';
import type { ApiWalk } from '../../support/documentation/api-walk.js';

/** Accounts and API keys. */
export default async function (walk: ApiWalk): Promise<void> {
  await walk.ask('GET /accounts/me', 200);
  const name = uniqueName('account');
  const account = await walk.ask('POST /accounts', 201, {}, { name, kind: 'organization' });
  await walk.ask('POST /accounts', 409, {}, { name, kind: 'user' });
  await walk.ask('POST /accounts', 400, {}, { kind: 'robot' });
  await walk.ask('GET /accounts', 200);
  await walk.ask('GET /accounts', 400, {}, undefined, { query: '?page=0' });
  const accountId = account.id as string;
  const made = await walk.ask('POST /accounts/{accountId}/api-keys', 201, { accountId }, { name: 'laptop' });
  await walk.ask('POST /accounts/{accountId}/api-keys', 400, { accountId }, {});
  await walk.ask('POST /accounts/{accountId}/api-keys', 404, { accountId: made.id }, { name: 'laptop' });
  const other = { bearer: made.key as string };
  await walk.ask('GET /accounts/{accountId}/api-keys', 200, { accountId: 'me' }, undefined, other);
  await walk.ask('GET /accounts/{accountId}/api-keys', 404, { accountId: 'none' });
  await walk.ask('GET /accounts', 403, {}, undefined, other);
  await walk.ask('POST /accounts', 403, {}, { name: uniqueName('account'), kind: 'user' }, other);

  const scoped = { name: 'agent', scopes: ['call:acme'] };
  const agent = await walk.ask('POST /accounts/{accountId}/api-keys', 201, { accountId }, scoped);
  const limited = { bearer: agent.key as string };
  await walk.ask('POST /accounts/{accountId}/api-keys', 400, { accountId }, { ...scoped, scopes: ['write'] });
  await walk.ask('POST /accounts/{accountId}/api-keys', 403, { accountId: 'me' }, scoped, limited);
  await walk.ask('GET /accounts/me/access', 200, {}, undefined, limited);
  const rotate = 'POST /accounts/{accountId}/api-keys/{keyId}/rotate';
  await walk.ask(rotate, 403, { accountId: 'me', keyId: agent.id }, {}, limited);
  await walk.ask(rotate, 201, { accountId, keyId: agent.id }, { overlapSeconds: 60 });
  await walk.ask(rotate, 409, { accountId, keyId: agent.id }, {});
  await walk.ask(rotate, 400, { accountId, keyId: agent.id }, { overlapSeconds: -1 });
  await walk.ask(rotate, 404, { accountId, keyId: accountId }, {});

  await walk.ask('PUT /accounts/me/time-zone', 200, {}, { timeZone: 'Europe/Berlin' });
  await walk.ask('PUT /accounts/me/time-zone', 400, {}, { timeZone: 'Mars/Base' });

  const members = 'GET /accounts/{organizationId}/members';
  const set = 'PUT /accounts/{organizationId}/members/{accountId}';
  const remove = 'DELETE /accounts/{organizationId}/members/{accountId}';
  const me = (await walk.ask('GET /accounts/me', 200)).id as string;
  const [first, second] = [
    { organizationId: accountId, accountId: me },
    { organizationId: accountId, accountId: made.id },
  ];
  await walk.ask(set, 400, first, { role: 'king' });
  await walk.ask(set, 409, first, { role: 'guest' });
  await walk.ask(set, 200, first, { role: 'owner' });
  await walk.ask(set, 404, second, { role: 'guest' });
  await walk.ask(set, 403, first, { role: 'owner' }, other);
  await walk.ask(members, 200, { organizationId: accountId });
  await walk.ask(members, 400, { organizationId: accountId }, undefined, { query: '?page=0' });
  await walk.ask(members, 404, { organizationId: 'none' });
  const invite = 'POST /accounts/{organizationId}/members/invitations';
  await walk.ask(invite, 201, { organizationId: accountId }, { role: 'member' });
  await walk.ask(invite, 400, { organizationId: accountId }, { role: 'king' });
  await walk.ask(invite, 403, { organizationId: accountId }, { role: 'member' }, other);
  await walk.ask(invite, 404, { organizationId: 'none' }, { role: 'member' });
  await walk.ask(invite, 409, { organizationId: me }, { role: 'member' });
  await walk.ask(remove, 400, first, undefined, { query: '?revokeKeys=maybe' });
  await walk.ask(remove, 403, first, undefined, other);
  await walk.ask(remove, 404, second);
  await walk.ask(remove, 409, first);
  const createUser = () => walk.ask('POST /accounts', 201, {}, { name: uniqueName('account'), kind: 'user' });
  const person = await createUser();
  const third = { organizationId: accountId, accountId: person.id };
  await walk.ask(set, 200, third, { role: 'guest' });
  const ofPerson = await walk.ask(
    'POST /accounts/{accountId}/api-keys',
    201,
    { accountId: person.id },
    { name: 'guest' },
  );
  const guest = { bearer: ofPerson.key as string };
  await walk.ask(members, 403, { organizationId: accountId }, undefined, guest);
  await walk.ask(set, 200, third, { role: 'editor' });
  await walk.ask('GET /accounts/{accountId}/memberships', 200, { accountId: person.id });
  await walk.ask('GET /accounts/{accountId}/memberships', 404, { accountId: 'none' });
  const fourth = { organizationId: accountId, accountId: (await createUser()).id };
  await walk.ask(set, 200, third, { role: 'owner' });
  const { id: invitationId } = await walk.ask(set, 202, fourth, { role: 'member' }, guest);
  const waiting = { accountId: fourth.accountId, invitationId };
  const invitations = 'GET /accounts/{accountId}/invitations';
  await walk.ask(invitations, 200, waiting);
  await walk.ask(invitations, 200, { accountId }, undefined, guest);
  await walk.ask(invitations, 400, waiting, undefined, { query: '?page=0' });
  await walk.ask(invitations, 404, { accountId: 'none' });
  const accept = 'POST /accounts/{accountId}/invitations/{invitationId}';
  await walk.ask(accept, 404, waiting);
  const decline = 'DELETE /accounts/{accountId}/invitations/{invitationId}';
  await walk.ask(decline, 200, waiting);
  await walk.ask(decline, 404, waiting);
  const { id: again } = await walk.ask(set, 202, fourth, { role: 'member' }, guest);
  const ofFourth = await walk.ask('POST /accounts/{accountId}/api-keys', 201, waiting, { name: 'invited' });
  await walk.ask(accept, 200, { accountId: 'me', invitationId: again }, undefined, { bearer: ofFourth.key as string });
  await walk.ask(remove, 200, third);

  await walk.ask('GET /accounts/{accountId}/usage', 200, { accountId: 'me' }, undefined, other);
  await walk.ask('GET /accounts/{accountId}/usage', 404, { accountId: made.id });
  await walk.ask('PATCH /accounts/{accountId}/limits', 200, { accountId }, { limits: { namespaces: 500 } });
  await walk.ask('PATCH /accounts/{accountId}/limits', 400, { accountId }, { limits: { none: 1 } });
  await walk.ask('PATCH /accounts/{accountId}/limits', 403, { accountId }, { limits: {} }, other);
  await walk.ask('PATCH /accounts/{accountId}/limits', 404, { accountId: made.id }, { limits: { skills: 1 } });
  const revoke = 'DELETE /accounts/{accountId}/api-keys/{keyId}';
  await walk.ask(revoke, 400, { accountId, keyId: made.id }, undefined, { query: '?made=maybe' });
  await walk.ask(revoke, 200, { accountId, keyId: made.id });
  await walk.ask(revoke, 404, { accountId, keyId: made.id });
}
