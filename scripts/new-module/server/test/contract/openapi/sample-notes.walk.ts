import type { ApiWalk } from '../../support/documentation/api-walk.js';

/** Sample notes. */
export default async function (walk: ApiWalk): Promise<void> {
  const namespace = await walk.namespace();
  const [server, none] = [{ qualifiedName: `${namespace}/weather` }, { qualifiedName: `${namespace}/none` }];
  await walk.ask('PUT /servers/{qualifiedName}', 201, server, {});
  const ofServer = '/servers/{qualifiedName}/sample-notes';
  await walk.ask(`PUT ${ofServer}`, 200, server);
  await walk.ask(`PUT ${ofServer}`, 404, none);
  await walk.ask('GET /sample-notes', 200);
  await walk.ask('GET /sample-notes', 400, {}, undefined, { query: '?page=0' });
  for (const method of ['GET', 'DELETE']) {
    await walk.ask(`${method} ${ofServer}`, 200, server);
    await walk.ask(`${method} ${ofServer}`, 404, none);
  }
}
