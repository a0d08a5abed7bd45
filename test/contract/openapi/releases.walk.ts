import { createHash } from 'node:crypto';
import { expect } from '@jest/globals';
import { formOf, smallBundle, type ApiWalk } from '../../support/documentation/api-walk.js';
import { startAuthorizationServer } from '../../support/people/authorization-server.js';
import { until } from '../../support/until.js';
import { startUpstream } from '../../support/upstream/upstream.js';

/** Publishing, releases and what changed between them. */
export default async function (walk: ApiWalk): Promise<void> {
  const upstream = walk.own(await startUpstream());
  const authorization = walk.own(await startAuthorizationServer());
  const released = (release: Record<string, string>, status: string) =>
    until(
      async () => (await walk.ask('GET /servers/{qualifiedName}/releases/{id}', 200, release)).status === status,
      `the release is ${status}`,
    );
  const namespace = await walk.namespace();
  const other = await walk.other();
  const qualifiedName = `${namespace}/released`;
  await walk.ask('PUT /servers/{qualifiedName}', 201, { qualifiedName }, {});
  const publish = 'PUT /servers/{qualifiedName}/releases';
  const external = (upstreamUrl: string) => formOf({ payload: JSON.stringify({ type: 'external', upstreamUrl }) });
  const first = {
    qualifiedName,
    id: (await walk.ask(publish, 202, { qualifiedName }, external(upstream.url))).deploymentId,
  };
  await walk.ask(publish, 400, { qualifiedName }, formOf({ payload: 'no JSON' }));
  await walk.ask(publish, 404, { qualifiedName }, external(upstream.url), other);
  const stdio = JSON.stringify({ type: 'stdio', runtime: 'node' });
  await walk.ask(publish, 413, { qualifiedName }, formOf({ payload: stdio, bundle: Buffer.alloc(26 * 2 ** 20) }));
  const stream = 'GET /servers/{qualifiedName}/releases/{id}/stream';
  expect(await walk.ask(stream, 200, first)).toContain('event: complete');
  await walk.ask(stream, 404, first, undefined, other);
  await released(first, 'SUCCESS');
  await walk.ask('GET /servers/{qualifiedName}/releases/{id}', 404, { qualifiedName, id: 'none' });

  const resume = 'POST /servers/{qualifiedName}/releases/{id}/resume';
  await walk.ask(resume, 400, first);
  await walk.ask(resume, 404, first, undefined, other);
  const { url: behindOAuth } = await authorization.protect(upstream.url);
  await walk.ask(publish, 202, { qualifiedName }, external(behindOAuth));
  const latest = { qualifiedName, id: 'latest' };
  await released(latest, 'AUTH_REQUIRED');
  await walk.ask(resume, 202, latest);
  await released(latest, 'AUTH_REQUIRED');
  const promote = 'POST /servers/{qualifiedName}/releases/{id}/promote';
  await walk.ask(promote, 200, first);
  await walk.ask(promote, 404, first, undefined, other);
  await walk.ask(promote, 409, latest);
  const rescan = 'POST /servers/{qualifiedName}/releases/{id}/rescan';
  await walk.ask(rescan, 202, first, {});
  await walk.ask(rescan, 400, first, { scanCredentials: 'none' });
  await walk.ask(rescan, 404, first, {}, other);
  await walk.ask(rescan, 409, latest, {});
  await walk.ask('GET /servers/{qualifiedName}/releases', 200, { qualifiedName });
  await walk.ask('GET /servers/{qualifiedName}/releases', 400, { qualifiedName }, undefined, { query: '?page=0' });
  await walk.ask('GET /servers/{qualifiedName}/releases', 404, { qualifiedName }, undefined, other);
  await walk.ask('GET /servers/{qualifiedName}', 200, { qualifiedName });
  const changes = 'GET /servers/{qualifiedName}/changes';
  await walk.ask(changes, 200, { qualifiedName });
  await walk.ask(changes, 400, { qualifiedName }, undefined, { query: '?page=0' });
  await walk.ask(changes, 404, { qualifiedName: `${namespace}/none` });
  const download = 'GET /servers/{qualifiedName}/download';
  await walk.ask(download, 404, { qualifiedName });
  const { payload, bundle } = await smallBundle();
  await walk.ask(publish, 202, { qualifiedName }, formOf({ payload, bundle }));
  await released(latest, 'SUCCESS');
  await walk.ask(download, 200, { qualifiedName });
  const etag = `"${createHash('sha256').update(bundle).digest('hex')}"`;
  await walk.ask(download, 304, { qualifiedName }, undefined, { headers: { 'if-none-match': etag } });
  await walk.ask('GET /servers/{qualifiedName}', 200, { qualifiedName });
  await walk.ask('DELETE /servers/{qualifiedName}', 200, { qualifiedName });
}
