import { expect } from '@jest/globals';
import { tooLarge, type ApiWalk } from '../../support/documentation/api-walk.js';
import { uniqueName } from '../../support/app.js';
import { startScripted } from '../../support/special-upstreams/scripted-upstream.js';
import { openTunnel } from '../../support/mcp/uplink-client.js';
import { startUpstream } from '../../support/upstream/upstream.js';

/** Streams of MCP sessions, pages for browsers, and a document for authorization servers. */
export const undocumented = [
  'GET /connect/{namespace}/{connectionId}/mcp',
  'DELETE /connect/{namespace}/{connectionId}/mcp',
  'GET /connect/{namespace}/.mcp',
  'DELETE /connect/{namespace}/.mcp',
  'GET /setup/{path}',
  'POST /setup/{path}',
  'GET /oauth/callback',
  'GET /oauth/client.json',
];

/** Connections: their records, tools, triggers, logs and MCP endpoints. */
export default async function (walk: ApiWalk): Promise<void> {
  const upstream = walk.own(await startUpstream());
  const guarded = walk.own(await startUpstream({ requireHeaders: { authorization: 'Bearer right' } }));
  const namespace = await walk.namespace();
  const other = await walk.other();
  const connection = 'PUT /connect/{namespace}/{connectionId}';
  const mine = { namespace, connectionId: 'mine' };
  const body = { mcpUrl: upstream.url, metadata: { userId: 'u-1' } };
  await walk.ask(connection, 201, mine, body);
  await walk.ask(connection, 200, mine, { name: 'Renamed' });
  await walk.ask(connection, 400, mine, { surprise: true });
  await walk.ask(connection, 409, mine, { mcpUrl: guarded.url });
  await walk.ask(connection, 404, mine, body, other);
  await walk.ask(connection, 413, mine, tooLarge);
  await walk.ask('POST /connect/{namespace}', 201, { namespace }, body);
  await walk.ask('POST /connect/{namespace}', 400, { namespace }, {});
  await walk.ask('POST /connect/{namespace}', 404, { namespace: uniqueName('ns') }, body);
  const locked = { namespace, connectionId: 'locked' };
  expect((await walk.ask(connection, 201, locked, { mcpUrl: guarded.url })).status.state).toBe('auth_required');
  const dead = { namespace, connectionId: 'dead' };
  expect((await walk.ask(connection, 201, dead, { mcpUrl: 'http://127.0.0.1:1/mcp' })).status.state).toBe('error');
  await walk.ask('GET /connect/{namespace}', 200, { namespace }, undefined, { query: '?limit=2&metadata.userId=u-1' });
  await walk.ask('GET /connect/{namespace}', 400, { namespace }, undefined, { query: '?limit=0' });
  await walk.ask('GET /connect/{namespace}', 404, { namespace }, undefined, other);
  await walk.ask('GET /connect/{namespace}/{connectionId}', 200, mine);
  await walk.ask('GET /connect/{namespace}/{connectionId}', 404, { namespace, connectionId: 'none' });
  const probe = 'POST /accounts/me/probe';
  await walk.ask(probe, 200, {}, { mcpUrl: upstream.url });
  await walk.ask(probe, 200, {}, { mcpUrl: 'http://10.0.0.1/mcp' });
  await walk.ask(probe, 400, {}, {});
  await walk.ask(probe, 404, {}, { server: 'nobody/nothing' });
  for (let left = 27; left > 0; left -= 1) await walk.ask(probe, 404, {}, { server: 'nobody/nothing' });
  await walk.ask(probe, 429, {}, { server: 'nobody/nothing' });

  const local = { namespace, connectionId: 'local' };
  const paired = 'GET /connect/{namespace}/{connectionId}/uplink';
  expect((await walk.ask(connection, 201, local, { transport: 'uplink' })).status.reason).toBe('uplink_waiting');
  await walk.ask(paired, 503, local);
  const tunnel = await openTunnel({ url: walk.url }, { key: walk.key }, `/${namespace}/local`);
  await walk.ask(paired, 200, local);
  await walk.ask(paired, 404, mine);
  await tunnel.close();

  // Tools
  const list = 'GET /connect/{namespace}/{connectionId}/.tools';
  await walk.ask(list, 200, mine);
  await walk.ask(list, 404, { namespace, connectionId: 'none' });
  await walk.ask(list, 409, locked);
  await walk.ask(list, 502, dead);
  const get = 'GET /connect/{namespace}/{connectionId}/.tools/{toolPath}';
  await walk.ask(get, 200, { ...mine, toolPath: 'echo' });
  await walk.ask(get, 200, { ...mine, toolPath: 'repo' });
  await walk.ask(get, 404, { ...mine, toolPath: 'none' });
  const call = 'POST /connect/{namespace}/{connectionId}/.tools/{toolPath}';
  await walk.ask(call, 200, { ...mine, toolPath: 'echo' }, { message: 'Hello' });
  await walk.ask(call, 200, { ...mine, toolPath: 'fail' }, {});
  await walk.ask(call, 400, { ...mine, toolPath: 'echo' }, []);
  await walk.ask(call, 404, { ...mine, toolPath: 'none' }, {});
  await walk.ask(call, 409, { ...locked, toolPath: 'echo' }, {});
  await walk.ask(call, 422, { ...mine, toolPath: 'rpc_error' }, {});
  await walk.ask(call, 502, { ...dead, toolPath: 'echo' }, {});
  await walk.ask(call, 504, { ...mine, toolPath: 'hold' }, {});
  await walk.ask('GET /connect/{namespace}/.tools', 200, { namespace });
  await walk.ask('GET /connect/{namespace}/.tools', 404, { namespace }, undefined, other);

  const logs = 'GET /connect/{namespace}/{connectionId}/logs';
  await walk.ask(logs, 200, mine, undefined, { query: '?limit=5&outcome=ok' });
  await walk.ask(logs, 400, mine, undefined, { query: '?limit=0' });
  await walk.ask(logs, 404, mine, undefined, other);
  const diagnosis = 'GET /connect/{namespace}/{connectionId}/diagnosis';
  await walk.ask(diagnosis, 200, mine);
  await walk.ask(diagnosis, 200, dead);
  await walk.ask(diagnosis, 404, mine, undefined, other);
  const events = await startScripted(({ method }) =>
    method === 'ai.smithery/events/list'
      ? '{"events":[{"name":"page.updated","inputSchema":{"type":"object"}}]}'
      : '{}',
  );
  const telling = { ...mine, connectionId: 'telling' };
  await walk.ask('PUT /connect/{namespace}/{connectionId}', 201, telling, { mcpUrl: events.url });
  const triggers = 'GET /connect/{namespace}/{connectionId}/.triggers';
  await walk.ask(triggers, 200, telling);
  await walk.ask(triggers, 404, mine, undefined, other);
  await walk.ask(triggers, 502, dead);
  const trigger = { ...telling, triggerName: 'page.updated' };
  const delivery = { url: 'https://127.0.0.1/hook', secret: `whsec_${Buffer.alloc(24, 1).toString('base64')}` };
  const path = '/connect/{namespace}/{connectionId}/.triggers/{triggerName}';
  await walk.ask(`GET ${path}`, 200, trigger);
  await walk.ask(`GET ${path}`, 404, { ...trigger, triggerName: 'none' });
  await walk.ask(`POST ${path}`, 200, trigger, { delivery });
  await walk.ask(`POST ${path}`, 400, trigger, { delivery: { ...delivery, secret: 'none' } });
  await walk.ask(`POST ${path}`, 404, { ...trigger, triggerName: 'none' }, { delivery });
  await walk.ask(`DELETE ${path}`, 200, trigger, { delivery: { url: delivery.url } });
  await walk.ask(`DELETE ${path}`, 400, trigger, {});
  await events.close();
  await walk.ask(`DELETE ${path}`, 502, trigger, { delivery: { url: delivery.url } });
  const recording = '/connect/{namespace}/{connectionId}/recording';
  await walk.ask(`PUT ${recording}`, 200, mine, { enabled: true });
  await walk.ask(`PUT ${recording}`, 400, mine, { enabled: 'yes' });
  await walk.ask(`GET ${recording}`, 200, mine);
  await walk.ask(call, 200, { ...mine, toolPath: 'echo' }, { message: 'recorded' });
  await walk.ask(`GET ${recording}/calls`, 200, mine);
  await walk.ask(`GET ${recording}/calls`, 400, mine, undefined, { query: '?limit=0' });
  await walk.ask(`GET ${recording}/fixture`, 200, mine);
  for (const below of ['calls', 'fixture']) await walk.ask(`GET ${recording}/${below}`, 404, mine, undefined, other);
  await walk.ask(`DELETE ${recording}`, 200, mine);
  for (const method of ['GET', 'DELETE']) await walk.ask(`${method} ${recording}`, 404, mine, undefined, other);
  await walk.ask(`PUT ${recording}`, 404, mine, { enabled: true }, other);

  // MCP
  const mcp = 'POST /connect/{namespace}/{connectionId}/mcp';
  const rpc = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  await walk.ask(mcp, 200, mine, rpc);
  const steps = { name: 'progress', arguments: { steps: 2 }, _meta: { progressToken: 7 } };
  const stream = { headers: { accept: 'application/json, text/event-stream' } };
  const streamed = await walk.ask(mcp, 200, mine, { ...rpc, method: 'tools/call', params: steps }, stream);
  expect(streamed).toContain('notifications/progress');
  await walk.ask(mcp, 202, mine, { jsonrpc: '2.0', method: 'notifications/initialized' });
  await walk.ask(mcp, 400, mine, 'no JSON');
  await walk.ask(mcp, 403, mine, rpc, { headers: { origin: 'https://evil.example' } });
  await walk.ask(mcp, 404, mine, rpc, other);
  const together = 'POST /connect/{namespace}/.mcp';
  await walk.ask(together, 200, { namespace }, rpc);
  await walk.ask(together, 202, { namespace }, { jsonrpc: '2.0', method: 'notifications/initialized' });
  await walk.ask(together, 400, { namespace }, rpc, { query: '?mode=none' });
  await walk.ask(together, 403, { namespace }, rpc, { headers: { origin: 'https://evil.example' } });
  await walk.ask(together, 404, { namespace }, rpc, other);

  await walk.ask('DELETE /connect/{namespace}/{connectionId}', 200, mine);
  await walk.ask('DELETE /connect/{namespace}/{connectionId}', 404, mine);
}
