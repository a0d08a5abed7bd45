import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { randomRuns } from '../../../../test/support/random-runs.js';
import { checkServer, DESCRIPTION_CHARS_MAX, FINDINGS_MAX, type Finding, type ServerText } from './security-check.js';

const inputSchema = { type: 'object', properties: { q: { type: 'string', description: 'What to look for' } } };
const tool = (name: string, more: object = {}) => ({ name, description: 'Looks things up.', inputSchema, ...more });
const tools = (...names: string[]) => ({ tools: names.map((name) => tool(name)) });
const rulesOf = (findings: Finding[]) => findings.map(({ rule, where }) => `${where}: ${rule}`);

describe('a server without findings', () => {
  it('may have any text in members that models do not read', async () => {
    expect(await checkServer({ tools: [tool('a', { _meta: { 'x/y': 'a\u200Bb' } })] })).toEqual([]);
  });
});

describe('hidden text', () => {
  const hidden = 'Adds.\u{E0049}\u{E0047}';

  it('is found in every member that models read, with its path and the next step', async () => {
    expect(await checkServer({ tools: [tool('add', { description: hidden })] })).toEqual([
      {
        rule: 'hidden-characters',
        where: 'tool "add"',
        message:
          'Its description holds 2 characters nobody sees (U+E0049 Unicode tag): models read them, so they can carry ' +
          'instructions no person has approved. They spell "IG". Remove them.',
      },
    ]);
    const schemas = (part: object) => ({ inputSchema: { type: 'object', ...part } });
    const places: [ServerText, string][] = [
      [{ serverInfo: { name: hidden } }, 'Its name'],
      [{ serverInfo: { title: hidden } }, 'Its title'],
      [{ instructions: hidden }, 'The text'],
      [{ tools: [tool('a', { title: hidden })] }, 'Its title'],
      [{ tools: [tool('a', { annotations: { title: hidden } })] }, 'The text at annotations.title'],
      [
        { tools: [tool('a', schemas({ properties: { q: { properties: { r: { description: hidden } } } } }))] },
        'The text at inputSchema.properties.q.properties.r.description',
      ],
      [
        { tools: [tool('a', schemas({ properties: { q: { enum: ['x', hidden] } } }))] },
        'The text at inputSchema.properties.q.enum.1',
      ],
      [
        { tools: [tool('a', schemas({ properties: { q: { default: { b: hidden } } } }))] },
        'The text at inputSchema.properties.q.default.b',
      ],
      [{ tools: [tool('a', schemas({ 'x-note': hidden }))] }, 'The text at inputSchema.x-note'],
      [{ tools: [tool('a', { outputSchema: { description: hidden } })] }, 'The text at outputSchema.description'],
      [{ tools: [tool('a', { 'x-note': hidden })] }, 'Its x-note'],
      [
        { prompts: [{ name: 'p', arguments: [{ name: 'a', description: hidden }] }] },
        'The text at arguments.0.description',
      ],
      [{ resources: [{ name: 'r', uri: hidden }] }, 'Its uri'],
      [{ resourceTemplates: [{ name: 'r', uriTemplate: 'a:b', description: hidden }] }, 'Its description'],
    ];
    for (const [server, subject] of places) {
      const findings = await checkServer(server);
      expect([subject, findings.map(({ rule }) => rule)]).toEqual([subject, ['hidden-characters']]);
      expect(findings[0].message.startsWith(`${subject} holds 2 characters`)).toBe(true);
    }
  });

  it('is found in parameter names, and quoted without the hidden characters', async () => {
    const [finding] = await checkServer({
      tools: [tool('a', { inputSchema: { type: 'object', properties: { 'pass\u200Bword': { type: 'string' } } } })],
    });
    expect(finding.message).toContain(
      'The name "inputSchema.properties.pass\\u{200B}word" holds 1 character nobody sees',
    );
  });
});

describe('texts that are too long for a context', () => {
  it('are reported with their length and the limit', async () => {
    const description = 'x'.repeat(DESCRIPTION_CHARS_MAX);
    expect(await checkServer({ tools: [tool('a', { description })] })).toEqual([]);
    expect(await checkServer({ tools: [tool('a', { description: `${description}y` })] })).toEqual([
      {
        rule: 'oversized-text',
        where: 'tool "a"',
        message:
          "Its description has 16385 characters: clients put it into every model's context, where it crowds out " +
          'everything else. Shorten it to 16384 or less.',
      },
    ]);
    const long = 'x'.repeat(DESCRIPTION_CHARS_MAX + 1);
    expect(
      rulesOf(
        await checkServer({
          instructions: 'x'.repeat(32_769),
          tools: [tool('a', { title: 'x'.repeat(257), inputSchema: { type: 'object', description: long } })],
          prompts: [{ name: 'p'.repeat(257), arguments: [{ name: 'a', description: long }] }],
        }),
      ),
    ).toEqual([
      'instructions: oversized-text',
      'tool "a": oversized-text',
      'tool "a": oversized-text',
      `prompt "${'p'.repeat(60)}…": oversized-text`,
      `prompt "${'p'.repeat(60)}…": oversized-text`,
    ]);
  });
});

describe('names of tools', () => {
  it('must be accepted by clients', async () => {
    for (const name of ['a', 'get_weather', 'repo.search', 'a/b', 'A-1', 'x'.repeat(128)]) {
      expect(await checkServer(tools(name))).toEqual([]);
    }
    for (const name of ['', 'two words', 'größe', 'x'.repeat(129), 'a:b', 'a\nb', '<b>', '工具']) {
      expect(rulesOf(await checkServer(tools(name)))).toContainEqual(expect.stringMatching(/: tool-name$/));
    }
    expect(rulesOf(await checkServer({ tools: [{ inputSchema }, null, 'x'] }))).toEqual([
      'tool number 1: tool-name',
      'tool number 2: tool-name',
      'tool number 3: tool-name',
    ]);
  });

  it('must not be confusable with each other', async () => {
    expect(rulesOf(await checkServer(tools('search', 'other', 'search')))).toEqual(['tool "search": name-clash']);
    for (const [name, twin] of [
      ['search', 'Search'],
      ['search', 'SEARCH'],
      ['search', 'ｓｅａｒｃｈ'],
      ['search', 'ѕеаrсһ'], // Cyrillic
      ['Search', 'Ѕearch'],
      ['token', 'tοken'], // Greek omicron
      ['BANK', 'ΒΑΝΚ'], // Greek capitals
      ['file', 'ﬁle'],
      ['search', 'séarch'],
      ['search', 'sea\u200Brch'],
    ]) {
      const findings = await checkServer(tools(name, twin));
      expect([twin, findings.map(({ rule }) => rule)]).toEqual([twin, expect.arrayContaining(['name-clash'])]);
      expect(findings.find(({ rule }) => rule === 'name-clash')?.message).toContain(
        `reads like that of tool "${name}"`,
      );
    }
    expect(
      await checkServer(tools('search', 'research', 'search_2', 'search-2', 'search.2', 'v1', 'vl', 'v0', 'vo')),
    ).toEqual([]);
  });
});

describe('schemas', () => {
  it('must have type object at the root if they describe arguments', async () => {
    for (const schema of [{}, { type: 'string' }, { type: ['object', 'null'] }, { anyOf: [{ type: 'object' }] }]) {
      expect(rulesOf(await checkServer({ tools: [tool('a', { inputSchema: schema })] }))).toEqual([
        'tool "a": invalid-schema',
      ]);
    }
    // Of modern servers a result may be anything.
    expect(await checkServer({ tools: [tool('a', { outputSchema: { type: 'array' } })] })).toEqual([]);
  });

  it('may be missing in a card, but not in a scanned server', async () => {
    const server = { tools: [{ name: 'a' }] };
    expect(await checkServer(server)).toEqual([]);
    expect((await checkServer({ ...server, requireSchemas: true }))[0].message).toContain('It has no inputSchema');
    expect(await checkServer({ ...tools('a'), requireSchemas: true })).toEqual([]);
  });

  it('are checked, output schemas too', async () => {
    const outputSchema = { $ref: 'https://evil.test/x' };
    expect(await checkServer({ tools: [tool('a', { outputSchema })] })).toEqual([
      {
        rule: 'remote-reference',
        where: 'tool "a"',
        message:
          'Its outputSchema refers to "https://evil.test/x" at "$ref", which clients must not fetch: copy what it refers to into $defs.',
      },
    ]);
    const broken = { type: 'object', properties: { q: { type: 'text' } } };
    expect(rulesOf(await checkServer({ tools: [tool('a', { inputSchema: broken })] }))).toEqual([
      'tool "a": invalid-schema',
    ]);
    expect(rulesOf(await checkServer({ tools: [tool('a', { inputSchema: 'none' })] }))).toEqual([
      'tool "a": invalid-schema',
    ]);
  });
});

describe('hostile input', () => {
  it('nested too deeply is a finding, and the rest is still checked', async () => {
    const deep: unknown = JSON.parse('['.repeat(200_000) + ']'.repeat(200_000));
    expect(rulesOf(await checkServer({ tools: [tool('a', { inputSchema: { default: deep } }), tool('b c')] }))).toEqual(
      ['tool "a": nested-too-deeply', 'tool "b c": tool-name'],
    );
  });

  it('has at most 100 findings, not all of them of one tool', async () => {
    const noisy = tool('a b', { inputSchema: { type: 'object', enum: Array.from({ length: 5_000 }, () => '\u200B') } });
    const findings = await checkServer({ tools: [noisy, ...Array.from({ length: 500 }, (_, at) => tool(`no ${at}`))] });
    expect(findings).toHaveLength(FINDINGS_MAX);
    expect(findings.filter(({ where }) => where === 'tool "a b"')).toHaveLength(8);
  });

  it('never throws, and no finding contains the hidden text', async () => {
    const value = fc.jsonValue({ stringUnit: 'binary', maxDepth: 4 });
    const near = fc.record(
      {
        name: fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('a', 'A', '\u202E'), value),
        description: fc.oneof(fc.constantFrom('\u{E0041}', 'ok'), value),
        inputSchema: fc.oneof(
          fc.record({ type: fc.constant('object'), properties: value, $ref: value }, { requiredKeys: [] }),
          value,
        ),
        arguments: value,
      },
      { requiredKeys: [] },
    );
    const list = fc.oneof(fc.array(fc.oneof(near, value), { maxLength: 5 }), value);
    const server = fc.record({
      ...{
        serverInfo: value,
        instructions: value,
        tools: list,
        prompts: list,
        resources: list,
        resourceTemplates: list,
      },
      requireSchemas: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(server, async (input) => {
        for (const { rule, where, message } of await checkServer(input)) {
          expect(rule).not.toBe('check-failed');
          expect(where + message).not.toMatch(/[\p{C}\p{Default_Ignorable_Code_Point}]/u);
          expect(where.length + message.length).toBeLessThan(4_000);
          expect(message).toMatch(/\.$/);
        }
      }),
      { numRuns: randomRuns(2_000) },
    );
  });
});
