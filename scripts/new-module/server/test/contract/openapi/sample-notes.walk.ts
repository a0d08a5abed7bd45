import type { ApiWalk } from '../../support/documentation/api-walk.js';

/** Every account may put a sample note on every server. */
export const openToEveryKey = ['GET', 'PUT', 'DELETE'].map(
  (method) => `${method} /servers/{qualifiedName}/sample-notes`,
);

/** Sample notes. */
export default async function (walk: ApiWalk): Promise<void> {
  const namespace = await walk.namespace();
  const [server, none] = [{ qualifiedName: `${namespace}/weather` }, { qualifiedName: `${namespace}/none` }];
  await walk.ask('PUT /servers/{qualifiedName}', 201, server, {});
  for (const name of openToEveryKey) {
    await walk.ask(name, 200, server);
    await walk.ask(name, 404, none);
  }
}
