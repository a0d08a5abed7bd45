import { describe, expect, it } from '@jest/globals';
import { namesHost, parseHostPattern, portOf } from './address-policy.js';

const matches = (pattern: string, url: string): boolean => {
  const parsed = parseHostPattern(pattern);
  if (!parsed) throw new Error(`${pattern} is no pattern`);
  return (
    namesHost(parsed.host, new URL(url).hostname) && (parsed.port ?? portOf(new URL(url))) === portOf(new URL(url))
  );
};

describe('a host pattern', () => {
  it.each([
    ['api.example.com', 'https://api.example.com/x'],
    ['API.Example.com', 'http://api.EXAMPLE.com./x'],
    ['bücher.example', 'https://xn--bcher-kva.example/'],
    ['*.example.com', 'https://a.b.example.com/'],
    ['example.com:443', 'https://example.com/'],
    ['example.com:80', 'http://example.com/'],
    ['*.example.com:8443', 'https://a.example.com:8443/'],
    ['8.8.8.8', 'http://134744072/'],
    ['[2606:4700:0::1111]:80', 'http://[2606:4700::1111]/'],
  ])('%s stands for %s', (pattern, url) => {
    expect(matches(pattern, url)).toBe(true);
  });

  it.each([
    ['api.example.com', 'https://example.com/'],
    ['example.com', 'https://api.example.com/'],
    ['*.example.com', 'https://example.com/'],
    ['*.example.com', 'https://badexample.com/'],
    ['example.com', 'https://example.com.evil.test/'],
    ['example.com:443', 'https://example.com:8443/'],
    ['8.8.8.8', 'http://8.8.8.80/'],
  ])('%s does not stand for %s', (pattern, url) => {
    expect(matches(pattern, url)).toBe(false);
  });

  it.each([
    ...['', '*', '*.', '*.*.com', 'a*.com', 'https://example.com', 'example.com/', 'example.com:', 'example.com:0'],
    ...[
      'example.com:65536',
      'example.com:1:2',
      'a b.com',
      'u@example.com',
      '10.0.0.0/8',
      '127.1',
      '2130706433',
      '0x7f.1',
    ],
    ...[
      '::1',
      '[::1',
      '[::1]x',
      '[1.2.3.4]',
      '*.1.2.3.4',
      'exa mple.com',
      'a..b',
      `${'a'.repeat(64)}.com`,
      'example.com:١',
    ],
  ])('is not %p', (text) => {
    expect(parseHostPattern(text)).toBeNull();
  });
});
