import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import fc from 'fast-check';
import { AsGiven, IsHeaders, IsMcpUrl, IsMetadata, IsStorableText } from './connection.validators.js';
import { Omittable } from '../../../platform/http/input-values.js';
import { randomRuns } from '../../../../test/support/random-runs.js';

class Body {
  @Omittable()
  @IsMcpUrl()
  mcpUrl?: unknown;

  @Omittable()
  @AsGiven()
  @IsMetadata()
  metadata?: unknown;

  @Omittable()
  @AsGiven()
  @IsHeaders()
  headers?: unknown;

  @Omittable()
  @IsStorableText()
  text?: unknown;
}

/** The error of a body with this one property; undefined without one. */
function fault(property: keyof Body, value: unknown): string | undefined {
  const [error] = validateSync(plainToInstance(Body, { [property]: value }));
  return Object.values(error?.constraints ?? {})[0];
}

type Case = [value: unknown, message: string];

describe('a URL', () => {
  it.each([
    ...['http://127.0.0.1:3001/mcp', 'https://example.com', 'https://example.com/', 'HTTPS://Example.COM/Mcp'],
    ...[
      'http://[::1]:8080/mcp',
      'https://bücher.example/ü?q=ä',
      'https://example.com/a%20b?c=d&e=f',
      'http://localhost',
    ],
    `https://example.com/${'x'.repeat(2048 - 20)}`,
  ])('%p is accepted', (url) => expect(fault('mcpUrl', url)).toBeUndefined());

  it.each([
    [null, 'must be a URL such as'],
    [5, 'must be a URL such as'],
    [['https://example.com'], 'must be a URL such as'],
    ['', 'must be a URL such as'],
    ['example.com/mcp', 'must be a URL such as'],
    ['//example.com', 'must be a URL such as'],
    ['https://', 'must be a URL such as'],
    ['ftp://example.com', 'must start with https:// or http://'],
    ['javascript:alert(1)', 'must start with https:// or http://'],
    ['https://user@example.com', 'must not hold a user name or password'],
    ['https://:secret@example.com', 'must not hold a user name or password'],
    ['https://example.com/#part', 'must not have a fragment'],
    ['https://example.com/a b', 'must not hold blanks'],
    ['https://example.com\\@evil.example', 'must not hold blanks, control characters or backslashes'],
    ['https://exa\nmple.com', 'must not hold blanks'],
    [' https://example.com', 'must not hold blanks'],
    ['https://example.com/\ud800', 'must not hold broken unicode'],
    [`https://example.com/${'x'.repeat(2048 - 19)}`, 'must be at most 2048 characters'],
  ])('%p is refused, since it %s', (url, message) => expect(fault('mcpUrl', url)).toContain(`mcpUrl ${message}`));

  it('is not repeated in the error, since it may contain a password', () => {
    expect(fault('mcpUrl', 'https://user:hush@example.com')).not.toMatch(/hush|user:/);
  });
});

describe('metadata', () => {
  it.each([
    ...[
      {},
      { a: null },
      { '': '' },
      { a: [1, [2, { b: true }]] },
      { toString: 1, then: 2 },
      { a: 'x'.repeat(16 * 1024 - 8) },
    ],
    JSON.parse('{"a":'.repeat(100) + '1' + '}'.repeat(100)) as object,
  ])('%j is accepted and stored unchanged', (metadata) => {
    expect(fault('metadata', metadata)).toBeUndefined();
    expect(plainToInstance(Body, { metadata }).metadata).toBe(metadata);
  });

  it.each<Case>([
    ...[null, 'x', 5, true, [], [{}]].map((value): Case => [value, 'must be an object']),
    [{ a: 'x'.repeat(16 * 1024 - 7) }, 'must be at most 16384 bytes of JSON'],
    [{ a: 'ü'.repeat(8 * 1024) }, 'must be at most 16384 bytes of JSON'],
    ...[{ a: '\0' }, { 'a\0': 1 }, { a: [{ b: '\ud800' }] }, { '\udc00': 1 }].map((value): Case => [
      value,
      'must not hold NUL',
    ]),
    ...[{ a: Infinity }, { a: [-Infinity] }].map((value): Case => [value, 'must not hold numbers beyond']),
    [JSON.parse('{"a":'.repeat(102) + '1' + '}'.repeat(102)), 'must not be nested deeper than 100 levels'],
  ])('%j is refused, since it %s', (metadata, message) => {
    expect(fault('metadata', metadata)).toContain(`metadata ${message}`);
  });

  it('that is accepted survives JSON, in which it is stored', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()), (given) => {
        const metadata = JSON.parse(JSON.stringify(given)) as object;
        if (fault('metadata', metadata) !== undefined) return;
        const text = JSON.stringify(metadata);
        expect(text).not.toMatch(/\\u0000|\\u[dD][89a-fA-F]/);
        expect(JSON.parse(text)).toEqual(metadata);
      }),
    );
  });
});

describe('headers', () => {
  it.each([
    ...[
      {},
      { 'X-Api-Key': 'k' },
      { Authorization: 'Bearer a.b-c_d=' },
      { Cookie: 'a=b; c=d' },
      { "!#$%&'*+.^_`|~9": 'x' },
    ],
    ...[
      { 'X-A': 'inner blanks\tand tabs' },
      { 'User-Agent': 'me' },
      { 'Mcp-Server-Hint': 'x' },
      { [`x${'a'.repeat(255)}`]: 'x' },
    ],
    Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`X-${i}`, 'x'])),
  ])('%j are accepted', (headers) => expect(fault('headers', headers)).toBeUndefined());

  it.each<Case>([
    ...[null, 'x', 5, ['X-A: b']].map((value): Case => [value, 'must be an object of texts']),
    ...[
      { '': 'x' },
      { 'a b': 'x' },
      { 'a:': 'x' },
      { ä: 'x' },
      { 'a\r\nb': 'x' },
      { [`x${'a'.repeat(256)}`]: 'x' },
    ].map((value): Case => [value, 'must hold valid header names']),
    ...[
      ...['Host', 'connection', 'Keep-Alive', 'Content-Type', 'CONTENT-LENGTH', 'Transfer-Encoding', 'TE', 'Trailer'],
      ...[
        'Upgrade',
        'Expect',
        'Accept',
        'Proxy-Authorization',
        'Mcp-Session-Id',
        'Mcp-Protocol-Version',
        'Last-Event-Id',
      ],
    ].map((name): Case => [{ [name]: 'x' }, `must not hold "${name}": Slipway sets it`]),
    ...['', ' x', 'x ', 'a\nb', 'a\rb', 'a\0b', 'ü', '\x7f', 5, null, true, ['x'], {}].map((text): Case => [
      { 'X-A': text },
      'must hold header values of visible ASCII characters; that of "X-A" is none',
    ]),
    [{ 'X-A': 'x', 'x-a': 'y' }, 'must hold each header once'],
    [Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`X-${i}`, 'x'])), 'must hold at most 64 headers'],
    [{ 'X-A': 'x'.repeat(8 * 1024) }, 'must be at most 8192 bytes together'],
  ])('%j are refused: they %s', (headers, message) => {
    expect(fault('headers', headers)).toContain(`headers ${message}`);
  });

  it('that are accepted can be sent by HTTP unchanged, and an error never repeats a value', () => {
    const names = fc.oneof(fc.string({ maxLength: 8 }), fc.constantFrom('X-A', 'x-a', 'Host', 'Authorization'));
    const values = fc.oneof(fc.string({ unit: 'binary', maxLength: 8 }), fc.string({ maxLength: 8 }));
    fc.assert(
      fc.property(fc.dictionary(names, values, { minKeys: 1, maxKeys: 4 }), (headers) => {
        const found = fault('headers', headers);
        if (found === undefined) {
          const sent = new Headers(headers);
          for (const [name, value] of Object.entries(headers)) expect(sent.get(name)).toBe(value);
        }
        const secret = 'hush-hush-\u0001';
        expect(fault('headers', { ...headers, 'X-Secret': secret })).not.toContain('hush');
      }),
      { numRuns: randomRuns(1_000) },
    );
  });
});

describe('an optional property', () => {
  it.each(['mcpUrl', 'metadata', 'headers', 'text'] as const)(
    '%s: undefined is skipped, null is validated',
    (property) => {
      expect(fault(property, undefined)).toBeUndefined();
      expect(validateSync(plainToInstance(Body, {}))).toEqual([]);
      if (property !== 'text') expect(fault(property, null)).toContain(property);
    },
  );
});

describe('text to compare with stored text', () => {
  it.each(['', 'x', 'ünï 🚀', '\n', '%_'])('%p is accepted', (text) => expect(fault('text', text)).toBeUndefined());
  it.each(['\0', 'a\0b', '\ud800', 'a\udc00'])('%p is refused', (text) => {
    expect(fault('text', text)).toBe('text must not hold NUL characters or broken unicode');
  });
});
