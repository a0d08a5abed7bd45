import { describe, expect, it } from '@jest/globals';
import { ownNext } from './own-next.js';

describe('ownNext', () => {
  it('accepts Slipway pages that need a person', () => {
    const own = [
      '/me',
      '/me/access',
      '/me?a=b',
      '/ui/',
      '/ui/c/acme/x?q=1',
      '/consent/abc',
      '/consent/abc?x=%2F',
      '/invite?token=a',
      '/setup/acme%2Fweather?token=1',
    ];
    expect(own.map(ownNext)).toEqual(own);
  });

  it('ignores every other value', () => {
    const foreign = [
      ...['//evil.example', 'https://evil.example/me', '/\\evil.example', '\\\\evil.example', '/%2Fevil.example'],
      ...[
        '/%5Cevil.example',
        '%2F%2Fevil.example',
        '/me/../../evil',
        '/me/..//evil',
        '/me/%2e%2e//evil',
        '/me\\..\\evil',
      ],
      ...[
        '/consent/\t/evil',
        '/consent/..//evil',
        ' /me',
        'me',
        '/menu',
        '/uis',
        '/consent',
        '/setup',
        '/',
        '',
        '/me#x',
        '/login',
        '/invite',
        '/invite/../evil',
      ],
      ...['javascript:alert(1)', '/me/\nset-cookie: a=b', undefined, null, ['/me'], { a: 1 }],
    ];
    expect(foreign.map(ownNext)).toEqual(foreign.map(() => null));
  });
});
