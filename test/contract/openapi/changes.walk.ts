import { uniqueName } from '../../support/app.js';
import type { ApiWalk } from '../../support/documentation/api-walk.js';
import { pages } from '../../e2e/changes/access.js';

export const undocumented = Object.keys(pages ?? {});

export default async function (walk: ApiWalk): Promise<void> {
  const list = 'GET /accounts/{accountId}/changes';
  const made = async (kind: string) =>
    (await walk.ask('POST /accounts', 201, {}, { name: uniqueName(kind), kind })).id as string;
  const [organizationId, accountId] = [await made('organization'), await made('user')];
  await walk.ask(list, 200, { accountId: organizationId });
  await walk.ask(list, 200, { accountId: 'me' }, undefined, { query: '?format=csv&limit=2' });
  await walk.ask(list, 400, { accountId: 'me' }, undefined, { query: '?since=yesterday' });
  await walk.ask(list, 404, { accountId: 'none' });
  const set = 'PUT /accounts/{organizationId}/members/{accountId}';
  await walk.ask(set, 200, { organizationId, accountId: await made('user') }, { role: 'owner' });
  await walk.ask(set, 200, { organizationId, accountId }, { role: 'editor' });
  const { key } = await walk.ask('POST /accounts/{accountId}/api-keys', 201, { accountId }, { name: 'editor' });
  await walk.ask(list, 403, { accountId: organizationId }, undefined, { bearer: key as string });
}
