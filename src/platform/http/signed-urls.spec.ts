import { describe, expect, it, jest, afterEach } from '@jest/globals';
import { loadEnv } from '../../config/env.js';
import { ForbiddenError } from '../errors/domain-error.js';
import { SignedUrls } from './signed-urls.js';

const key = (id: string, byte: number) => `${id}:${Buffer.alloc(32, byte).toString('base64')}`;
const linksWith = (...keys: string[]) =>
  new SignedUrls(
    loadEnv({
      DATABASE_URL: 'postgres://localhost/x',
      ENCRYPTION_KEYS: keys.join(','),
      PUBLIC_URL: 'https://slipway.test',
    }),
  );

const path = '/servers/acme%2Fweather/download';
const links = linksWith(key('k1', 1));
const queryOf = (link: string) => Object.fromEntries(new URL(link).searchParams);

afterEach(() => {
  jest.useRealTimers();
});

describe('a signed link', () => {
  it('opens no other path, and none when a character of it was changed', () => {
    const query = queryOf(links.sign(path, 600));
    const { expires, signature } = query;
    const cases: [path: string, query: object][] = [
      ['/servers/acme%2Fother/download', query],
      [`${path}/`, query],
      [path, { expires: String(Number(expires) + 1), signature }],
      [path, { expires, signature: `${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}` }],
      [path, { expires, signature: '' }],
      [path, { expires, signature: [signature] }],
      [path, { expires }],
      [path, { signature }],
      [path, { expires: 'Infinity', signature }],
      [path, { expires: `${expires}.0`, signature: 'x' }],
    ];
    for (const [target, given] of cases) expect(() => links.isSigned(target, given)).toThrow(ForbiddenError);
  });

  it('is refused without its two parameters', () => {
    expect(links.isSigned(path, {})).toBe(false);
  });

  it('works for at least half of its lifetime and at most all of it', () => {
    jest.useFakeTimers({ now: new Date('2026-11-20T10:00:01.500Z') });
    const start = Date.now();
    const query = queryOf(links.sign(path, 600));
    jest.setSystemTime(start + 300_000);
    expect(links.isSigned(path, query)).toBe(true);
    jest.setSystemTime(start + 600_000);
    expect(() => links.isSigned(path, query)).toThrow(ForbiddenError);
  });

  it('stays valid after a key rotation while the old key is kept', () => {
    const query = queryOf(links.sign(path, 600));
    expect(linksWith(key('k2', 2), key('k1', 1)).isSigned(path, query)).toBe(true);
    expect(() => linksWith(key('k2', 2)).isSigned(path, query)).toThrow(ForbiddenError);
  });
});
