import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { startApp, type TestAccount, type TestApp } from '../support/app.js';
import { createConnection, createServer } from '../support/factories.js';
import { published, releaseIn } from '../support/releases.js';
import { pathOf } from '../support/server-rows.js';
import { until } from '../support/until.js';
import { startUpstream, type Upstream } from '../support/upstream.js';
import { verifies } from '../support/verifies.js';

let app: TestApp;
let owner: TestAccount;
let upstream: Upstream;

beforeAll(async () => {
  [app, upstream] = await Promise.all([startApp(), startUpstream()]);
  owner = await app.account();
});
afterAll(async () => {
  await app.close();
  await upstream.close();
});

const gone = /\/run\/\S+ answered 404: Server not found\. What was there is gone or has another address now\.$/;

describe('a connection to a registered server', () => {
  verifies('connection:status:server-gone', 'works, and says what happened once that server is deleted', async () => {
    const name = await createServer(app, owner);
    const id = await published(app, owner, name, { type: 'external', upstreamUrl: upstream.url });
    const { mcpUrl } = await releaseIn(app, owner, name, id, 'SUCCESS');
    const { path, body } = await createConnection(app, owner, {
      mcpUrl: String(mcpUrl).replace(app.env.baseUrl, app.url),
      headers: { authorization: `Bearer ${owner.key}` },
    });
    expect(body).toMatchObject({ status: { state: 'connected' } });
    expect((await app.as(owner).post(`${path}/.tools/echo`, { message: 'Hello' })).status).toBe(200);

    expect((await app.as(owner).delete(pathOf(name))).status).toBe(200);
    const call = await until(async () => {
      const answer = await app.as(owner).post(`${path}/.tools/echo`, { message: 'Hello' });
      return answer.status === 200 ? null : answer;
    }, 'the server is gone');
    expect([call.status, call.body]).toEqual([502, { error: 'upstream_error', message: expect.stringMatching(gone) }]);
    const status = await until(async () => {
      const { body: now } = await app.as(owner).get(path);
      return now.status.state === 'connected' ? null : (now.status as object);
    }, 'the status tells');
    expect(status).toMatchObject({ state: 'error', message: expect.stringMatching(gone) });
  });
});
