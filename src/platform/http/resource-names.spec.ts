import { describe, expect, it } from '@jest/globals';
import { isNamespaceName, RESERVED_NAMESPACES, SERVER_NAME, SERVER_SUBRESOURCES } from './resource-names.js';

describe('isNamespaceName', () => {
  it.each(['abc', 'a-b', 'a--b', '123', '0a9', 'deer-y2fs', 'a'.repeat(39)])('takes %s', (name) => {
    expect(isNamespaceName(name)).toBe(true);
  });

  it.each([
    ...[
      '',
      'a',
      'ab',
      'a'.repeat(40),
      '-ab',
      'ab-',
      'Abc',
      'a_b',
      'a.b',
      'a b',
      'a/b',
      '@abc',
      'äbc',
      'abc\n',
      'abc\0',
      'ＡＢＣ',
    ],
    ...[
      'servers',
      'connect',
      'namespaces',
      'health',
      'mcp',
      'well-known',
      'login',
      'logout',
      'invite',
      'consent',
      'me',
    ],
  ])('refuses %j', (name) => {
    expect(isNamespaceName(name)).toBe(false);
  });

  it('refuses every reserved word', () => {
    expect([...RESERVED_NAMESPACES].filter(isNamespaceName)).toEqual([]);
  });
});

describe('the form of a server name', () => {
  it.each(['abc', 'Weather_2', '9-9', 'a__', 'a--', 'a'.repeat(39)])('takes %s', (name) => {
    expect(SERVER_NAME.test(name)).toBe(true);
  });

  it.each(['', 'ab', 'a'.repeat(40), '_ab', '-ab', '.ab', 'a.b', 'a/b', 'a b', 'äbc', 'abc\n', 'abc\0'])(
    'refuses %j',
    (name) => {
      expect(SERVER_NAME.test(name)).toBe(false);
    },
  );

  it('matches the reserved words too, so that they must be refused by name', () => {
    expect([...SERVER_SUBRESOURCES].filter((word) => !SERVER_NAME.test(word))).toEqual([]);
  });
});
