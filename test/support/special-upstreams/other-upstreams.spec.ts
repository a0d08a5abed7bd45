import { describe, expect, it } from '@jest/globals';
import { request } from 'node:https';
import { closing, post, start } from '../upstream/upstream-clients.js';
import { startFaulty } from './faulty-upstreams.js';
import { startSdkV2 } from './sdk-upstream.js';

const modern = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

describe('an upstream of 2026-07-28 alone', () => {
  // The official SDK answers the same, which is what makes the fixture's refusals worth testing against.
  it.each([
    ['initialize', 400, -32022, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} }, {}],
    ['a request without any version', 400, -32022, 'tools/list', {}, {}],
    ['headers without _meta', 400, -32602, 'tools/list', {}, { 'mcp-protocol-version': '2026-07-28' }],
    ['_meta without headers', 400, -32020, 'tools/list', { _meta: modern }, {}],
    ['a missing Mcp-Method', 400, -32020, 'tools/list', { _meta: modern }, { 'mcp-protocol-version': '2026-07-28' }],
    [
      'a wrong Mcp-Name',
      400,
      -32020,
      'tools/call',
      { name: 'echo', _meta: modern },
      { ...headersFor('tools/call', 'x') },
    ],
    ['an unknown method', 404, -32601, 'ping', { _meta: modern }, headersFor('ping')],
    ['an unknown tool', 200, -32602, 'tools/call', { name: 'x', _meta: modern }, headersFor('tools/call', 'x')],
  ])('refuses %s with %d and %d, as the SDK does', async (_, status, code, method, params, headers) => {
    const sdk = closing(await startSdkV2({ legacy: 'reject' }));
    for (const { url } of [await start({ modernOnly: true }), sdk]) {
      const response = await post(url, method, params, { headers });
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({ id: 7, error: { code } });
    }
  });

  function headersFor(method: string, name?: string): Record<string, string> {
    return { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, ...(name ? { 'mcp-name': name } : {}) };
  }
});

it('an upstream with a self-signed certificate answers a client that does not check it, and no other', async () => {
  const { url, hits } = closing(await startFaulty('tls-self-signed'));
  await expect(fetch(url)).rejects.toMatchObject({ cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } });
  expect(hits()).toBe(0);
  const status = await new Promise((resolve, reject) => {
    const careless = request(url, { method: 'POST', rejectUnauthorized: false, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode));
    });
    careless.on('error', reject).end('{"jsonrpc":"2.0","id":1,"method":"initialize"}');
  });
  expect([status, hits()]).toEqual([200, 1]);
});
