import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MemberNames, qualifyUri, readUri, separators } from './member-names.js';
import type { AggregateMember } from './member-requests.js';

function names(separator: '.' | '__', ...ids: string[]): MemberNames {
  const members = ids.map((connectionId): AggregateMember => ({
    connectionId,
    seq: '1',
    state: 'connected',
    fault: null,
  }));
  return new MemberNames(members, separator);
}

describe('MemberNames', () => {
  it('reads back what it writes', () => {
    const id = fc.stringMatching(/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,6}$/);
    const name = fc.stringMatching(/^[a-z._/]{1,8}$/);
    fc.assert(
      fc.property(
        fc.constantFrom(...separators),
        fc.uniqueArray(id, { minLength: 1 }),
        fc.nat(),
        name,
        (sep, ids, at, own) => {
          const connectionId = ids[at % ids.length];
          const read = names(sep, ...ids);
          if (!read.isReachable(connectionId, own, [own])) return;
          const found = read.read(read.qualify(connectionId, own));
          expect(found?.connectionId).toBe(connectionId);
          expect(read.pick([own], found?.rest ?? '')).toBe(own);
        },
      ),
    );
  });

  it('gives a name to the longest id that exists', () => {
    const read = names('.', 'a', 'a.b');
    expect(read.read('a.b.c')).toEqual({ connectionId: 'a.b', rest: 'c' });
    expect(read.read('a.c.b')).toEqual({ connectionId: 'a', rest: 'c.b' });
    expect(read.isReachable('a', 'b.c', ['b.c'])).toBe(false);
    expect(read.isReachable('a.b', 'c', ['c'])).toBe(true);
    expect([read.read('x.y'), read.read('a'), read.read('a.')]).toEqual([null, null, null]);
  });

  it('writes no dot or slash with two underscores, and tells ids that are written alike apart', () => {
    const read = names('__', 'a.b', 'a__b', 'c.d');
    expect(read.qualify('c.d', 'repo/issues.create')).toBe('c__d__repo__issues__create');
    expect(read.read('c__d__repo__issues__create')).toEqual({ connectionId: 'c.d', rest: 'repo__issues__create' });
    expect(read.read('a__b__x')).toEqual({ connectionId: 'a__b', rest: 'x' });
    expect(read.isReachable('a.b', 'x', ['x'])).toBe(false);
    expect(read.isReachable('c.d', 'x.y', ['x.y', 'x__y'])).toBe(false);
    expect(read.isReachable('c.d', 'x__y', ['x.y', 'x__y'])).toBe(true);
  });

  it('puts the connection in front of URIs and templates', () => {
    expect(qualifyUri('a.b', 'docs://pages/{slug}')).toBe('connection://a.b/docs://pages/{slug}');
    expect(readUri('connection://a.b/docs://pages/x?y#z')).toEqual({ connectionId: 'a.b', rest: 'docs://pages/x?y#z' });
    expect([readUri('docs://x'), readUri('connection://a')]).toEqual([null, null]);
  });

  it.each(separators)('takes no longer for long names and long lists (%s)', (separator) => {
    const read = names(separator, 'a.b', 'c');
    const many = Array.from({ length: 10_000 }, (_, i) => `x.${separator.repeat(2_000)}.${i}`);
    expect(many.filter((name) => read.isReachable('c', name, many))).toHaveLength(10_000);
    expect(read.read(separator.repeat(16_000))).toBeNull();
    expect(read.read(`c${separator}x`)).toEqual({ connectionId: 'c', rest: 'x' });
  });
});
