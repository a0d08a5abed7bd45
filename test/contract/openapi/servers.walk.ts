import { formOf, tooLarge, type ApiWalk } from '../../support/documentation/api-walk.js';
import { uniqueName } from '../../support/app.js';
import { images } from '../../support/releases/icons.js';

/** Servers, their settings and icons. */
export default async function (walk: ApiWalk): Promise<void> {
  const [namespace, gone] = [await walk.namespace(), uniqueName('ns')];
  const other = await walk.other();
  const qualifiedName = `${namespace}/weather`;
  await walk.ask('PUT /servers/{qualifiedName}', 201, { qualifiedName }, { displayName: 'Weather' });
  await walk.ask('PUT /servers/{qualifiedName}', 400, { qualifiedName }, { displayName: 7 });
  await walk.ask('PUT /servers/{qualifiedName}', 403, { qualifiedName }, {}, other);
  await walk.ask('PUT /servers/{qualifiedName}', 404, { qualifiedName: `${gone}/weather` }, {});
  await walk.ask('PUT /servers/{qualifiedName}', 413, { qualifiedName }, tooLarge);
  await walk.ask('GET /servers/{qualifiedName}', 200, { qualifiedName });
  await walk.ask('GET /servers', 200, {}, undefined, { query: '?q=weather' });
  await walk.ask('GET /servers', 200, {}, undefined, { query: '?fields=id' });
  await walk.ask('GET /servers', 400, {}, undefined, { query: '?pageSize=0' });
  await walk.ask('PATCH /servers/{qualifiedName}', 200, { qualifiedName }, { license: 'MIT', homepage: null });
  await walk.ask('PATCH /servers/{qualifiedName}', 400, { qualifiedName }, { homepage: 'none' });
  await walk.ask('PATCH /servers/{qualifiedName}', 403, { qualifiedName }, {}, other);
  await walk.ask('PATCH /servers/{qualifiedName}', 404, { qualifiedName: `${namespace}/never` }, {});
  await walk.ask('PUT /servers/{qualifiedName}/verified', 200, { qualifiedName }, { verified: true });
  await walk.ask('PUT /servers/{qualifiedName}/verified', 400, { qualifiedName }, {});
  await walk.ask('PUT /servers/{qualifiedName}/verified', 403, { qualifiedName }, { verified: true }, other);
  await walk.ask('PUT /servers/{qualifiedName}/verified', 404, { qualifiedName: namespace }, { verified: true });
  for (const [path, there, nowhere] of [
    ['PUT /servers/{qualifiedName}/suspension', { qualifiedName }, { qualifiedName: `${namespace}/never` }],
    ['PUT /namespaces/{name}/suspension', { name: namespace }, { name: gone }],
  ] as const) {
    await walk.ask(path, 200, there, { reason: null });
    await walk.ask(path, 400, there, { reason: '' });
    await walk.ask(path, 403, there, { reason: null }, other);
    await walk.ask(path, 404, nowhere, { reason: null });
  }
  const move = 'POST /servers/{qualifiedName}/transfer';
  const target = { targetOrganizationId: 'me', targetNamespace: namespace };
  await walk.ask('PUT /servers/{qualifiedName}', 201, { qualifiedName: `${namespace}/taken` }, {});
  await walk.ask(move, 200, { qualifiedName }, target);
  await walk.ask(move, 400, { qualifiedName }, {});
  await walk.ask(move, 403, { qualifiedName }, target, other);
  await walk.ask(move, 404, { qualifiedName }, { ...target, targetNamespace: gone });
  await walk.ask(move, 409, { qualifiedName }, { ...target, targetSlug: 'taken' });
  await walk.ask('DELETE /servers/{qualifiedName}', 200, { qualifiedName: `${namespace}/taken` });
  const secrets = { qualifiedName, secretName: 'KEY' };
  await walk.ask('PUT /servers/{qualifiedName}/secrets', 200, secrets, { name: 'KEY', value: 'v' });
  await walk.ask('PUT /servers/{qualifiedName}/secrets', 400, secrets, { name: 'a b', value: 'v' });
  await walk.ask('PUT /servers/{qualifiedName}/secrets', 404, secrets, { name: 'KEY', value: 'v' }, other);
  await walk.ask('GET /servers/{qualifiedName}/secrets', 200, secrets);
  await walk.ask('PATCH /servers/{qualifiedName}', 200, secrets, { visibility: 'restricted' });
  await walk.ask('PATCH /servers/{qualifiedName}', 409, secrets, { visibility: 'public' });
  await walk.ask('PUT /servers/{qualifiedName}', 409, secrets, { visibility: 'public' });
  await walk.ask('PATCH /servers/{qualifiedName}', 200, secrets, { visibility: 'public', confirmSecrets: true });
  await walk.ask('GET /servers/{qualifiedName}/secrets', 404, secrets, undefined, other);
  await walk.ask('DELETE /servers/{qualifiedName}/secrets/{secretName}', 200, secrets);
  await walk.ask('DELETE /servers/{qualifiedName}/secrets/{secretName}', 404, secrets);
  const domain = { qualifiedName, domainId: 'managed' };
  await walk.ask('GET /servers/{qualifiedName}/domains', 200, domain);
  await walk.ask('GET /servers/{qualifiedName}/domains', 404, domain, undefined, other);
  const rename = 'PATCH /servers/{qualifiedName}/domains/{domainId}';
  await walk.ask(rename, 200, domain, { subdomain: uniqueName('sub') });
  await walk.ask(rename, 400, domain, { subdomain: 'A' });
  await walk.ask(rename, 404, { ...domain, domainId: 'own' }, { subdomain: uniqueName('sub') });
  const runtime = '/servers/{qualifiedName}/runtime';
  await walk.ask(`GET ${runtime}`, 200, { qualifiedName });
  await walk.ask(`GET ${runtime}`, 404, { qualifiedName }, undefined, other);
  await walk.ask(
    `PATCH ${runtime}`,
    200,
    { qualifiedName },
    { egressAllow: ['*.example.com:8443'], logPayloads: true },
  );
  await walk.ask(`PATCH ${runtime}`, 400, { qualifiedName }, { egressAllow: ['https://example.com'] });
  await walk.ask(`PATCH ${runtime}`, 404, { qualifiedName }, {}, other);
  const icon = 'GET /servers/{qualifiedName}/icon';
  const form = (file: Buffer) => formOf({ file });
  await walk.ask(icon, 404, { qualifiedName });
  for (const bytes of Object.values(images)) {
    await walk.ask('PUT /servers/{qualifiedName}/icon', 200, { qualifiedName }, form(bytes));
    await walk.ask(icon, 200, { qualifiedName });
  }
  await walk.ask(icon, 403, { qualifiedName }, undefined, { query: '?expires=1&signature=x' });
  await walk.ask('PUT /servers/{qualifiedName}/icon', 400, { qualifiedName }, form(Buffer.from('none')));
  await walk.ask('PUT /servers/{qualifiedName}/icon', 403, { qualifiedName }, form(images['image/png']), other);
  await walk.ask('PUT /servers/{qualifiedName}/icon', 413, { qualifiedName }, form(Buffer.alloc(2 ** 21)));
  await walk.ask('DELETE /servers/{qualifiedName}/icon', 403, { qualifiedName }, undefined, other);
  await walk.ask('DELETE /servers/{qualifiedName}/icon', 200, { qualifiedName });
  await walk.ask('DELETE /servers/{qualifiedName}/icon', 404, { qualifiedName });
  const older = 'PUT /namespaces/{namespace}/servers/{server}';
  await walk.ask(older, 201, { namespace, server: 'older' }, {});
  await walk.ask(older, 400, { namespace, server: 'x' }, {});
  await walk.ask(older, 403, { namespace, server: 'older' }, {}, other);
  await walk.ask('DELETE /servers/{qualifiedName}', 200, { qualifiedName });
  await walk.ask('DELETE /servers/{qualifiedName}', 404, { qualifiedName });
  await walk.ask('GET /servers/{qualifiedName}', 404, { qualifiedName });
}
