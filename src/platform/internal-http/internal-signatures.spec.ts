import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { loadEnv } from '../../config/env.js';
import { InternalSignatures } from './internal-signatures.js';

const keys = (...fills: number[]) =>
  fills.map((fill) => `k${fill}:${Buffer.alloc(32, fill).toString('base64')}`).join(',');
const URL = 'http://10.0.0.1:3000';
const withKeys = (...fills: number[]) =>
  new InternalSignatures(loadEnv({ ENCRYPTION_KEYS: keys(...fills), ADVERTISE_URL: URL }));

afterEach(() => {
  jest.useRealTimers();
});

describe('a signature between processes', () => {
  it('is accepted once, for its path and body', () => {
    const header = withKeys(1).sign(URL, '/internal/a', 'body');
    const other = withKeys(1);
    const isBody = other.verify('/internal/a', header);
    expect([isBody?.('body'), isBody?.('other')]).toEqual([true, false]);
    expect(other.verify('/internal/a', header)).toBeNull();
  });

  it('is refused by another process than the one it was made for', () => {
    const header = withKeys(1).sign('http://10.0.0.2:3000', '/internal/a', 'body');
    expect(withKeys(1).verify('/internal/a', header)).toBeNull();
  });

  it('is refused for another path, and when it was changed or made with another key', () => {
    const header = withKeys(1).sign(URL, '/internal/a', 'body');
    expect(withKeys(1).verify('/internal/b', header)).toBeNull();
    expect(withKeys(2).verify('/internal/a', header)).toBeNull();
    expect(withKeys(1).verify('/internal/a', `${header.slice(0, -2)}xx`)).toBeNull();
    expect(withKeys(1).verify('/internal/a', header.replace(/^\d/, '9'))).toBeNull();
    for (const odd of [undefined, '', '.', '...', ['a', 'b']]) expect(withKeys(1).verify('/x', odd)).toBeNull();
  });

  it('stays valid during a key rotation', () => {
    expect(withKeys(2, 1).verify('/a', withKeys(1).sign(URL, '/a', ''))).not.toBeNull();
  });

  it('expires after half a minute', () => {
    jest.useFakeTimers({ now: new Date('2026-11-20T10:00:00.000Z') });
    const header = withKeys(1).sign(URL, '/a', '');
    jest.setSystemTime(Date.now() + 29_000);
    expect(withKeys(1).verify('/a', header)).not.toBeNull();
    jest.setSystemTime(Date.now() + 2_000);
    expect(withKeys(1).verify('/a', header)).toBeNull();
  });
});
