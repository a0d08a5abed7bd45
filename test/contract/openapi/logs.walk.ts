import { expect } from '@jest/globals';
import type { ApiWalk } from '../../support/documentation/api-walk.js';
import { until } from '../../support/until.js';

/** Runtime logs and their ingestion. */
export default async function (walk: ApiWalk): Promise<void> {
  const qualifiedName = `${await walk.namespace()}/weather`;
  const other = await walk.other();
  await walk.ask('PUT /servers/{qualifiedName}', 201, { qualifiedName }, {});
  const [list, send] = ['GET', 'POST'].map((method) => `${method} /servers/{qualifiedName}/logs`);
  const thrown = { exceptions: [{ name: 'RangeError', message: 'too far' }], logs: [{ message: 'It rains' }] };
  await walk.ask(send, 202, { qualifiedName }, { invocations: [thrown] });
  await walk.ask(send, 202, { qualifiedName }, [thrown]);
  await walk.ask(send, 400, { qualifiedName }, [{ logs: [{}] }]);
  await walk.ask(send, 404, { qualifiedName }, [], other);
  await until(async () => (await walk.ask(list, 200, { qualifiedName })).total === 2, 'they are there');
  await walk.ask(list, 400, { qualifiedName }, undefined, { query: '?limit=0' });
  await walk.ask(list, 404, { qualifiedName }, undefined, other);
  const stream = 'GET /servers/{qualifiedName}/logs/stream';
  await walk.ask(stream, 400, { qualifiedName }, undefined, { query: '?outcome=fine' });
  await walk.ask(stream, 404, { qualifiedName }, undefined, other);
  // The stream does not end by itself.
  const leaving = new AbortController();
  const { status, headers } = await fetch(`${walk.url}/servers/${encodeURIComponent(qualifiedName)}/logs/stream`, {
    headers: { authorization: `Bearer ${walk.key}` },
    signal: leaving.signal,
  });
  leaving.abort();
  expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
  walk.record(stream, status);
}
