import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import '../../../test/support/random-runs.js';
import { MemberNames, qualifyUri, readUri, separators, type Separator } from './member-names.js';
import type { AggregateMember } from './member-requests.js';

function reader(separator: Separator, ...ids: string[]): MemberNames {
  const members = ids.map((connectionId): AggregateMember => ({
    connectionId,
    seq: '1',
    state: 'connected',
    fault: null,
  }));
  return new MemberNames(members, separator);
}

/** The item that a name means among the lists of all connections. */
function meaning(read: MemberNames, name: string, itemsOf: (connectionId: string) => { name: string }[]) {
  for (const reading of read.read(name)) {
    const own = read.pick(name, reading, itemsOf(reading.connectionId));
    if (own !== undefined) return { connectionId: reading.connectionId, name: own };
  }
  return null;
}

describe('MemberNames', () => {
  it('every name except a shadowed one can be resolved, in either form, and model APIs accept it', () => {
    const id = fc.stringMatching(/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,6}$/);
    const name = fc.stringMatching(/^[a-z._/ ]{1,8}$/);
    const all = fc.uniqueArray(id, { minLength: 1, maxLength: 8 });
    const own = fc.uniqueArray(name, { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(fc.constantFrom(...separators), all, own, (separator, ids, names) => {
        const read = reader(separator, ...ids);
        const lists = new Map(ids.map((connectionId) => [connectionId, names.map((one) => ({ name: one }))]));
        const itemsOf = (connectionId: string) => lists.get(connectionId) ?? [];
        const listed = ids.flatMap((connectionId) => {
          const qualified = [...read.namesOf(connectionId, itemsOf(connectionId))];
          for (const [one, written] of qualified) {
            expect(meaning(read, written, itemsOf)).toEqual({ connectionId, name: one });
            if (separator === '__') expect(written).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
          }
          if (separator === '__') expect(qualified).toHaveLength(names.length);
          return qualified.map(([, written]) => written);
        });
        expect(new Set(listed).size).toBe(listed.length);
      }),
    );
  });

  it('resolves a name with dots to the longest id that exists', () => {
    const read = reader('.', 'a', 'a.b');
    expect(read.read('a.b.c')).toEqual([{ connectionId: 'a.b', rest: 'c', isExact: true }]);
    expect(read.read('a.c.b')).toEqual([{ connectionId: 'a', rest: 'c.b', isExact: true }]);
    expect(read.namesOf('a', [{ name: 'b.c' }]).size).toBe(0);
    expect([...read.namesOf('a.b', [{ name: 'c' }]).values()]).toEqual(['a.b.c']);
    expect([read.read('x.y'), read.read('a'), read.read('a.')]).toEqual([[], [], []]);
  });

  it('ends only names in a hash that are too long or collide', () => {
    const read = reader('__', 'a', 'a.b', 'a_b', 'a__b', 'c'.repeat(60));
    const listed = (connectionId: string, ...names: string[]) => [
      ...read
        .namesOf(
          connectionId,
          names.map((name) => ({ name })),
        )
        .values(),
    ];
    expect(listed('a', 'repo/issues.create', 'x.y', 'x_y')).toEqual([
      'a__repo_issues_create',
      expect.stringMatching(/^a__x_y_[\w-]{6}$/),
      'a__x_y',
    ]);
    expect(listed('a', 'b__c')).toEqual([expect.stringMatching(/^a__b__c_[\w-]{6}$/)]);
    expect(listed('a__b', 'c')).toEqual(['a__b__c']);
    expect(listed('a_b', 'c')).toEqual(['a_b__c']);
    expect(listed('a.b', 'c')).toEqual([expect.stringMatching(/^a_b_[\w-]{6}__c$/)]);
    const [long = ''] = listed('a', 't'.repeat(300));
    expect(long).toMatch(/^a__t+_[\w-]{6}$/);
    expect(long).toHaveLength(64);
    expect(listed('c'.repeat(60), 't')).toEqual([expect.stringMatching(/^c{33}_[\w-]{6}__t$/)]);
  });

  it('prefixes URIs and templates with the connection', () => {
    expect(qualifyUri('a.b', 'docs://pages/{slug}')).toBe('connection://a.b/docs://pages/{slug}');
    expect(readUri('connection://a.b/docs://pages/x?y#z')).toEqual({ connectionId: 'a.b', rest: 'docs://pages/x?y#z' });
    expect([readUri('docs://x'), readUri('connection://a')]).toEqual([null, null]);
  });

  it.each(separators)('takes linear time for long names and long lists (%s)', (separator) => {
    const read = reader(separator, 'a.b', 'c');
    const many = Array.from({ length: 10_000 }, (_, i) => ({ name: `x.${separator.repeat(2_000)}.${i}` }));
    expect(read.namesOf('c', many).size).toBe(10_000);
    expect(read.read(separator.repeat(16_000))).toEqual([]);
    expect(read.read(`c${separator}x`)).toEqual([{ connectionId: 'c', rest: 'x', isExact: true }]);
  });
});
