import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import '../../../test/support/random-runs.js';
import { bearerChallenge, CHALLENGE_CHARS_MAX, challengeHeaders, parseChallenges } from './challenges.js';

const one = (scheme: string, params: Record<string, string> = {}) => ({ scheme, params: Object.entries(params) });

describe('parseChallenges', () => {
  it.each([
    ['Bearer', [one('bearer')]],
    ['BEARER realm=x', [one('bearer', { realm: 'x' })]],
    ['bearer  Realm = "a b" , SCOPE="r w"', [one('bearer', { realm: 'a b', scope: 'r w' })]],
    ['Bearer scope="a \\"quoted\\" \\\\ word"', [one('bearer', { scope: 'a "quoted" \\ word' })]],
    ['Bearer realm="a, Basic realm=b"', [one('bearer', { realm: 'a, Basic realm=b' })]],
    ['Bearer realm=""', [one('bearer', { realm: '' })]],
    ['Basic realm="b", Bearer scope="x"', [one('basic', { realm: 'b' }), one('bearer', { scope: 'x' })]],
    ['Basic, Bearer scope=x', [one('basic'), one('bearer', { scope: 'x' })]],
    ['Negotiate, Basic realm="b"', [one('negotiate'), one('basic', { realm: 'b' })]],
    ['Negotiate YWJj==, Bearer scope="x"', [one('negotiate'), one('bearer', { scope: 'x' })]],
    [
      'Newauth realm="apps", type=1, title="Login to \\"apps\\"", Basic realm="simple"',
      [one('newauth', { realm: 'apps', type: '1', title: 'Login to "apps"' }), one('basic', { realm: 'simple' })],
    ],
    [', ,Bearer realm=x,, scope=y, ,', [one('bearer', { realm: 'x', scope: 'y' })]],
    [
      'Bearer realm=x, realm=y',
      [
        {
          scheme: 'bearer',
          params: [
            ['realm', 'x'],
            ['realm', 'y'],
          ],
        },
      ],
    ],
    [
      'Bearer realm="a" scope=\'r w\';error=e ; x = y',
      [one('bearer', { realm: 'a', scope: 'r w', error: 'e', x: 'y' })],
    ],
    ["Bearer realm=it's, scope=''", [one('bearer', { realm: "it's", scope: '' })]],
    ['Basic realm=b Bearer scope=x', [one('basic', { realm: 'b' }), one('bearer', { scope: 'x' })]],
    [
      'Bearer resource_metadata=https://h/a?b=c, scope=x',
      [one('bearer', { resource_metadata: 'https://h/a?b=c', scope: 'x' })],
    ],
    ['Bearer realm="never closed', [one('bearer')]],
    ['Bearer realm="a" junk, scope=x', [one('bearer', { realm: 'a' }), one('junk', { scope: 'x' })]],
    ['resource_metadata="https://h/x"', [one('bearer', { resource_metadata: 'https://h/x' })]],
    ['error="invalid_token", scope=x', [one('bearer', { error: 'invalid_token', scope: 'x' })]],
    [', resource_metadata=/x; error=e', [one('bearer', { resource_metadata: '/x', error: 'e' })]],
    ['realm="a", Basic realm="b"', [one('bearer', { realm: 'a' }), one('basic', { realm: 'b' })]],
    ['Bearer: resource_metadata="/x"', [one('bearer', { resource_metadata: '/x' })]],
    ['Bearer:;scope=x', [one('bearer', { scope: 'x' })]],
    ['"', []],
    ['', []],
  ])('reads %j', (header, expected) => {
    expect(parseChallenges([header])).toEqual(expected);
  });

  it('reads several headers, and treats names of Object.prototype as names', () => {
    expect(parseChallenges(['Basic realm=a', 'Bearer constructor=b'])).toEqual([
      one('basic', { realm: 'a' }),
      one('bearer', { constructor: 'b' }),
    ]);
  });

  it('reads any value back', () => {
    const value = fc.string({ unit: 'grapheme-ascii', maxLength: 40 });
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 4 }), (values) => {
        const quoted = values.map((text, index) => `p${index}="${text.replace(/["\\]/g, '\\$&')}"`).join(', ');
        const [, second] = parseChallenges([`Basic realm="x", Bearer ${quoted}`]);
        expect(second?.params).toEqual(values.map((text, index) => [`p${index}`, text]));
      }),
    );
  });

  it('takes linear time for any input', () => {
    fc.assert(fc.property(fc.string({ maxLength: 300 }), (text) => Array.isArray(parseChallenges([text]))));
    const startedAt = Date.now();
    for (const part of ['a=', 'a ', '"', "a='", "'", ';', '\\', ',', 'a="', '= '])
      parseChallenges([part.repeat(100_000)]);
    expect(Date.now() - startedAt).toBeLessThan(10_000);
  });
});

describe('bearerChallenge', () => {
  it('finds the Bearer challenge behind others', () => {
    const headers = [
      'Basic realm="x"',
      'DPoP algs="ES256", Bearer error="insufficient_scope", scope="a b", resource_metadata="https://h/.well-known/x"',
    ];
    expect(bearerChallenge(headers)).toEqual({
      resourceMetadata: ['https://h/.well-known/x'],
      scope: 'a b',
      error: 'insufficient_scope',
    });
  });

  it('collects the metadata of all Bearer challenges, repeats included, and the first scope and error', () => {
    const headers = [
      'Bearer realm=x, Bearer resource_metadata=/a; resource_metadata="b" scope=\'r\'',
      'BEARER Resource_Metadata=c,scope=w',
    ];
    expect(bearerChallenge(headers)).toEqual({ resourceMetadata: ['/a', 'b', 'c'], scope: 'r', error: null });
  });

  it('is null without one', () => {
    expect(bearerChallenge([])).toBeNull();
    expect(bearerChallenge(['Basic realm="Bearer scope=x"'])).toBeNull();
  });
});

describe('challengeHeaders', () => {
  it('makes a bounded list of the headers of HTTP libraries', () => {
    expect(challengeHeaders(undefined)).toEqual([]);
    expect(challengeHeaders('Basic')).toEqual(['Basic']);
    expect(challengeHeaders(['Basic', 'Bearer'])).toEqual(['Basic', 'Bearer']);
    const long = challengeHeaders(['x'.repeat(CHALLENGE_CHARS_MAX - 1), 'yyy', 'z']);
    expect(long.map((part) => part.length)).toEqual([CHALLENGE_CHARS_MAX - 1, 1]);
  });
});
