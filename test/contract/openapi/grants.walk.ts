import { uniqueName } from '../../support/app.js';
import type { ApiWalk } from '../../support/documentation/api-walk.js';
import { startUpstream } from '../../support/upstream/upstream.js';

/** Grants of servers and connections. */
export default async function (walk: ApiWalk): Promise<void> {
  const upstream = walk.own(await startUpstream());
  const namespace = await walk.namespace();
  const other = await walk.other();
  const server = { qualifiedName: `${namespace}/weather` };
  const connection = { namespace, connectionId: 'mine' };
  await walk.ask('PUT /servers/{qualifiedName}', 201, server, {});
  await walk.ask('PUT /connect/{namespace}/{connectionId}', 201, connection, { mcpUrl: upstream.url });
  const name = uniqueName('account');
  const { id } = await walk.ask('POST /accounts', 201, {}, { name, kind: 'user' });
  const me = await walk.ask('GET /accounts/me', 200);
  const targets = [
    ['/servers/{qualifiedName}', server],
    ['/connect/{namespace}/{connectionId}', connection],
  ] as const;
  for (const [path, parameters] of targets) {
    const grants = `${path}/grants`;
    const granted = await walk.ask(`POST ${grants}`, 201, parameters, { account: id, level: 'call' });
    await walk.ask(`POST ${grants}`, 200, parameters, { account: name, level: 'manage' });
    await walk.ask(`POST ${grants}`, 400, parameters, { account: me.id, level: 'call' });
    await walk.ask(`POST ${grants}`, 404, parameters, { account: uniqueName('nobody'), level: 'call' });
    await walk.ask(`POST ${grants}`, 404, parameters, { account: name, level: 'call' }, other);
    await walk.ask(`GET ${grants}`, 200, parameters);
    await walk.ask(`GET ${grants}`, 400, parameters, undefined, { query: '?page=0' });
    await walk.ask(`GET ${grants}`, 404, parameters, undefined, other);
    await walk.ask('GET /accounts/{accountId}/grants', 200, { accountId: id });
    const one = { ...parameters, grantId: granted.id };
    await walk.ask(`DELETE ${grants}/{grantId}`, 400, one, undefined, { query: '?now=maybe' });
    await walk.ask(`DELETE ${grants}/{grantId}`, 200, one);
    await walk.ask(`DELETE ${grants}/{grantId}`, 404, one);
  }
  await walk.ask('GET /accounts/{accountId}/grants', 400, { accountId: 'me' }, undefined, { query: '?pageSize=999' });
  await walk.ask('GET /accounts/{accountId}/grants', 404, { accountId: id }, undefined, other);
}
