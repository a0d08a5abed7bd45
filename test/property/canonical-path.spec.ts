import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { canonicalPath } from '../../src/platform/http/canonical-path.js';
import { RESERVED_NAMESPACES, SERVER_SUBRESOURCES } from '../../src/platform/http/resource-names.js';
import {
  hostileSpellings,
  namespaceNames,
  qualifiedNameSpellings,
  serverNames,
} from '../support/documentation/spellings.js';
import { verifies } from '../support/verifies.js';
import { randomRuns } from '../support/random-runs.js';

/** Ends of a path after the server. */
const tails = fc
  .tuple(
    fc.constantFrom('', ...[...SERVER_SUBRESOURCES].map((word) => `/${word}`)),
    fc.constantFrom('', '?page=2', '?a=%2F/b/../c&d=@'),
  )
  .map((parts) => parts.join(''));

/** Anything that can stand in a request line, made of the pieces that matter here. */
const targets = fc.oneof(
  fc
    .array(
      fc.oneof(
        fc.constantFrom('/', '/', '/', '%2F', '%2f', '%252F', '@', '@', '%40', '.', '..', '%2e', '\\', '#', '?', '%00'),
        fc.constantFrom('acme', 'weather', 'servers', 'connect', 'namespaces', 'releases', 'icon', 'mcp', '.tools'),
        fc.constantFrom('%', '%zz', '%ff', '%E2%82%AC', 'é', ' ', 'http://host', 'x:', '%61cme', '*'),
      ),
      { maxLength: 12 },
    )
    .map((parts) => parts.join('')),
  fc
    .tuple(fc.constantFrom('', '/', '/servers/', '/connect/', '/acme'), fc.string({ unit: 'grapheme' }))
    .map((parts) => parts.join('')),
  hostileSpellings(['servers', 'acme', 'weather']),
  hostileSpellings(['connect', 'acme', 'weather', 'mcp']),
);

describe('the canonical path', () => {
  it('is unchanged for a canonical path', () => {
    fc.assert(
      fc.property(targets, (target) => {
        const once = canonicalPath(target);
        expect(canonicalPath(once)).toBe(once);
      }),
      { numRuns: randomRuns(5_000) },
    );
  });

  verifies(
    ['name:encoded-slash', 'path:unencoded-slash', 'path:leading-at', 'path:trailing-slash'],
    'is the same for every spelling of a qualified name, whatever follows it',
    () => {
      const spelled = fc
        .tuple(namespaceNames, fc.oneof(serverNames, fc.constant('')))
        .chain(([namespace, server]) =>
          fc.tuple(fc.constant({ namespace, server }), qualifiedNameSpellings(namespace, server), tails),
        );
      fc.assert(
        fc.property(spelled, ([{ namespace, server }, spelling, tail]) => {
          const name = server === '' ? namespace : `${namespace}%2F${server}`;
          expect(canonicalPath(`/servers/${spelling}${tail}`)).toBe(`/servers/${name}${tail}`);
        }),
        { numRuns: randomRuns(2_000) },
      );
    },
  );

  it('decodes a name once and never twice', () => {
    const names = fc
      .string({ unit: 'grapheme', minLength: 1 })
      .filter((name) => !name.startsWith('@') && !name.endsWith('/') && !name.includes('\0') && name.isWellFormed());
    fc.assert(
      fc.property(names, (name) => {
        const [, , segment = ''] = canonicalPath(`/servers/${encodeURIComponent(name)}`).split('/');
        expect(decodeURIComponent(segment)).toBe(name);
        const twice = `/servers/${encodeURIComponent(encodeURIComponent(`${name}%`))}`;
        expect(canonicalPath(twice)).toBe(twice);
      }),
    );
  });

  verifies('path:connect-root', 'is the same for the short form and the long form', () => {
    const rests = fc.oneof(
      fc.constantFrom(
        '',
        '/',
        '?limit=1',
        '/conn',
        '/conn/mcp',
        '/conn/.tools/a%2Fb',
        '/.tools',
        '/.mcp',
        '/conn/.tools/a/b/',
      ),
      fc
        .array(fc.constantFrom('/', '%2F', '..', '@', 'servers', '%', '?', '#'), { maxLength: 6 })
        .map((p) => `/${p.join('')}`),
    );
    fc.assert(
      fc.property(namespaceNames, rests, (namespace, rest) => {
        const path = canonicalPath(`/${namespace}${rest}`);
        expect(path).toBe(canonicalPath(`/connect/${namespace}${rest}`));
        expect(path.startsWith(`/connect/${namespace}`)).toBe(true);
      }),
    );
  });

  it('makes no short form of a reserved word', () => {
    fc.assert(
      fc.property(fc.constantFrom(...RESERVED_NAMESPACES), fc.constantFrom('', '/conn', '/conn/mcp'), (word, rest) => {
        if (word === 'servers') return;
        expect(canonicalPath(`/${word}${rest}`)).toBe(`/${word}${rest}`);
      }),
      { numRuns: randomRuns(1_000) },
    );
  });

  it('takes linear time for many slashes and dots', () => {
    for (const piece of ['/', '%2F', '@', '../', '%']) {
      const started = performance.now();
      for (const prefix of ['/servers/a', '/connect/a', '/']) canonicalPath(`${prefix}${piece.repeat(16_384)}x`);
      expect(performance.now() - started).toBeLessThan(10_000);
    }
  });
});
