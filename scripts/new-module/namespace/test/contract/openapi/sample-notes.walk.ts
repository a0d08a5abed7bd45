import type { ApiWalk } from '../../support/documentation/api-walk.js';

export const bodies = { 'PUT /sample-notes/{namespace}/{name}': { text: 'Sunny' } };

/** Sample notes. */
export default async function (walk: ApiWalk): Promise<void> {
  const [namespace, other] = [await walk.namespace(), await walk.other()];
  const one = '/sample-notes/{namespace}/{name}';
  const first = { namespace, name: 'first' };
  await walk.ask(`PUT ${one}`, 200, first, { text: 'Sunny' });
  await walk.ask(`PUT ${one}`, 400, first, {});
  await walk.ask(`PUT ${one}`, 404, first, { text: 'Sunny' }, other);
  await walk.ask('GET /sample-notes/{namespace}', 200, { namespace });
  await walk.ask('GET /sample-notes/{namespace}', 400, { namespace }, undefined, { query: '?page=0' });
  await walk.ask('GET /sample-notes/{namespace}', 404, { namespace }, undefined, other);
  await walk.ask(`GET ${one}`, 200, first);
  await walk.ask(`GET ${one}`, 404, first, undefined, other);
  await walk.ask(`DELETE ${one}`, 200, first);
  await walk.ask(`DELETE ${one}`, 404, first);
}
