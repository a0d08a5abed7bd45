import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { elements, members, slice, splice, uniqueMembers } from '../../src/mcp/protocol/json-text.js';
import { replyTo } from '../../src/mcp/protocol/messages.js';
import type { Json } from '../support/mcp/calls.js';
import { verifies } from '../support/verifies.js';
import { randomRuns } from '../support/random-runs.js';

const blank = fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\r'), maxLength: 3 });

/** One UTF-16 code unit in one of the ways JSON allows to write it. Lone surrogates are allowed too. */
const letter = fc
  .tuple(
    fc.oneof(
      fc.constantFrom(...'"\\/{}[],:\b\f\n\r\t\0 '),
      fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
    ),
    fc.nat({ max: 3 }),
  )
  .map(([char, style]) => {
    const hex = char.charCodeAt(0).toString(16).padStart(4, '0');
    const short = {
      '"': '\\"',
      '\\': '\\\\',
      '/': '\\/',
      '\b': '\\b',
      '\f': '\\f',
      '\n': '\\n',
      '\r': '\\r',
      '\t': '\\t',
    }[char];
    const mustEscape = char < ' ' || char === '"' || char === '\\';
    if (style === 0 && short) return short;
    if (style === 1 || (mustEscape && !short)) return `\\u${hex}`;
    if (style === 2) return `\\u${hex.toUpperCase()}`;
    return mustEscape ? `\\u${hex}` : char;
  });

const text = fc.array(letter, { maxLength: 6 }).map((letters) => `"${letters.join('')}"`);

const number = fc.oneof(
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.constantFrom('-0', '0.0', '1.10', '1E400', '-1e-7', '9007199254740993', '123456789012345678901234567890'),
);

/** JSON text of any value. */
const {
  value: anyValue,
  object: anyObject,
  array: anyArray,
} = fc.letrec<Record<'value' | 'object' | 'array', Json>>((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, fc.constantFrom('null', 'true', 'false'), number, text, tie('array'), tie('object')),
  array: fc
    .array(fc.tuple(blank, tie('value'), blank), { maxLength: 5 })
    .chain((parts) =>
      blank.map((inner) => ({
        parts: parts.map(([, one]) => asText(one)),
        json: listed('[', parts.map(written), inner, ']'),
      })),
    ),
  object: fc
    .uniqueArray(fc.tuple(blank, text, blank, blank, tie('value'), blank), {
      maxLength: 5,
      selector: ([, name]) => JSON.parse(name) as string,
    })
    .chain((parts) =>
      blank.map((inner) => ({
        parts: parts.map(([, name, , , one]) => [JSON.parse(name) as string, asText(one)]),
        json: listed(
          '{',
          parts.map(([a, name, b, c, one, d]) => `${a}${name}${b}:${c}${asText(one)}${d}`),
          inner,
          '}',
        ),
      })),
    ),
}));

interface Container<T> {
  parts: T[];
  json: string;
}

function asText(one: string | Container<unknown>): string {
  return typeof one === 'string' ? one : one.json;
}

function written([before, one, after]: [string, string | Container<unknown>, string]): string {
  return `${before}${asText(one)}${after}`;
}

function listed(opening: string, parts: string[], inner: string, closing: string): string {
  return `${opening}${parts.length === 0 ? inner : parts.join(',')}${closing}`;
}

const object = anyObject as fc.Arbitrary<Container<[name: string, json: string]>>;
const array = anyArray as fc.Arbitrary<Container<string>>;
const value = (anyValue as fc.Arbitrary<string | Container<unknown>>).map(asText);
const many = { numRuns: randomRuns(2_000) };

describe('finding values in JSON text', () => {
  verifies('call:result-unchanged', 'gives the exact text of every member, however the object is formatted', () => {
    fc.assert(
      fc.property(object, blank, blank, ({ json, parts }, before, after) => {
        const whole = before + json + after;
        const parsed = JSON.parse(whole) as Record<string, unknown>;
        const spans = members(whole);
        expect([...spans].map(([name, span]) => [name, slice(whole, span)])).toEqual(parts);
        expect(new Set(spans.keys())).toEqual(new Set(Object.keys(parsed)));
        for (const [name, span] of spans) expect(JSON.parse(slice(whole, span))).toEqual(parsed[name]);
      }),
      many,
    );
  });

  verifies('call:result-unchanged', 'gives the exact text of every element, however the array is formatted', () => {
    fc.assert(
      fc.property(array, blank, ({ json, parts }, before) => {
        const whole = before + json;
        const parsed = JSON.parse(whole) as unknown[];
        const texts = elements(whole).map((span) => slice(whole, span));
        expect(texts).toEqual(parts);
        expect(texts.map((text) => JSON.parse(text) as unknown)).toEqual(parsed);
      }),
      many,
    );
  });

  verifies('call:result-unchanged', 'reads a value inside a longer text', () => {
    fc.assert(
      fc.property(object, array, text, (inner, list, noise) => {
        const whole = `{"a":${noise},"object": ${inner.json} ,"list":${list.json}}`;
        const outer = members(whole);
        const [inObject, inList] = [outer.get('object'), outer.get('list')];
        expect([...members(whole, inObject?.[0])].map(([name, span]) => [name, slice(whole, span)])).toEqual(
          inner.parts,
        );
        expect(elements(whole, inList?.[0]).map((span) => slice(whole, span))).toEqual(list.parts);
      }),
      many,
    );
  });

  verifies('mcp:passes-through', 'a replaced member changes nothing else', () => {
    fc.assert(
      fc.property(object, fc.nat(), value, ({ json, parts }, pick, replacement) => {
        fc.pre(parts.length > 0);
        const at = pick % parts.length;
        const span = members(json).get(parts[at][0]);
        const spliced = splice(json, span as NonNullable<typeof span>, replacement);
        const expected = parts.map(([name, one], i) => [name, i === at ? replacement : one]);
        expect([...members(spliced)].map(([name, span]) => [name, slice(spliced, span)])).toEqual(expected);
        const parsed = JSON.parse(spliced) as Record<string, unknown>;
        expect(parsed[parts[at][0]]).toEqual(JSON.parse(replacement));
        expect(spliced.length - json.length).toBe(replacement.length - parts[at][1].length);
      }),
      many,
    );
  });

  verifies('mcp:bad-request', 'a repeated name is found however it is escaped: refused, or the last one counts', () => {
    const escaped = (name: string) =>
      name.replaceAll(/[^]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
    fc.assert(
      fc.property(object, fc.nat(), value, ({ json, parts }, pick, again) => {
        fc.pre(parts.length > 0);
        const [name] = parts[pick % parts.length];
        const twice = `${json.slice(0, -1)},"${escaped(name)}":${again}}`;
        expect(uniqueMembers(twice)).toBe(name);
        const span = members(twice).get(name);
        expect(slice(twice, span as NonNullable<typeof span>)).toBe(again);
        expect(uniqueMembers(json)).toEqual(members(json));
      }),
      { numRuns: randomRuns(500) },
    );
  });

  verifies(
    'mcp:passes-through',
    'a reply is recognized by its id and result, whatever else it contains and in any order',
    () => {
      const extras = fc.uniqueArray(fc.tuple(fc.constantFrom('x', 'jsonrpc', 'ids', '_meta'), value), {
        selector: ([name]) => name,
      });
      fc.assert(
        fc.property(
          extras,
          value,
          fc.integer({ min: 0 }),
          fc.infiniteStream(fc.nat({ max: 9 })),
          (more, result, id, order) => {
            const all: [string, string][] = [...more, ['id', String(id)], ['result', result]];
            const shuffled = all.map((one) => ({ one, by: order.next().value })).sort((a, b) => a.by - b.by);
            const json = `{${shuffled.map(({ one: [name, json] }) => ` "${name}" :${json}`).join(',')}}`;
            const reply = replyTo(id, json, JSON.parse(json) as object, 'legacy');
            expect(reply?.result && slice(json, reply.result)).toBe(result);
            expect(reply?.id && slice(json, reply.id)).toBe(String(id));
            expect(replyTo(id + 1, json, JSON.parse(json) as object, 'legacy')).toBeNull();
          },
        ),
        { numRuns: randomRuns(1_000) },
      );
    },
  );

  it('takes linear time: 8 MB of backslashes, quotes or brackets', () => {
    const size = 8 * 1024 * 1024;
    for (const json of [
      `{"a":"${'\\\\'.repeat(size / 2)}","b":1}`,
      `{"a":"${'\\"'.repeat(size / 2)}","b":1}`,
      `{"a":${'['.repeat(1_000)}${']'.repeat(1_000)},"pad":"${'[{'.repeat(size / 2)}","b":1}`,
    ]) {
      const from = performance.now();
      expect(slice(json, members(json).get('b') as [number, number])).toBe('1');
      expect(performance.now() - from).toBeLessThan(10_000);
    }
  });
});
