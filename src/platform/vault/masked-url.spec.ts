import { describe, expect, it } from '@jest/globals';
import { hasQuery, maskedQuery } from './masked-url.js';

describe('a URL with a query', () => {
  it.each([
    ['https://h/p?apiKey=secret&b=2', 'https://h/p?apiKey=***&b=***'],
    ['https://h/p?secret', 'https://h/p?***'],
    ['https://h/p?a=x=y#f?z', 'https://h/p?a=***#f?z'],
    ['https://h/p?a=', 'https://h/p?a=***'],
  ])('%s shows names only', (url, masked) => {
    expect(hasQuery(url)).toBe(true);
    expect(maskedQuery(url)).toBe(masked);
    expect(maskedQuery(masked)).toBe(masked);
  });

  it.each(['https://h/p', 'https://h/p?', 'https://h/p#a?b=c', ''])('%s has no query', (url) => {
    expect(hasQuery(url)).toBe(false);
    expect(maskedQuery(url)).toBe(url);
  });
});
