import { uniqueName } from '../../support/app.js';
import type { ApiWalk } from '../../support/documentation/api-walk.js';

export const openToEveryKey = ['GET /accounts/me', 'GET /accounts/me/access'];

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
