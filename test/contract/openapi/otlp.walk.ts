import type { ApiWalk } from '../../support/documentation/api-walk.js';

/** Log records of OpenTelemetry exporters. */
export default async function (walk: ApiWalk): Promise<void> {
  const qualifiedName = `${await walk.namespace()}/weather`;
  const other = await walk.other();
  await walk.ask('PUT /servers/{qualifiedName}', 201, { qualifiedName }, {});
  const exported = 'POST /servers/{qualifiedName}/otlp/v1/logs';
  await walk.ask(exported, 200, { qualifiedName }, { resourceLogs: [] });
  await walk.ask(exported, 400, { qualifiedName }, { resourceLogs: 7 });
  await walk.ask(exported, 404, { qualifiedName }, {}, other);
}
