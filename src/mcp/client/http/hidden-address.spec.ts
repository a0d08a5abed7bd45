import { describe, expect, it } from '@jest/globals';
import { fromHttpStatus, fromSocketError, notMcp, UpstreamError } from '../../protocol/mcp-errors.js';
import { withHiddenAddress, withoutAddress } from './hidden-address.js';

describe('withoutAddress', () => {
  const urls = ['http://mcp:8080/s3cret/mcp', 'https://up.example.com/s3cret', 'http://127.0.0.1:3001/s3cret?k=s3cret'];

  it.each(urls)('removes %s from the errors that callers see', (href) => {
    const url = new URL(href);
    const failures = [
      ...[300, 403, 404, 405, 429, 500, 418].map((status) =>
        fromHttpStatus(status, url, `${url.origin}/s3cret/new`, `only at "${url.host}" or \\ here`),
      ),
      ...[
        'ENOTFOUND',
        'ECONNREFUSED',
        'ETIMEDOUT',
        'ERR_SSL_WRONG_VERSION_NUMBER',
        'CERT_HAS_EXPIRED',
        'HPE_X',
        '',
      ].map((code) => fromSocketError(Object.assign(new Error('x'), { code }), url, true)),
      ...['text/html', 'application/json'].map((type) => notMcp(url, type, '{}')),
    ];
    for (const { message } of failures) {
      const told = withHiddenAddress(new UpstreamError(message), url, '"acme/weather"').message;
      expect(told).not.toMatch(/only at|s3cret|up\.example|127\.0\.0|8080|3001/);
      expect(told).toContain('"acme/weather"');
    }
  });

  it('removes a word only where it is an address', () => {
    const url = new URL('http://mcp/');
    expect(withoutAddress('The host "mcp" fails: MCP servers answer at /mcp or mcp-x.', url, '"a"')).toBe(
      'The host "a" fails: MCP servers answer at /mcp or mcp-x.',
    );
  });
});
