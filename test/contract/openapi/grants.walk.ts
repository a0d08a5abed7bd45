import { uniqueName } from '../../support/app.js';
import type { ApiWalk } from '../../support/documentation/api-walk.js';
import { startUpstream } from '../../support/upstream/upstream.js';

export const bodies = {
  'POST /servers/{qualifiedName}/access-requests': { text: 'Please.' },
  'POST /servers/{qualifiedName}/access-requests/{requestId}': { refuse: 'No.' },
};

/** Grants of servers and connections, and requests for access. */
export default async function (walk: ApiWalk): Promise<void> {
  const upstream = walk.own(await startUpstream());
  const namespace = await walk.namespace();
  const other = await walk.other();
  const server = { qualifiedName: `${namespace}/weather` };
  const connection = { namespace, connectionId: 'mine' };
  await walk.ask('PUT /servers/{qualifiedName}', 201, server, {});
  await walk.ask('PUT /connect/{namespace}/{connectionId}', 201, connection, { mcpUrl: upstream.url });
  const suspension = 'PUT /connect/{namespace}/{connectionId}/suspension';
  await walk.ask(suspension, 200, connection, { reason: null });
  await walk.ask(suspension, 400, connection, { reason: '' });
  await walk.ask(suspension, 403, connection, { reason: null }, other);
  await walk.ask(suspension, 404, { ...connection, connectionId: 'none' }, { reason: null });
  const name = uniqueName('account');
  const { id } = await walk.ask('POST /accounts', 201, {}, { name, kind: 'user' });
  const me = await walk.ask('GET /accounts/me', 200);
  const targets = [
    ['/servers/{qualifiedName}', server],
    ['/connect/{namespace}/{connectionId}', connection],
    ['/namespaces/{name}', { name: namespace }],
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
    await walk.ask('GET /accounts/{accountId}/grants/given', 200, { accountId: 'me' });
    const one = { ...parameters, grantId: granted.id };
    await walk.ask(`DELETE ${grants}/{grantId}`, 400, one, undefined, { query: '?now=maybe' });
    await walk.ask(`DELETE ${grants}/{grantId}`, 200, one);
    await walk.ask(`DELETE ${grants}/{grantId}`, 404, one);
  }
  const why = (status: number, query: string, by?: typeof other) =>
    walk.ask('GET /access/check', status, {}, undefined, by ? { ...by, query } : { query });
  await why(200, `?on=server:${namespace}/weather&account=${name}`);
  await why(400, '?on=weather');
  await why(403, `?on=server:${namespace}/weather&account=${name}`, other);
  await why(404, '?on=server:never/weather');
  await walk.ask('GET /accounts/me/usable', 200);
  await walk.ask('GET /accounts/me/usable', 400, {}, undefined, { query: '?section=public' });
  const requests = '/servers/{qualifiedName}/access-requests';
  await walk.ask(`POST ${requests}`, 409, server, { text: 'Please.' });
  await walk.ask(`POST ${requests}`, 400, server, { text: '' });
  await walk.ask(`POST ${requests}`, 404, { qualifiedName: `${namespace}/never` }, { text: 'Please.' });
  const asked = await walk.ask(`POST ${requests}`, 201, server, { text: 'Please.' }, other);
  await walk.ask(`POST ${requests}`, 200, server, { text: 'Please.' }, other);
  await walk.ask(`GET ${requests}`, 200, server);
  await walk.ask(`GET ${requests}`, 400, server, undefined, { query: '?page=0' });
  await walk.ask(`GET ${requests}`, 404, server, undefined, other);
  const request = { ...server, requestId: asked.id };
  await walk.ask(`POST ${requests}/{requestId}`, 400, request, {});
  await walk.ask(`POST ${requests}/{requestId}`, 404, { ...server, requestId: id }, { refuse: 'No.' });
  await walk.ask(`POST ${requests}/{requestId}`, 200, request, { grant: { level: 'call' } });
  await walk.ask(`POST ${requests}/{requestId}`, 409, request, { refuse: 'No.' });
  await walk.ask('GET /accounts/{accountId}/access-requests', 200, { accountId: 'me' });
  await walk.ask('GET /accounts/{accountId}/access-requests', 400, { accountId: 'me' }, undefined, {
    query: '?page=0',
  });
  await walk.ask('GET /accounts/{accountId}/access-requests', 404, { accountId: id }, undefined, other);
  await walk.ask('GET /accounts/{accountId}/grants', 400, { accountId: 'me' }, undefined, { query: '?pageSize=999' });
  await walk.ask('GET /accounts/{accountId}/grants/given', 400, { accountId: 'me' }, undefined, { query: '?page=0' });
  await walk.ask('GET /accounts/{accountId}/grants/given', 404, { accountId: id }, undefined, other);
  await walk.ask('GET /accounts/{accountId}/grants', 404, { accountId: id }, undefined, other);
}
