import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import type { ConfigKind } from './config-fields.js';
import { configFields, mapConfig } from './config-fields.js';
import { requireConfigSchema } from './config-schema.js';
import { verifies } from '../../../../test/support/verifies.js';
import { randomRuns } from '../../../../test/support/random-runs.js';

const kinds: ConfigKind[] = ['external', 'hosted', 'stdio'];
const string = { type: 'string' };

function messageOf(value: unknown, kind: ConfigKind = 'external'): string {
  try {
    requireConfigSchema(value, kind);
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidInputError);
    return (error as Error).message;
  }
  return 'accepted';
}

const one = (property: object) => ({ type: 'object', properties: { key: property } });

describe('a config schema', () => {
  it('is refused with the name of a construct that cannot be matched in linear time', () => {
    expect(messageOf(one({ ...string, pattern: '^(?!a)' }))).toBe(
      'configSchema.properties.key.pattern must be a pattern of RE2, without look-around "(?!"',
    );
    expect(messageOf(one({ ...string, pattern: '(a)\\1' }))).toContain('without the back-reference "\\1"');
    expect(messageOf(one({ ...string, pattern: 'a{1001}' }))).toContain(
      'without the repeat "{1001}", which is over 1000',
    );
    expect(messageOf(one({ ...string, pattern: '[' }))).toContain('must be a regular expression');
    expect(messageOf(one({ ...string, pattern: '^(a+)+$' }))).toBe('accepted');
  });

  it('is accepted with all its keywords, and without a warning within the documented limits', () => {
    const schema = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: {
        apiKey: { ...string, title: 'Key', 'x-from': { header: 'X-Api-Key' }, 'x-to': { header: 'Authorization' } },
        units: { ...string, enum: ['metric', 'imperial'], default: 'metric' },
        days: { type: 'integer', default: 3 },
        ratio: { type: ['number', 'null'], 'x-from': null },
        debug: { type: 'boolean' },
        free: {},
      },
      required: ['apiKey'],
      additionalProperties: false,
    };
    for (const kind of kinds) {
      expect(requireConfigSchema(structuredClone(schema), kind)).toEqual({ schema, warnings: [] });
    }
  });

  it('is accepted with a warning beyond the documented 20 properties and 1 KB', () => {
    const many = Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`p${i}`, string]));
    const long = { ...string, description: 'x'.repeat(1_000) };
    expect(requireConfigSchema({ properties: many }, 'external').warnings).toEqual([
      'configSchema has 21 properties; clients are promised at most 20, and some may refuse more.',
    ]);
    expect(requireConfigSchema(one(long), 'external').warnings).toEqual([
      expect.stringMatching(/^configSchema has 1\d{3} bytes; clients are promised at most 1024/),
    ]);
    expect(messageOf(one({ ...long, description: 'x'.repeat(70_000) }))).toBe('configSchema must be at most 64 KB');
  });

  it('may be nested only where its build tool nests: in bundles and hosted modules', () => {
    const nested = {
      type: 'object',
      properties: {
        db: { type: 'object', properties: { host: string, port: { type: 'number' } }, required: ['host'] },
        dirs: { type: 'array', items: string, default: ['a'] },
      },
      required: ['db'],
    };
    expect(requireConfigSchema(nested, 'stdio').warnings).toEqual([]);
    expect(requireConfigSchema(nested, 'hosted').warnings).toEqual([
      'configSchema.properties.dirs is not a string, number or boolean: callers must pass it as JSON.',
    ]);
    expect(messageOf(nested, 'external')).toBe(
      'configSchema.properties.db.type must be "string", "number", "integer" or "boolean": ' +
        'callers pass each value in a header or the query',
    );
  });

  it('may not declare names of credentials and proxies', () => {
    for (const header of ['authorization', 'Cookie', 'CF-Ray', 'cf-', 'Smithery-Config']) {
      for (const kind of kinds) {
        expect(messageOf(one({ ...string, 'x-from': { header } }), kind)).toMatch(
          /x-from\.header must not be .*reserved$/,
        );
      }
    }
    expect(messageOf(one({ ...string, 'x-from': { query: 'authorization' } }))).toBe('accepted');
    expect(messageOf(one({ ...string, 'x-from': { header: 'x-cf-ray' } }))).toBe('accepted');
  });

  it('may not declare headers that carry the request itself', () => {
    for (const header of ['Host', 'content-length', 'Transfer-Encoding', 'mcp-session-id', 'Connection', '__proto__']) {
      expect(messageOf(one({ ...string, 'x-to': { header } }))).toContain('belongs to the HTTP exchange or to MCP');
      expect(messageOf(one({ ...string, 'x-from': { header } }))).toContain('belongs to the HTTP exchange or to MCP');
    }
  });

  it('is refused with the path and the expected value', () => {
    const cases: [unknown, string][] = [
      [null, 'configSchema must be an object'],
      [[], 'configSchema must be an object'],
      [{ type: 'string' }, 'configSchema.type must be "object"'],
      [{ properties: [] }, 'configSchema.properties must be an object'],
      [{ properties: { a: 'string' } }, 'configSchema.properties.a must be an object'],
      [{ properties: { a: null } }, 'configSchema.properties.a must be an object'],
      [{ properties: { 'a\u202Eb': 1 } }, 'configSchema.properties."a\\u{202E}b" must be an object'],
      [one({ ...string, default: 1 }), 'configSchema.properties.key.default must be of type string'],
      [one({ type: 'integer', default: 1.5 }), 'configSchema.properties.key.default must be of type integer'],
      [
        one({ 'x-from': 'header' }),
        'configSchema.properties.key.x-from must be {"header": "<name>"} or {"query": "<name>"}',
      ],
      [
        one({ 'x-to': { header: 'a', query: 'b' } }),
        'configSchema.properties.key.x-to must be {"header": "<name>"} or {"query": "<name>"}',
      ],
      [one({ 'x-to': { header: 'a b' } }), 'configSchema.properties.key.x-to.header must be a header name: "a b"'],
      [
        one({ 'x-from': { query: '' } }),
        'configSchema.properties.key.x-from must name a query parameter of 1 to 128 visible characters: ""',
      ],
      [
        one({ default: 'a\r\nb: c', 'x-to': { header: 'X-A' } }),
        'configSchema.properties.key.default must be of visible ASCII characters: it is sent on in a header',
      ],
      [{ properties: {}, required: 'key' }, 'configSchema.required must be an array'],
      [{ properties: {}, required: ['toString'] }, 'configSchema.required.0 must be the name of a property'],
      [
        { properties: { a: { 'x-to': { header: 'X-K' } }, b: { 'x-to': { header: 'x-k' } } } },
        'configSchema.properties "a" and "b" both go to header "x-k": give one of them another x-to',
      ],
      [one({ description: '\0' }), 'configSchema must not hold NUL characters or broken unicode'],
      [
        JSON.parse('{"a":'.repeat(5_000) + '1' + '}'.repeat(5_000)),
        'configSchema must not be nested deeper than 100 levels',
      ],
    ];
    for (const [value, message] of cases) expect(messageOf(value)).toBe(message);
  });

  it('is accepted or refused with an InvalidInputError for any input; an accepted one maps every request', async () => {
    const property = fc.record(
      {
        type: fc.oneof(fc.constantFrom('string', 'number', 'boolean', 'integer', 'object', 'array'), fc.jsonValue()),
        default: fc.jsonValue(),
        enum: fc.jsonValue(),
        properties: fc.jsonValue(),
        'x-from': fc.oneof(fc.record({ header: fc.string() }), fc.jsonValue()),
        'x-to': fc.oneof(fc.record({ query: fc.string() }), fc.jsonValue()),
      },
      { requiredKeys: [] },
    );
    const near = fc.record(
      {
        properties: fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', 'a')), property),
        required: fc.array(fc.constantFrom('a', 'constructor')),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(near, fc.jsonValue()),
        fc.constantFrom(...kinds),
        fc.string(),
        async (value, kind, sent) => {
          if (messageOf(value, kind) !== 'accepted') return;
          // A bundle's values are asked for where it is installed; no request carries them.
          if (kind === 'stdio') return;
          const { schema } = requireConfigSchema(value, kind);
          const query = new URLSearchParams(
            Object.keys(schema.properties).map((name): [string, string] => [name, sent]),
          );
          const { headers } = await mapConfig(configFields(schema, kind), { headers: {}, query }, 'acme');
          for (const [name, text] of Object.entries(headers)) expect(() => new Headers([[name, text]])).not.toThrow();
        },
      ),
      { numRuns: randomRuns(2_000) },
    );
  });
});

describe('the configuration of a caller', () => {
  const schema = {
    type: 'object',
    properties: {
      apiKey: { ...string, 'x-from': { header: 'X-Api-Key' }, 'x-to': { header: 'Authorization' } },
      token: { ...string, 'x-from': { query: 't' } },
      region: { ...string, 'x-to': { header: 'X-Region' } },
      units: { ...string, enum: ['metric', 'imperial'], default: 'metric' },
      days: { type: 'integer', default: 3, 'x-to': { query: 'd' } },
      ratio: { type: 'number' },
      debug: { type: 'boolean', default: false },
    },
    required: ['apiKey', 'token', 'units'],
  };
  const compiled = configFields(requireConfigSchema(schema, 'external').schema, 'external');
  const map = (headers: Record<string, string | string[]>, query: string) =>
    mapConfig(compiled, { headers, query: new URLSearchParams(query) }, 'acme');

  it('must be of the declared types, and no error repeats a value', async () => {
    const { faults, query } = await map(
      { 'x-api-key': 's\u00e9cret' },
      't=1&days=1.5&ratio=0x10&debug=yes&units=secret&region=a%0D%0Ab',
    );
    expect(faults.map(({ message }) => message)).toEqual([
      'The header "X-Api-Key" must be of visible ASCII characters: it is sent on in a header.',
      'The query "region" must be of visible ASCII characters: it is sent on in a header.',
      'The query "units" must be one of the values its schema lists.',
      'The query "days" must be a whole number.',
      'The query "ratio" must be a number.',
      'The query "debug" must be true or false.',
    ]);
    expect(query).toEqual([['t', '1']]);
    for (const number of ['1', '-2.50', '1E5', '0']) expect((await map({}, `ratio=${number}`)).faults).toEqual([]);
    for (const number of ['1e999', 'NaN', '01', '.5', ' 1', '１'])
      expect((await map({}, `ratio=${number}`)).faults).toHaveLength(1);
  });
});

describe('a config schema with more than types', () => {
  const rich = {
    properties: {
      count: { type: 'integer', minimum: 1, maximum: 5 },
      r: { type: 'string', pattern: '^[a-z]+$', maxLength: 3 },
      m: { type: 'string', format: 'email', 'x-from': { header: 'X-Mail' } },
      mode: { const: 'fast' },
      user: string,
    },
    dependentRequired: { user: ['m'] },
  };
  const faultsOf = async (schema: object, query: string, headers = {}, kind: ConfigKind = 'external') => {
    const fields = configFields(requireConfigSchema(schema, kind).schema, kind);
    const { faults } = await mapConfig(fields, { headers, query: new URLSearchParams(query) }, 'acme');
    return faults.map(({ message }) => message);
  };

  verifies('config:whole-schema', 'is enforced completely, and no error repeats a value', async () => {
    expect(await faultsOf(rich, 'count=5&r=abc&mode=fast', { 'x-mail': 'a@example.com' })).toEqual([]);
    expect(await faultsOf(rich, 'count=99')).toEqual(['The query "count" must be <= 5.']);
    expect(await faultsOf(rich, 'r=abcd')).toEqual(['The query "r" must NOT have more than 3 characters.']);
    expect(await faultsOf(rich, 'r=A1')).toEqual(['The query "r" must match pattern "^[a-z]+$".']);
    expect(await faultsOf(rich, '', { 'x-mail': 'notmail' })).toEqual([
      'The header "X-Mail" must match format "email".',
    ]);
    expect(await faultsOf(rich, 'mode=slow')).toEqual(['The query "mode" must be equal to constant.']);
    expect(await faultsOf(rich, 'user=u')).toEqual([
      expect.stringContaining('must have property m when property user'),
    ]);
    const nested = {
      properties: { db: { type: 'object', properties: { port: { type: 'integer', maximum: 65535 } } } },
    };
    expect(await faultsOf(nested, 'db.port=70000', {}, 'hosted')).toEqual(['The query "db.port" must be <= 65535.']);
  });

  verifies('config:whole-schema', 'is refused where a keyword cannot be checked, with the name of the keyword', () => {
    expect(messageOf(one({ ...string, format: 'zip-code' }))).toBe(
      'configSchema.properties.key.format "zip-code" has no check: leave it out, or say it with pattern',
    );
    expect(messageOf(one({ ...string, anyOf: [{ format: 'zip-code' }, { maxLength: 3 }] }))).toContain(
      'configSchema.properties.key.anyOf.0.format "zip-code" has no check',
    );
    expect(messageOf(one({ ...string, 'x-field': { format: 'dropdown' } }))).toBe('accepted');
    expect(messageOf(one({ ...string, format: 'password' }))).toBe('accepted');
    expect(messageOf(one({ ...string, maxLength: 'long' }))).toMatch(/^configSchema cannot be enforced: .*maxLength/);
    expect(messageOf(one({ ...string, $ref: 'https://example.com/schema.json' }))).toMatch(
      /^configSchema cannot be enforced: /,
    );
  });
});
