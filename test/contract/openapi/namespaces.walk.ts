import { uniqueName } from '../../support/app.js';
import type { ApiWalk } from '../../support/documentation/api-walk.js';

/** Namespaces. */
export default async function (walk: ApiWalk): Promise<void> {
  const namespace = await walk.namespace();
  const other = await walk.other();
  await walk.ask('PUT /namespaces/{name}', 400, { name: 'A' });
  await walk.ask('PUT /namespaces/{name}', 409, { name: namespace }, undefined, other);
  const generated = await walk.ask('POST /namespaces', 201);
  await walk.ask('GET /namespaces', 200);
  await walk.ask('GET /namespaces', 200, {}, undefined, { query: '?fields=name' });
  await walk.ask('GET /namespaces', 400, {}, undefined, { query: '?pageSize=999' });
  await walk.ask('DELETE /namespaces/{name}', 200, { name: generated.name });
  await walk.ask('DELETE /namespaces/{name}', 404, { name: generated.name });
  await walk.ask('DELETE /namespaces/{name}', 403, { name: namespace }, undefined, other);
  const me = (await walk.ask('GET /accounts/me', 200)).id as string;
  const move = 'PATCH /namespaces/{name}';
  await walk.ask(move, 200, { name: namespace }, { accountId: me });
  await walk.ask(move, 400, { name: namespace }, { accountId: 'none' });
  await walk.ask(move, 403, { name: namespace }, { accountId: me }, other);
  await walk.ask(move, 404, { name: 'never-claimed' }, { accountId: me });
  const owned = await walk.ask('POST /accounts', 201, {}, { name: uniqueName('account'), kind: 'user' });
  const transfer = 'POST /accounts/{accountId}/transfer';
  await walk.ask(transfer, 200, { accountId: owned.id }, { to: me });
  await walk.ask(transfer, 400, { accountId: owned.id }, { to: 'none' });
  await walk.ask(transfer, 403, { accountId: 'me' }, { to: me }, other);
  await walk.ask(transfer, 404, { accountId: 'none' }, { to: me });
  const remove = 'DELETE /accounts/{accountId}';
  await walk.ask(remove, 409, { accountId: 'me' });
  await walk.ask(remove, 404, { accountId: me }, undefined, other);
  await walk.ask(remove, 200, { accountId: owned.id });
  await walk.ask('PUT /servers/{qualifiedName}', 201, { qualifiedName: `${namespace}/weather` }, {});
  await walk.ask('DELETE /namespaces/{name}', 409, { name: namespace });
}
