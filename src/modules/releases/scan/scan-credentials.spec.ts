import { describe, expect, it } from '@jest/globals';
import type { ConfigSchema } from '../config/config-fields.js';
import { verifies } from '../../../../test/support/verifies.js';
import { redactCredentials, requireScanCredentials } from './scan-credentials.js';

describe('redaction of credentials', () => {
  it('removes a value in plain form and in URLs, encoded once or twice', () => {
    const secret = 'a secret/ö+';
    const query = new URLSearchParams({ k: secret }).toString();
    const text = `${secret} ?${query} ${encodeURIComponent(secret)} ${encodeURIComponent(query)}`;
    expect(redactCredentials(text, { secrets: [secret] })).toBe(
      '[credential] ?k=[credential] [credential] k%3D[credential]',
    );
  });

  it('does not remove values that occur in ordinary sentences', () => {
    expect(redactCredentials('answered 404: is it', { secrets: ['404', 'is', ''] })).toBe('answered 404: is it');
  });

  it('does not read a value as a pattern', () => {
    expect(redactCredentials('cost: $& and $1.(x)+', { secrets: ['$1.(x)+'] })).toBe('cost: $& and [credential]');
  });
});

describe('a scan credential', () => {
  const typed: ConfigSchema = { type: 'object', properties: { count: { type: 'integer' }, isOn: { type: 'boolean' } } };

  verifies('scan-credentials:types', 'has the type that its property declares, or is a string', () => {
    expect(requireScanCredentials({ count: 3, isOn: true, token: 't' }, typed)).toEqual({
      count: '3',
      isOn: 'true',
      token: 't',
    });
    expect(requireScanCredentials({ count: '3' }, typed)).toEqual({ count: '3' });
    expect(() => requireScanCredentials({ count: 1.5 }, typed)).toThrow(
      'scanCredentials.count must be a string or of the type integer of its schema',
    );
    expect(() => requireScanCredentials({ token: 3 }, typed)).toThrow('scanCredentials.token must be a string');
  });
});
