import { describe, expect, it } from '@jest/globals';
import { isPkceKnown } from './pkce.js';

describe('isPkceKnown', () => {
  it.each([
    ['https://login.microsoftonline.com/6babcaad-604b-40ac-a9d7-9fd97c0b779f/v2.0', true],
    ['https://login.microsoftonline.com/common/v2.0', true],
    ['https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_AbCdEf', true],
    ['https://cognito-idp.evil.example/x.amazonaws.com/y', false],
    ['https://cognito-idp.a.b.amazonaws.com/y', false],
    ['https://login.microsoftonline.com.evil.example/x', false],
    ['https://login.microsoftonline.com@evil.example/x', false],
    ['https://evil.example/https://login.microsoftonline.com/x', false],
    ['http://login.microsoftonline.com/x', false],
    ['https://as.example', false],
  ])('returns by default for %s: %p', (issuer, expected) => {
    expect(isPkceKnown(issuer, null)).toBe(expected);
  });

  it.each([
    ['https://as.example', 'https://as.example', true],
    ['https://as.example/', 'https://as.example', true],
    ['https://as.example', 'https://as.example/', true],
    ['https://as.example/tenant', 'https://as.example', false],
    ['https://as-example', 'https://as.example', false],
    ['http://127.0.0.1:4000', 'http://127.0.0.1:4000', true],
    ['http://127.0.0.1:4001', 'http://127.0.0.1:4000', false],
  ])('%s by the pattern %s: %p', (issuer, pattern, expected) => {
    expect(isPkceKnown(issuer, [pattern])).toBe(expected);
  });

  it('is false for all when the list is empty', () => {
    expect(isPkceKnown('https://as.example', [])).toBe(false);
  });
});
