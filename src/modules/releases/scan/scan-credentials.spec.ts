import { describe, expect, it } from '@jest/globals';
import type { Vault } from '../../../platform/vault/vault.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import type { ConfigSchema } from '../config/config-fields.js';
import { verifies } from '../../../../test/support/verifies.js';
import { redactCredentials, credentialTarget, requireScanCredentials } from './scan-credentials.js';

const configSchema: ConfigSchema = {
  type: 'object',
  properties: {
    region: { type: 'string', 'x-to': { query: 'area' } },
    token: { type: 'string', 'x-to': { header: 'X-Token' } },
  },
};

/** A vault whose seal is the text itself, bound to the row. */
const vault = { open: (sealed: string, id: string) => sealed.replace(`${id}:`, '') } as unknown as Vault;

function targetOf(credentials: object | null, schema: ConfigSchema | null = configSchema) {
  const sealedScanCredentials = credentials === null ? null : `row:${JSON.stringify(credentials)}`;
  const upstream = new URL('https://example.com/mcp?area=old&v=1');
  return credentialTarget(upstream, { id: 'row', sealedScanCredentials, configSchema: schema }, vault);
}

describe('the target of a scan', () => {
  it('is the upstream itself if there are no credentials', () => {
    expect(targetOf(null)).toEqual({
      url: new URL('https://example.com/mcp?area=old&v=1'),
      headers: {},
      secrets: [],
      note: '',
    });
  });

  it('has each value at the place that the schema names, and others in headers', () => {
    const { url, headers, secrets } = targetOf({ region: 'eu & us', token: 't', Authorization: 'Bearer x' });
    expect(Object.fromEntries(url.searchParams)).toEqual({ area: 'eu & us', v: '1' });
    expect(headers).toEqual({ 'x-token': 't', authorization: 'Bearer x' });
    expect(secrets).toEqual(['eu & us', 't', 'Bearer x']);
  });

  it('has every value in a header if there is no schema', () => {
    expect(targetOf({ region: 'eu' }, null).headers).toEqual({ region: 'eu' });
  });
});

describe('credentials of a publisher', () => {
  it('are accepted if they can be sent', () => {
    expect(() =>
      requireScanCredentials({ region: 'Zürich\n', token: 'abc', 'x-key': 'k y' }, configSchema),
    ).not.toThrow();
    expect(() => requireScanCredentials({}, null)).not.toThrow();
  });

  it.each([
    [{ token: 7 }, 'scanCredentials.token must be a string'],
    [{ token: 'a\nb' }, 'scanCredentials.token must be of visible ASCII'],
    [{ region: 'Zürich' }, 'scanCredentials.region must be of visible ASCII', null],
    [{ host: 'x' }, 'scanCredentials.host must be named like'],
    [{ 'a b': 'x' }, 'scanCredentials "a b" must be named like'],
    [{ ['__proto__']: 'x' }, 'scanCredentials.__proto__ must be named like'],
  ])(
    'are refused otherwise, and the error does not contain the values: %j',
    (credentials, message, schema: ConfigSchema | null = configSchema) => {
      const refuse = () => requireScanCredentials(credentials, schema);
      expect(refuse).toThrow(InvalidInputError);
      expect(refuse).toThrow(message);
    },
  );
});

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
