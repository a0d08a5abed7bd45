import { describe, expect, it } from '@jest/globals';
import { endToEnd } from './hosted-call.js';

describe('headers on their way to a program and back', () => {
  it('lose those of one connection, those it names, and ours but for the name of a session', () => {
    const headers = {
      host: 'program',
      connection: 'close, X-Private',
      'x-private': '1',
      'keep-alive': 'timeout=5',
      'proxy-authorization': 'Basic x',
      te: 'trailers',
      trailer: 'x',
      'transfer-encoding': 'chunked',
      upgrade: 'h2c',
      expect: '100-continue',
      'x-slipway-invocation': 'forged',
      'x-slipway-internal': 'forged',
      'x-slipway-session': 'name',
      'mcp-session-id': 's1',
      'set-cookie': ['a=1', 'b=2'],
    };
    expect(endToEnd(headers)).toEqual({
      host: 'program',
      'x-slipway-session': 'name',
      'mcp-session-id': 's1',
      'set-cookie': ['a=1', 'b=2'],
    });
  });
});
