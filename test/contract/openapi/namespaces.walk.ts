import type { ApiWalk } from '../../support/documentation/api-walk.js';

export const openToEveryKey = ['GET /namespaces', 'POST /namespaces', 'PUT /namespaces/{name}'];

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
  await walk.ask('PUT /servers/{qualifiedName}', 201, { qualifiedName: `${namespace}/weather` }, {});
  await walk.ask('DELETE /namespaces/{name}', 409, { name: namespace });
}
