import type { ApiWalk } from '../../support/documentation/api-walk.js';
import { pages } from '../../e2e/calls-pages/access.js';

export const undocumented = Object.keys(pages ?? {});

export default async function (walk: ApiWalk): Promise<void> {
  await walk.ask('GET /calls', 200, {}, undefined, { query: '?since=7d&all=true&limit=2' });
  await walk.ask('GET /calls', 400, {}, undefined, { query: '?outcome=nothing' });
}
