import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { startApp, type TestAccount, type TestApp } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { ask } from '../../support/mcp/front-calls.js';
import { packBundle } from '../../support/releases/mcpb.js';
import { published, releaseIn } from '../../support/releases/releases.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

let app: TestApp;
let owner: TestAccount;
let name: string;
let url: string;

beforeAll(async () => {
  app = await startApp({ RUNTIME_BUNDLES: 'isolated' });
  owner = await app.account();
  name = await createServer(app, owner);
  const id = await published(app, owner, name, { type: 'stdio', runtime: 'node' }, { bundle: await packBundle() });
  await releaseIn(app, owner, name, id, 'SUCCESS');
  const { body } = await app.as(owner).get(`/servers/${encodeURIComponent(name)}`);
  url = `${app.url}/run/${(body as { qualifiedName: string }).qualifiedName.replace('/', '--')}`;
});

afterAll(() => app.close());

const mine = () => ({ authorization: `Bearer ${owner.key}` });

interface Logged {
  invocations: { tool: string | null; response: { outcome: string }; logs: { message: string }[] }[];
}

describe('a bundle on a service that runs bundles', () => {
  const forecast = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'forecast', arguments: {} } };

  verifies(
    'bundle:run',
    'is called at its run address with what the caller configures, and its calls are logged',
    async () => {
      const { body } = await ask(`${url}?key=k-1`, forecast, mine());
      expect(body).toMatchObject({ result: { content: [{ text: 'forecast with k-1' }] } });
      const other = await ask(`${url}?key=k-2`, forecast, mine());
      expect(other.body).toMatchObject({ result: { content: [{ text: 'forecast with k-2' }] } });
      const logged = async () => {
        const answer = await app.as(owner).get(`/servers/${encodeURIComponent(name)}/logs?tool=forecast`);
        return (answer.body as Logged).invocations.filter(({ response }) => response.outcome === 'ok').length === 2;
      };
      await until(logged, 'both calls are logged');
    },
  );

  verifies('bundle:manifest', 'asks for what lacks before anything is started', async () => {
    const { status, body } = await ask(url, forecast, mine());
    expect([status, body.error]).toMatchObject([409, { code: -32002, data: { missing: { query: ['key'] } } }]);
  });

  verifies('bundle:run', 'is called through a connection that keeps its values', async () => {
    const namespace = await createNamespace(app, owner);
    const { path, body } = await createConnection(app, owner, { server: name }, { namespace });
    expect(body).toMatchObject({ status: { state: 'input_required' } });
    await app.as(owner).put(path, { mcpUrl: `${url}?key=mine` });
    const answer = await app.as(owner).post(`${path}/.tools/alerts`, {});
    expect(answer.body).toMatchObject({ content: [{ text: 'alerts with mine' }] });
  });
});
