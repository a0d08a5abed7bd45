import { describe, expect, it } from '@jest/globals';
import { redactedJson } from './redact-payload.js';

const canary = 'cAnArY';
const redacted = (value: unknown): string => redactedJson(value, 16_384) ?? 'null';

describe('a payload without its secrets', () => {
  it.each([
    ...[
      'password',
      'apiKey',
      'api_key',
      'API-KEY',
      'apikey',
      'x-api-key',
      'accessToken',
      'access_token',
      'token',
      'secret',
    ],
    ...[
      'clientSecret',
      'AWS_SECRET_ACCESS_KEY',
      'privateKey',
      'authorization',
      'Cookie',
      'sessionId',
      'dbPassword',
      'otp',
    ],
    ...['credentials', 'connectionString', 'card_number'],
  ])('has no value under the name %s', (name) => {
    expect(JSON.parse(redacted({ [name]: canary, deep: [{ [name]: { any: [canary] } }], place: 'here' }))).toEqual({
      [name]: '[redacted]',
      deep: [{ [name]: '[redacted]' }],
      place: 'here',
    });
  });

  // Put together here, so that nobody takes them for keys.
  it.each([
    ['eyJhbGciOiJIUzI1NiJ9', '.eyJzdWIiOiJjQW5BclkifQ.', `${canary}12345`],
    ['sk-', `proj-${canary}`, '1234567890abcdef'],
    ['sk_live_', canary, '1234567890abcdef'],
    ['ghp_', canary, '1234567890abcdef'],
    ['github_pat_', canary, '1234567890abcdef'],
    ['xoxb-', '1234567890-', canary],
    ['AKIA', 'CANARY', '1234567890'],
    ['AIza', canary, '1234567890abcdefghij1234567890'],
    ['-----BEGIN RSA PRIVATE KEY-----\n', canary, '\n-----END RSA PRIVATE KEY-----'],
    ['Bearer ', canary, '1234567890'],
    ['https://user:', canary, '@example.com/x'],
    ['https://example.com/?a=1&api_key=', canary, '&b=2'],
    ['{"password": "', canary, '"}'],
    ['the password: ', canary, ', and more'],
    ['x'.repeat(20), `${canary}0123456789`, 'y'.repeat(20)],
  ])('has nothing that looks like %s…', (...parts) => {
    const text = parts.join('');
    for (const value of [
      text,
      `so: ${text}`,
      [text],
      { note: text },
      { [text]: 1 },
      { text: JSON.stringify({ v: text }) },
    ]) {
      const json = redacted(value);
      expect(json.toLowerCase()).not.toContain(canary.toLowerCase());
      expect(json).toContain('redacted');
    }
  });

  it('keeps values that are not secrets', () => {
    const value = {
      city: 'Zürich',
      max_tokens: 5,
      key: 'C minor',
      keys: ['a'],
      monkey: 'yes',
      id: '0190a5b8-7c3e-7000-8000-0123456789ab',
      sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
      url: 'https://example.com/a/b?page=2',
      password: null,
      hasToken: true,
      list: [1, 'two', null, { three: 3.5 }],
    };
    expect(JSON.parse(redacted(value))).toEqual({ ...value, hasToken: true });
  });

  it('has at most the requested length and ends at a whole character', () => {
    for (const bytesMax of [100, 101, 102, 103]) {
      const json = redactedJson('ü€😀'.repeat(100), bytesMax) ?? '';
      expect(Buffer.byteLength(json)).toBeLessThanOrEqual(bytesMax);
      expect(json).toMatch(/^"[ü€😀]+…$/u);
    }
    expect(redactedJson('short', 7)).toBe('"short"');
    expect(redactedJson(undefined, 7)).toBeNull();
  });

  it('omits what is too long or too deep to be checked', () => {
    expect(redacted({ file: 'a'.repeat(70_000) })).toBe('{"file":"[text of 70000 characters]"}');
    let deep: unknown = canary;
    for (let i = 0; i < 50_000; i++) deep = [deep];
    expect(redacted(deep)).not.toContain(canary);
    const many = Array.from({ length: 1_000_000 }, () => 'word');
    expect((redactedJson(many, 10_000_000) ?? '').length).toBeLessThan(300_000);
  });

  it.each([
    'a.'.repeat(32_000),
    'a://b:'.repeat(10_000),
    'eyJ-'.repeat(15_000),
    `eyJ.${'eyJ-'.repeat(15_000)}`,
    'sk-'.repeat(20_000),
    'SG.'.repeat(20_000),
    'xoxb-'.repeat(12_000),
    'password: '.repeat(6_000),
    '"'.repeat(60_000),
    '-----BEGIN '.repeat(5_000),
    'token '.repeat(10_000),
    'A'.repeat(64_000),
  ])('costs no more for a text made to cost: %#', (text) => {
    // The least of three: the time of the process includes what other threads of it do meanwhile.
    const timesMs = [1, 2, 3].map(() => {
      const from = process.cpuUsage().user;
      redacted({ text });
      return (process.cpuUsage().user - from) / 1_000;
    });
    expect(Math.min(...timesMs)).toBeLessThan(1_000);
  });
});
