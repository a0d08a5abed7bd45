import { describe, expect, it } from '@jest/globals';
import { UpstreamError } from './mcp-errors.js';
import { identityOfDiscover, identityOfInitialize, initializeParams } from './session.js';

const url = new URL('http://example.com/mcp');

describe('the `initialize` request of Slipway', () => {
  it('offers the newest revision with a handshake and no capability', () => {
    expect(JSON.parse(initializeParams())).toEqual({
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'slipway', version: expect.any(String) },
    });
  });
});

describe('helloOfInitialize', () => {
  it('keeps what the server sends, unknown fields included', () => {
    const serverInfo = { name: 'a', version: '1', title: 'A', 'x-own': [1] };
    const result = {
      protocolVersion: '2025-03-26',
      capabilities: { tools: { x: 1 } },
      serverInfo,
      instructions: 'Do.',
    };
    expect(identityOfInitialize(result, url)).toEqual({ era: 'legacy', ...result });
  });

  it('fills in members that a server omits', () => {
    for (const serverInfo of [undefined, null, [], 'text', { name: 5, version: null }]) {
      const identity = identityOfInitialize(
        { protocolVersion: '2024-11-05', capabilities: null, serverInfo, instructions: 7 },
        url,
      );
      expect(identity).toEqual({
        era: 'legacy',
        protocolVersion: '2024-11-05',
        capabilities: {},
        serverInfo: { name: 'unnamed', version: '' },
      });
    }
  });

  it.each([undefined, null, 'text', [], {}, { protocolVersion: 20251125 }])(
    'refuses %j, which is not MCP',
    (result) => {
      expect(() => identityOfInitialize(result, url)).toThrow(UpstreamError);
      expect(() => identityOfInitialize(result, url)).toThrow('not an MCP server');
    },
  );

  it.each(['2026-07-28', '1999-01-01', ''])('refuses revision "%s" and names those it knows', (protocolVersion) => {
    expect(() => identityOfInitialize({ protocolVersion }, url)).toThrow(UpstreamError);
    expect(() => identityOfInitialize({ protocolVersion }, url)).toThrow('2025-11-25');
  });
});

describe('helloOfDiscover', () => {
  const serverInfo = { name: 'a', version: '1' };
  const _meta = { 'io.modelcontextprotocol/serverInfo': serverInfo };

  it('accepts a server that supports our modern revision among others', () => {
    const capabilities = { tools: {} };
    const result = { supportedVersions: ['2099-01-01', '2026-07-28'], capabilities, instructions: 'Do.', _meta };
    expect(identityOfDiscover(result, url)).toEqual({
      era: 'modern',
      protocolVersion: '2026-07-28',
      capabilities,
      serverInfo,
      instructions: 'Do.',
    });
  });

  it.each([undefined, null, 'text', { supportedVersions: [] }, { supportedVersions: ['2025-11-25'] }])(
    'refuses %j',
    (result) => {
      expect(() => identityOfDiscover(result, url)).toThrow(UpstreamError);
    },
  );
});
