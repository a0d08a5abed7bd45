import { describe, expect, it } from '@jest/globals';
import { startEverything } from '../upstream/everything.js';
import { startSdkV1, startSdkV2 } from './sdk-upstream.js';
import { closing, connectV1, connectV2, post, start, textOf } from '../upstream/upstream-clients.js';

const modern = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

describe('an upstream of 2026-07-28 alone', () => {
  it('serves the official v2 client, questions included', async () => {
    const upstream = await start({ modernOnly: true });
    const client = await connectV2(upstream.url, { sampling: {} });
    client.setRequestHandler('sampling/createMessage', () => ({
      role: 'assistant',
      model: 'none',
      content: { type: 'text', text: 'Nobody' },
    }));
    expect(client.getProtocolEra()).toBe('modern');
    expect(textOf(await client.callTool({ name: 'echo', arguments: { message: 'hællo' } }))).toBe('hællo');
    expect(textOf(await client.callTool({ name: 'asks' }))).toContain('Nobody');
    expect((await client.listTools()).tools).toHaveLength(13);
    expect((await client.readResource({ uri: 'docs://readme' })).contents).toHaveLength(1);
    expect(upstream.count('initialize')).toBe(0);
    await expect(client.callTool({ name: 'écho' })).rejects.toMatchObject({ code: -32602 });
    expect(upstream.requests.at(-1)?.headers['mcp-name']).toMatch(/^=\?base64\?/);
  });
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

describe('servers of others', () => {
  it.each([
    [true, true],
    [true, false],
    [false, true],
    [false, false],
  ])('SDK v1, stateful %s, JSON %s, echoes', async (stateful, json) => {
    const sdk = closing(await startSdkV1({ stateful, json }));
    const client = await connectV1(sdk.url);
    expect(textOf(await client.callTool({ name: 'echo', arguments: { message: 'hi' } }))).toBe('hi');
  });

  it('SDK v2 echoes to both eras', async () => {
    const sdk = closing(await startSdkV2({ legacy: 'stateless' }));
    for (const client of [await connectV1(sdk.url), await connectV2(sdk.url)]) {
      expect(textOf(await client.callTool({ name: 'echo', arguments: { message: 'hi' } }))).toBe('hi');
    }
  });

  it('server-everything lists its tools', async () => {
    const everything = closing(await startEverything());
    const client = await connectV1(everything.url);
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('echo');
  });
});
