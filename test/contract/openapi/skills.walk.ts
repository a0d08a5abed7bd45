import { formOf, tooLarge, type ApiWalk } from '../../support/documentation/api-walk.js';
import { startRepositoryHost } from '../../support/releases/repository-host.js';
import { skillMd } from '../../support/releases/skills.js';
import { zipOf } from '../../support/zips.js';

/** Skills. */
export default async function (walk: ApiWalk): Promise<void> {
  const namespace = await walk.namespace();
  const other = await walk.other();
  const host = await startRepositoryHost();
  const archive = await zipOf({ 'SKILL.md': skillMd() });
  host.serve('/acme/skills/archive/HEAD.zip', archive);
  const skill = { namespace, slug: 'review' };
  const source = { gitUrl: `${host.url}/acme/skills` };
  const put = 'PUT /skills/{namespace}/{slug}';
  await walk.ask(put, 201, skill, source);
  await walk.ask(put, 200, skill, source);
  await walk.ask(put, 400, skill, {});
  await walk.ask(put, 403, skill, source, other);
  await walk.ask(put, 404, skill, { gitUrl: `${host.url}/acme/none` });
  await walk.ask(put, 409, { namespace, slug: 'other' }, source);
  await walk.ask(put, 413, skill, tooLarge);
  await walk.ask('POST /skills', 200, {}, { ...skill, ...source });
  await walk.ask('POST /skills', 400, {}, skill);
  await walk.ask('POST /skills/{namespace}/{slug}/sync', 200, skill);
  await host.close();
  await walk.ask('POST /skills/{namespace}/{slug}/sync', 502, skill);
  const zipped = (content: Buffer) => formOf({ archive: content });
  const uploaded = 'PUT /skills/{namespace}/{slug}/upload';
  await walk.ask(uploaded, 201, { namespace, slug: 'upload' }, zipped(archive));
  await walk.ask(uploaded, 200, skill, zipped(archive));
  await walk.ask(uploaded, 400, skill, zipped(Buffer.from('no zip')));
  await walk.ask(uploaded, 422, skill, zipped(await zipOf({ 'SKILL.md': 'text' })));
  await walk.ask('GET /skills', 200, {}, undefined, { query: '?q=review' });
  await walk.ask('GET /skills', 200, {}, undefined, { query: '?fields=id' });
  await walk.ask('GET /skills', 400, {}, undefined, { query: '?topK=1' });
  await walk.ask('GET /skills/{namespace}/{slug}', 200, skill);
  await walk.ask('GET /skills/{namespace}/{slug}', 404, { namespace, slug: 'none' });
  await walk.ask('GET /skills/{namespace}/{slug}/download', 200, skill);
  await walk.ask('GET /skills/{namespace}/{slug}/.well-known/skills/index.json', 200, skill);
  const file = 'GET /skills/{namespace}/{slug}/.well-known/skills/{path}';
  await walk.ask(file, 200, { ...skill, path: 'SKILL.md' });
  await walk.ask(file, 404, { ...skill, path: 'none.md' });
  await walk.ask('GET /skills/{namespace}/{slug}/.well-known/agent-skills/index.json', 200, skill);
  for (const [below, params] of [
    ['', {}],
    ['/skills/{namespace}', { namespace }],
  ] as const) {
    await walk.ask(`GET ${below}/.well-known/agent-skills/index.json`, 200, params);
    await walk.ask(`GET ${below}/.well-known/skills/index.json`, 200, params);
    const named = `GET ${below}/.well-known/skills/{name}/{path}`;
    await walk.ask(named, 200, { ...params, name: 'code-review', path: 'SKILL.md' });
    await walk.ask(named, 404, { ...params, name: 'none', path: 'SKILL.md' });
  }
  await walk.ask('DELETE /skills/{namespace}/{slug}', 403, skill, undefined, other);
  await walk.ask('DELETE /skills/{namespace}/{slug}', 200, skill);
  await walk.ask('DELETE /skills/{namespace}/{slug}', 404, skill);
}
