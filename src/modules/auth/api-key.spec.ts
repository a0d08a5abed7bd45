import { describe, expect, it } from '@jest/globals';
import { generateApiKey, hashApiKey, isApiKey, prefixOf } from './api-key.js';

describe('API keys', () => {
  it('consist of a recognisable prefix and 32 random bytes, and are unique', () => {
    const keys = Array.from({ length: 1_000 }, generateApiKey);
    for (const key of keys) {
      expect(key).toMatch(/^slipway_[A-Za-z0-9_-]{43}$/);
      expect(Buffer.from(key.slice('slipway_'.length), 'base64url')).toHaveLength(32);
      expect(isApiKey(key)).toBe(true);
    }
    expect(new Set(keys).size).toBe(1_000);
  });

  it.each(['', 'slipway_', 'x', `slipway_${'a'.repeat(42)}`, `slipway_${'a'.repeat(44)}`, `SLIPWAY_${'a'.repeat(43)}`])(
    'do not match %p',
    (text) => {
      expect(isApiKey(text)).toBe(false);
    },
  );

  it.each([' ', '\n', '\u0000', '%0A'])('are not found in %p, with text before or after', (extra) => {
    const key = generateApiKey();
    expect([isApiKey(extra + key), isApiKey(key + extra)]).toEqual([false, false]);
  });

  it('are identified by their SHA-256', () => {
    const hash = hashApiKey('slipway_test');
    expect(hash.toString('hex')).toBe('745f157dfca1898712ea6a8a3f027f3af77a27276a1bec927298edd10949eea4');
  });

  it('show four characters of the secret, too few to guess the rest', () => {
    expect(prefixOf('slipway_abcdefgh')).toBe('slipway_abcd');
  });
});
