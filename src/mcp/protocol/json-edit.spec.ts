import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import '../../../test/support/random-runs.js';
import { memberText, rewriteMembers, spliceAll, withFirst, withMember, withoutMembers } from './json-edit.js';

/** JSON text of an object with random white space, and its value. */
const written = fc
  .tuple(
    fc.dictionary(fc.string({ unit: fc.constantFrom('a', 'b', '"', '\\', ',', '{', 'ü') }), fc.jsonValue()),
    fc.constantFrom('', ' ', '\n\t'),
  )
  .map(([value, blank]) => {
    const members = Object.entries(value).map(
      ([name, member]) =>
        `${blank}${JSON.stringify(name)}${blank}:${blank}${JSON.stringify(member, null, blank)}${blank}`,
    );
    return {
      text: `{${members.join(',')}${blank}}`,
      value: JSON.parse(JSON.stringify(value)) as Record<string, unknown>,
    };
  });

describe('rewriteMembers', () => {
  it('removes and replaces members of any object and nothing else', () => {
    fc.assert(
      fc.property(written, fc.nat(), ({ text, value }, seed) => {
        const names = Object.keys(value);
        const dropped = names[seed % (names.length || 1)];
        const changed = names[(seed + 1) % (names.length || 1)];
        expect(rewriteMembers(text, (_, member) => member)).toBe(text);
        const expected = Object.fromEntries(
          Object.entries(value)
            .filter(([name]) => name !== dropped)
            .map(([name, member]) => [name, name === changed ? [1] : member]),
        );
        const rewritten = rewriteMembers(text, (name, member) => {
          if (name === dropped) return null;
          return name === changed ? '[1]' : member;
        });
        expect(JSON.parse(rewritten)).toEqual(expected);
        expect(JSON.parse(withoutMembers(text, () => true))).toEqual({});
        expect(JSON.parse(withFirst(text, '"first":1'))).toEqual({ ...value, first: value.first ?? 1 });
        expect(JSON.parse(withMember(text, 'a', '7'))).toEqual({ ...value, a: 7 });
        for (const name of names) expect(JSON.parse(memberText(text, name) ?? '')).toEqual(value[name]);
      }),
    );
  });

  it('keeps the bytes of all other members', () => {
    const text = '{ "a" : 1.0 ,"b":{"n":9007199254740993 } , "\\u0063" :"\\/" }';
    expect(withoutMembers(text, (name) => name === 'a')).toBe('{"b":{"n":9007199254740993 } , "\\u0063" :"\\/" }');
    expect(withoutMembers(text, (name) => name === 'c')).toBe('{ "a" : 1.0 ,"b":{"n":9007199254740993 }  }');
    expect(withoutMembers(text, (name) => name === 'd')).toBe(text);
    expect(withMember(text, 'a', '[]')).toBe(text.replace('1.0', '[]'));
    const at = (part: string) => [text.indexOf(part), text.indexOf(part) + part.length] as const;
    const edited = spliceAll(text, [
      [at('9007199254740993'), '2'],
      [at('1.0'), '1'],
    ]);
    expect(edited).toBe(text.replace('1.0', '1').replace('9007199254740993', '2'));
  });
});
