import { describe, expect, it } from '@jest/globals';
import { UpstreamError } from './mcp-errors.js';
import { helloOfDiscover, helloOfInitialize, initializeParams } from './session.js';

const url = new URL('http://example.com/mcp');

describe('what we say of ourselves', () => {
  it('offers the newest revision with a handshake and no capability', () => {
    expect(JSON.parse(initializeParams())).toEqual({
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'slipway', version: expect.any(String) },
    });
  });
});

describe('helloOfInitialize', () => {
  it('takes what the server says, unknown fields included', () => {
    const serverInfo = { name: 'a', version: '1', title: 'A', 'x-own': [1] };
    const result = {
      protocolVersion: '2025-03-26',
      capabilities: { tools: { x: 1 } },
      serverInfo,
      instructions: 'Do.',
    };
    expect(helloOfInitialize(result, url)).toEqual({ era: 'legacy', ...result });
  });

  it('fills in what a sloppy server leaves out', () => {
    for (const serverInfo of [undefined, null, [], 'text', { name: 5, version: null }]) {
      const hello = helloOfInitialize(
        { protocolVersion: '2024-11-05', capabilities: null, serverInfo, instructions: 7 },
        url,
      );
      expect(hello).toEqual({
        era: 'legacy',
        protocolVersion: '2024-11-05',
        capabilities: {},
        serverInfo: { name: 'unnamed', version: '' },
      });
    }
  });

  it.each([undefined, null, 'text', [], {}, { protocolVersion: 20251125 }])('refuses %j as no MCP', (result) => {
    expect(() => helloOfInitialize(result, url)).toThrow(UpstreamError);
    expect(() => helloOfInitialize(result, url)).toThrow('no MCP server');
  });

  it.each(['2026-07-28', '1999-01-01', ''])('refuses revision "%s" and names those it knows', (protocolVersion) => {
    expect(() => helloOfInitialize({ protocolVersion }, url)).toThrow(UpstreamError);
    expect(() => helloOfInitialize({ protocolVersion }, url)).toThrow('2025-11-25');
  });
});

describe('helloOfDiscover', () => {
  const serverInfo = { name: 'a', version: '1' };
  const _meta = { 'io.modelcontextprotocol/serverInfo': serverInfo };

  it('takes a server that speaks our modern revision among others', () => {
    const capabilities = { tools: {} };
    const result = { supportedVersions: ['2099-01-01', '2026-07-28'], capabilities, instructions: 'Do.', _meta };
    expect(helloOfDiscover(result, url)).toEqual({
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
      expect(() => helloOfDiscover(result, url)).toThrow(UpstreamError);
    },
  );
});
