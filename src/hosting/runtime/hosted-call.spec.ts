import { describe, expect, it } from '@jest/globals';
import { endToEnd } from './hosted-call.js';

describe('headers of requests to programs and of their answers', () => {
  it('omit those of the connection, those it names, and those of the service except the session id', () => {
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
