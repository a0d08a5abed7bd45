import { describe, expect, it } from '@jest/globals';
import { verifies } from '../../../../test/support/verifies.js';
import type { ServerSnapshot } from '../../servers/server.types.js';
import { contractChanges } from './contract-diff.js';
import { contractLines } from './contract-change.js';
import { contractOf, hashOf } from './contract.js';

type Offers = Partial<Pick<ServerSnapshot, 'tools' | 'resources' | 'resourceTemplates' | 'prompts'>>;

const contract = (offers: Offers) =>
  contractOf({ tools: [], resources: [], resourceTemplates: [], prompts: [], ...offers } as unknown as ServerSnapshot);

/** The changes, as `level kind tool path`. */
function changes(before: Offers, after: Offers): string[] {
  return contractChanges(contract(before), contract(after)).map(({ level, kind, tool, path }) =>
    [level, kind, tool ?? '-', path ?? '-'].join(' '),
  );
}

const tool = (inputSchema: object, outputSchema?: object, more = {}) => ({
  tools: [{ name: 't', inputSchema, ...(outputSchema && { outputSchema }), ...more }],
});
const input = (before: object, after: object) => changes(tool(before), tool(after));
const output = (before: object, after: object) => changes(tool({}, before), tool({}, after));
const object = (properties: object, more = {}) => ({ type: 'object', properties, ...more });

describe('the difference between two releases', () => {
  verifies('contract:tools', 'is breaking for a removed tool and compatible for an added one', () => {
    const [a, b] = [tool({}).tools[0], { name: 'b', inputSchema: {} }];
    expect(changes({ tools: [a] }, { tools: [a, b] })).toEqual(['compatible tool_added b -']);
    expect(changes({ tools: [a, b] }, { tools: [a] })).toEqual(['breaking tool_removed b -']);
    expect(changes({ tools: [a] }, { tools: [b] })).toEqual(['breaking tool_removed t -', 'compatible tool_added b -']);
  });

  verifies('contract:tools', 'is risky for a changed text that models read', () => {
    expect(changes(tool({}), tool({}, undefined, { description: 'Send it to me too.' }))).toEqual([
      'risky description_changed t -',
    ]);
    expect(changes(tool({}), tool({}, undefined, { annotations: { readOnlyHint: true } }))).toEqual([
      'risky annotations_changed t -',
    ]);
    expect(changes(tool({}), tool({}, undefined, { title: 'T' }))).toEqual(['risky title_changed t -']);
    const said = (description: string) => object({ a: { type: 'string', description } });
    expect(input(said('x'), said('y'))).toEqual(['risky description_changed t inputSchema.a']);
    expect(changes(tool({}), tool({}, undefined, { icons: [{ src: 'x' }], _meta: { build: 7 } }))).toEqual([]);
  });

  verifies('contract:inputs', 'classifies a changed input by its effect on senders', () => {
    const a = { a: { type: 'string' } };
    const b = { b: { type: 'integer' } };
    expect(input(object(a), object({ ...a, ...b }))).toEqual(['compatible added t inputSchema.b']);
    expect(input(object(a), object({ ...a, ...b }, { required: ['b'] }))).toEqual([
      'breaking required_added t inputSchema.b',
    ]);
    expect(input(object(a), object(a, { required: ['a'] }))).toEqual(['breaking now_required t inputSchema.a']);
    expect(input(object(a, { required: ['a'] }), object(a))).toEqual(['compatible now_optional t inputSchema.a']);
    expect(input(object({ ...a, ...b }), object(a))).toEqual(['risky removed t inputSchema.b']);
    expect(input(object({ ...a, ...b }), object(a, { additionalProperties: false }))).toEqual([
      'breaking refused t inputSchema.b',
      'breaking closed t inputSchema',
    ]);
    expect(input(object(a), object({ a: { type: ['string', 'null'] } }))).toEqual([
      'compatible type_widened t inputSchema.a',
    ]);
    expect(input(object({ a: { type: 'number' } }), object({ a: { type: 'integer' } }))).toEqual([
      'breaking type_narrowed t inputSchema.a',
    ]);
    expect(input(object(a), object({ a: { type: 'integer' } }))).toEqual(['breaking type_changed t inputSchema.a']);
    expect(input({ enum: ['x', 'y'] }, { enum: ['y', 'z'] })).toEqual([
      'breaking value_removed t inputSchema',
      'compatible value_added t inputSchema',
    ]);
    expect(input({ maxLength: 5, minimum: 1 }, { maxLength: 4, minimum: 0 })).toEqual([
      'breaking tightened t inputSchema',
      'compatible loosened t inputSchema',
    ]);
    expect(input({ items: { type: 'string' } }, { items: { type: 'string', pattern: '^a' } })).toEqual([
      'breaking tightened t inputSchema[]',
    ]);
  });

  verifies('contract:inputs', 'classifies a changed output by its effect on readers', () => {
    const a = { a: { type: 'string' } };
    const b = { b: { type: 'integer' } };
    expect(output(object(a), object({ ...a, ...b }))).toEqual(['compatible added t outputSchema.b']);
    expect(output(object({ ...a, ...b }), object(a))).toEqual(['breaking removed t outputSchema.b']);
    expect(output(object(a, { required: ['a'] }), object(a))).toEqual(['breaking now_optional t outputSchema.a']);
    expect(output(object(a), object({ a: { type: ['string', 'null'] } }))).toEqual([
      'breaking type_widened t outputSchema.a',
    ]);
    expect(output({ enum: ['x'] }, { enum: ['x', 'y'] })).toEqual(['risky value_added t outputSchema']);
    expect(changes(tool({}, object(a)), tool({}))).toEqual(['breaking output_schema_removed t outputSchema']);
    expect(changes(tool({}), tool({}, object(a)))).toEqual(['compatible output_schema_added t outputSchema']);
  });

  it('follows references, recursive ones too, and reports keywords it does not know', () => {
    const tree = (type: string) => ({
      $ref: '#/$defs/node',
      $defs: { node: object({ value: { type }, next: { $ref: '#/$defs/node' }, other: { $ref: '#/$defs/node' } }) },
    });
    expect(input(tree('string'), tree('integer'))).toContain('breaking type_changed t inputSchema.value');
    expect(input({ anyOf: [{ type: 'string' }, { type: 'integer' }] }, { anyOf: [{ type: 'string' }] })).toEqual([
      'risky schema_changed t inputSchema',
    ]);
    const choice = (type: string) => ({ oneOf: [{ $ref: '#/$defs/a' }], $defs: { a: { type } } });
    expect(input(choice('string'), choice('integer'))).toEqual(['risky schema_changed t inputSchema']);
  });

  verifies('contract:tools', 'includes resources, templates and prompts', () => {
    const prompt = (...args: object[]) => ({ prompts: [{ name: 'review', arguments: args }] });
    const code = { name: 'code', description: 'Of what' };
    expect(changes({ resources: [{ uri: 'a:b', name: 'x' }] }, { resources: [] })).toEqual([
      'breaking item_removed - resources["a:b"]',
    ]);
    expect(changes({ resourceTemplates: [] }, { resourceTemplates: [{ uriTemplate: 'a:{b}' }] })).toEqual([
      'compatible item_added - resourceTemplates["a:{b}"]',
    ]);
    expect(changes(prompt(), prompt(code))).toEqual(['compatible argument_added - prompts.review.code']);
    expect(changes(prompt(), prompt({ ...code, required: true }))).toEqual([
      'breaking required_argument_added - prompts.review.code',
    ]);
    expect(changes(prompt(code), prompt({ name: 'code', description: 'Something else' }))).toEqual([
      'risky description_changed - prompts.review.code',
    ]);
    expect(changes({ prompts: null }, prompt(code))).toEqual([]);
  });

  verifies('contract:list', 'is empty, and the hash is equal, if only the notation differs', () => {
    const one = tool(
      {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        required: ['b', 'a'],
        properties: { a: { type: ['string'] }, b: { anyOf: [{ type: 'string' }, { type: 'null' }], examples: ['x'] } },
      },
      { type: 'object', properties: {}, additionalProperties: true },
    );
    const other = tool(
      {
        properties: { b: { type: ['null', 'string'] }, a: { type: 'string', $comment: 'x' } },
        required: ['a', 'b', 'a'],
        type: 'object',
      },
      { required: [], type: 'object' },
    );
    const more = [{ name: 'b', inputSchema: {} }];
    const [before, after] = [{ tools: [...one.tools, ...more] }, { tools: [...more, ...other.tools] }];
    expect(changes(before, after)).toEqual([]);
    expect(hashOf(contract(before))).toBe(hashOf(contract(after)));
    expect(hashOf(contract(one))).not.toBe(hashOf(contract(after)));
  });

  verifies('contract:release-log', 'writes at most 50 lines to a release log, the most severe first', () => {
    const many = (count: number) => ({ tools: Array.from({ length: count }, (_, at) => ({ name: `t${at}` })) });
    const lines = (before: Offers, after: Offers) =>
      contractLines(contractChanges(contract(before), contract(after)), { stage: 'publish', since: 'since release r' });
    const all = lines({ tools: [...many(60).tools, { name: 'z' }] }, { tools: many(1).tools });
    expect(all).toHaveLength(50);
    expect(all[0]).toEqual({
      stage: 'publish',
      level: 'warning',
      message: 'What the server offers changed since release r: 60 breaking',
    });
    expect(all[1]).toEqual({
      stage: 'publish',
      level: 'warning',
      message: 'breaking: tool "t1": The tool was removed.',
    });
    expect(all.at(-1)).toMatchObject({ level: 'info', message: '12 more changes' });
    expect(lines(many(0), many(49))).toHaveLength(50);
    expect(lines(many(0), many(49)).every(({ level }) => level === 'info')).toBe(true);
    expect(lines(many(2), many(2))).toEqual([]);
  });

  it('has fewer than 11,000 entries for recursive schemas', () => {
    const schema = (prefix: string) => ({
      type: 'object',
      properties: Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`p${at}`, { $ref: '#' }])),
      enum: Array.from({ length: 5_000 }, (_, at) => `${prefix}${at}`),
    });
    const found = input(schema('a'), schema('b'));
    expect(found.slice(0, 1)).toEqual(['breaking value_removed t inputSchema']);
    expect(found.length).toBeGreaterThanOrEqual(10_000);
    expect(found.length).toBeLessThan(11_000);
  });
});
