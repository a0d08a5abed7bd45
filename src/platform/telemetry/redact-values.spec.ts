import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { valueRedactor } from './redact-values.js';

const SECRETS = [
  'sk-live-0a1b2c3d',
  'p"a\\ss/w+o rd=é',
  "it's\n4e5f6a7b\r\n8c9d0e1f",
  'Ünï-\ud800-cödé',
  'abcdefgh',
  'abcdefghij',
];

/** Ways in which programs print a value. */
const PRINTED: Record<string, (secret: string) => string> = {
  plain: (secret) => secret,
  json: (secret) => JSON.stringify({ a: [secret] }),
  'json in json': (secret) => JSON.stringify({ body: JSON.stringify({ a: secret }) }),
  inspect: (secret) => inspect({ a: { b: [secret] } }),
  component: (secret) => encodeURIComponent(secret.toWellFormed()),
  'component, twice': (secret) => encodeURIComponent(encodeURIComponent(secret.toWellFormed())),
  form: (secret) => new URLSearchParams({ a: secret.toWellFormed() }).toString(),
  uri: (secret) => encodeURI(secret.toWellFormed()),
  hex: (secret) => Buffer.from(secret).toString('hex'),
  ...Object.fromEntries(
    ['', 'u', 'us', 'user:'].flatMap((user) =>
      (['base64', 'base64url'] as const).map((name) => [
        `${name} after "${user}"`,
        (secret: string) => Buffer.from(`${user}${secret}:x`).toString(name),
      ]),
    ),
  ),
};

describe('a redactor of values', () => {
  it.each(Object.entries(PRINTED))('leaves at most 5 characters of a value printed as %s', (_way, print) => {
    const redact = valueRedactor(SECRETS);
    for (const secret of SECRETS) {
      const rest = redact(`before ${print(secret)} after`);
      expect(rest).toMatch(/^before .*\[redacted\][^]* after$/);
      const parts = Array.from({ length: secret.length - 5 }, (_, at) => secret.slice(at, at + 6));
      expect(parts.filter((part) => rest.includes(part))).toEqual([]);
    }
  });

  it('leaves other texts and short values as they are', () => {
    const redact = valueRedactor(['true', 'info', '']);
    expect(redact('it is true, at level info')).toBe('it is true, at level info');
    expect(valueRedactor([])('a')).toBe('a');
  });

  it('blanks the rest of a text where too many values begin alike', () => {
    const redact = valueRedactor(Array.from({ length: 100 }, (_, at) => `prefix-${at}-secret`));
    expect(redact('a prefix-7-secret b')).toBe('a [redacted]');
  });
});
