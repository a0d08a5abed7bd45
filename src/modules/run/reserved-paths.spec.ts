import { describe, expect, it } from '@jest/globals';
import { isReserved } from './hosted-http-proxy.js';

describe('isReserved', () => {
  it.each([
    '/__smithery',
    '/__smithery/',
    '/__smithery/auth',
    '/__smithery?a=b',
    '/__smithery#a',
    '/%5F%5fsmithery/auth',
    '/%5f%5f%73%6d%69%74%68%65%72%79/auth',
    '/%255f_smithery/auth',
    '/%25255f_smithery/auth',
    '/%25%35f_smithery/auth',
    '/__smithery%2fauth',
    '/%2f__smithery/auth',
    '//__smithery//auth',
    '/./__smithery/auth',
    '/a/../__smithery/auth',
    '/a/%2e%2e/__smithery/auth',
    '/a/..%252f__smithery/auth',
    '/\\__smithery\\auth',
    '/%5c__smithery%5cauth',
    '/__Smithery/auth',
    '/__ſmithery/auth',
    '/%EF%BC%BF_smithery/auth',
    '/__smithery./auth',
    '/__smithery...%20/auth',
    '/%20__smithery/auth',
    '/__smithery;a=b/auth',
    '/__smithery%3fa/auth',
    '/__smithery%23/auth',
    '/__smithery%00/auth',
    '/__smith%0aery/auth',
    '/__smith%e2%80%8bery/auth',
  ])('returns true for %s', (path) => {
    expect(isReserved(path)).toBe(true);
  });

  it.each([
    '/',
    '',
    '/_smithery/auth',
    '/__smithery2',
    '/a__smithery/auth',
    '/auth?next=/__smithery/auth',
    '/%zz',
    '/%25',
  ])('returns false for %s', (path) => {
    expect(isReserved(path)).toBe(false);
  });

  it('accepts long paths of any kind', () => {
    for (const piece of ['%25', '%', '.', ' .', '/', '%2', '%e2']) {
      expect(isReserved(`/${piece.repeat(20_000)}a`)).toBe(false);
    }
  });
});
