import { formOf, smallBundle, type ApiWalk } from '../../support/documentation/api-walk.js';
import { until } from '../../support/until.js';
import { startUpstream } from '../../support/upstream/upstream.js';

/** Paths of hosted code, which its author documents, and streams of MCP sessions. */
export const undocumented = [
  'PUT /run/{slug}/{path}',
  'PATCH /run/{slug}/{path}',
  'HEAD /run/{slug}/{path}',
  'OPTIONS /run/{slug}/{path}',
  'GET /run/{slug}',
  'DELETE /run/{slug}',
  'GET /run/{slug}/{path}',
  'POST /run/{slug}/{path}',
  'DELETE /run/{slug}/{path}',
];

/** The run endpoint, and what is inferred from its answers. */
export default async function (walk: ApiWalk): Promise<void> {
  const upstream = walk.own(await startUpstream());
  const namespace = await walk.namespace();
  const other = await walk.other();
  const qualifiedName = `${namespace}/released`;
  await walk.ask('PUT /servers/{qualifiedName}', 201, { qualifiedName }, {});
  const publish = 'PUT /servers/{qualifiedName}/releases';
  const release = async (form: FormData) => {
    const { deploymentId: id } = await walk.ask(publish, 202, { qualifiedName }, form);
    const status = async () =>
      (await walk.ask('GET /servers/{qualifiedName}/releases/{id}', 200, { qualifiedName, id })).status === 'SUCCESS';
    await until(status, 'the release is SUCCESS');
  };
  await release(formOf({ payload: JSON.stringify({ type: 'external', upstreamUrl: upstream.url }) }));
  const inferred = 'GET /servers/{qualifiedName}/experimental/tools/{toolName}/output-schema';
  await walk.ask(inferred, 404, { qualifiedName, toolName: 'echo' });
  await walk.ask(inferred, 404, { qualifiedName, toolName: 'echo' }, undefined, other);

  const run = 'POST /run/{slug}';
  const rpc = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const slug = { slug: `${namespace}--released` };
  await walk.ask(run, 200, slug, rpc);
  const echo = { name: 'echo', arguments: { message: 'hello' } };
  await walk.ask(run, 200, slug, { ...rpc, method: 'tools/call', params: echo });
  const sampled = async () => {
    const answer = await fetch(
      `${walk.url}/servers/${encodeURIComponent(qualifiedName)}/experimental/tools/echo/output-schema`,
      { headers: { authorization: `Bearer ${walk.key}` } },
    );
    return answer.ok;
  };
  await until(sampled, 'the answer was looked at');
  await walk.ask(inferred, 200, { qualifiedName, toolName: 'echo' });
  await walk.ask(run, 202, slug, { jsonrpc: '2.0', method: 'notifications/initialized' });
  await walk.ask(run, 400, slug, 'no JSON');
  await walk.ask(run, 403, slug, rpc, { headers: { origin: 'https://evil.example' } });
  await walk.ask(run, 404, { slug: `${namespace}--none` }, rpc);

  await release(formOf(await smallBundle()));
  // Other parts of the process receive the new release a moment later.
  await until(() => walk.ask(run, 409, slug, rpc), 'a bundle is not run');
}
