import { describe, expect, it } from '@jest/globals';
import { tracker } from '../../../../../test/support/special-upstreams/tracker.js';
import { InvalidInputError } from '../../../../platform/errors/domain-error.js';
import type { JsonObject } from '../../../../platform/text/json.js';
import { parseFixture, requireTools, FixtureSimulator } from './fixture.js';
import { SchemaSimulator } from './schema-simulator.js';
import type { Answer, UseCounts } from './simulator.js';

/** A mock without a database. */
function mockOf(tools: JsonObject): (tool: string, given?: JsonObject) => Promise<Answer> {
  const fixture = parseFixture(JSON.stringify({ tools }));
  if (!fixture) throw new Error('no fixture');
  const simulator = new FixtureSimulator(new SchemaSimulator(tracker, 'acme'), fixture);
  let uses: UseCounts = {};
  return async (tool, given = {}) => {
    const call = { tool, arguments: given, recent: () => Promise.resolve([]), timeoutMs: 1_000 };
    const answer = (await simulator.prepare(call))(uses);
    // As the database keeps it.
    uses = JSON.parse(JSON.stringify(answer.uses ?? uses)) as UseCounts;
    return answer;
  };
}

const byFixture = { 'slipway/simulator': 'fixture' };
const bySchema = { 'slipway/simulator': 'schema' };
const unmatched = { ...bySchema, 'slipway/reason': 'No rule of the fixture matches this call.' };
const title = { title: 'x' };

describe('a rule of a fixture', () => {
  it.each<[string, JsonObject, JsonObject]>([
    ['a text', { result: 'Hello' }, { content: [{ type: 'text', text: 'Hello' }] }],
    [
      'structured content',
      { result: { structuredContent: { city: 'Lisbon' } } },
      { content: [{ type: 'text', text: '{"city":"Lisbon"}' }], structuredContent: { city: 'Lisbon' } },
    ],
    [
      'content blocks',
      { result: { content: [{ type: 'image', data: 'AA==', mimeType: 'image/png' }] } },
      { content: [{ type: 'image', data: 'AA==', mimeType: 'image/png' }] },
    ],
    [
      'a whole result',
      { result: { content: [{ type: 'text', text: 'one' }], structuredContent: [1], isError: true, _meta: {} } },
      { content: [{ type: 'text', text: 'one' }], structuredContent: [1], isError: true },
    ],
    ['an error', { error: 'rate limited' }, { content: [{ type: 'text', text: 'rate limited' }], isError: true }],
  ])('returns %s', async (_name, rule, result) => {
    const answer = await mockOf({ echo: [rule] })('echo');
    expect(answer).toEqual({ result: { ...result, _meta: byFixture } });
  });

  it.each<[JsonObject, JsonObject, boolean]>([
    [{ message: 'a' }, { message: 'a', more: 1 }, true],
    [{ message: 'a' }, { message: 'b' }, false],
    [{ message: 'a' }, {}, false],
    [{ filter: { state: 'open' } }, { filter: { state: 'open', page: 2 } }, true],
    [{ filter: { state: 'open' } }, { filter: ['open'] }, false],
    [{ ids: [1, 2] }, { ids: [1, 2] }, true],
    [{ ids: [1, 2] }, { ids: [1, 2, 3] }, false],
    [{ ids: [] }, { ids: {} }, false],
    [{ n: null }, { n: null }, true],
    [{ constructor: {} }, {}, false],
  ])('with the arguments %j and a call with %j: %j', async (wanted, given, isMatch) => {
    const { result } = await mockOf({ list_notes: [{ arguments: wanted, result: 'yes' }] })('list_notes', given);
    expect(result._meta).toEqual(isMatch ? byFixture : unmatched);
  });

  it('is replaced by the next rule after its number of calls', async () => {
    const call = mockOf({
      create_issue: [{ times: 2 }, { times: 1, error: 'late' }, { arguments: title, times: 1, result: 'last' }],
      get_weather: [{ error: 'down' }],
    });
    const marks: unknown[] = [];
    for (let made = 0; made < 5; made += 1) {
      const { result } = await call('create_issue', title);
      marks.push([result._meta, result.isError ?? false]);
      expect((await call('get_weather', { city: 'Oslo' })).result.content).toEqual([{ type: 'text', text: 'down' }]);
    }
    expect(marks).toEqual([
      [bySchema, false],
      [bySchema, false],
      [byFixture, true],
      [byFixture, false],
      [unmatched, false],
    ]);
  });

  it('delays its result, also a generated one', async () => {
    const call = mockOf({ echo: [{ result: 'slow', delayMs: 250 }], list_notes: [{ delayMs: 50 }] });
    expect(await call('echo')).toMatchObject({ delayMs: 250 });
    expect(await call('list_notes')).toMatchObject({ delayMs: 50, result: { _meta: bySchema } });
  });

  it('is not used up by a call with wrong arguments', async () => {
    const call = mockOf({ create_issue: [{ times: 1, error: 'first' }] });
    const refused = await call('create_issue', { title: 7 });
    expect(refused.result).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/must be string$/) }],
    });
    expect((await call('create_issue', title)).result).toMatchObject({ content: [{ text: 'first' }] });
  });

  it('applies only to calls of its tool', async () => {
    const { result } = await mockOf({ echo: [{ result: 'Hello' }] })('get_weather', { city: 'Oslo' });
    expect(result).toMatchObject({ structuredContent: { city: 'Oslo' }, _meta: unmatched });
  });
});

describe('a scenario', () => {
  it.each(['3 open issues', '{"issues": 3}', '[1]', '7', '"tools"', 'null', '{ a world of tools'])(
    '%s is a prose scenario',
    (scenario) => {
      expect(parseFixture(scenario)).toBeNull();
    },
  );

  const deep = `${'['.repeat(200)}${']'.repeat(200)}`;
  const rule = (text: string) => `{"tools": {"echo": [${text}]}}`;
  it.each([
    ['{"tools": {"echo": [],}}', /^mock\.scenario: \$ is not JSON: /],
    ['{"tools": 7}', /^mock\.scenario: \$\.tools must be an object/],
    ['{"tools": {}, "rules": []}', /^mock\.scenario: \$\.rules is unknown: expected tools$/],
    ['{"tools": {"echo": {}}}', /^mock\.scenario: \$\.tools\.echo must be a list of rules$/],
    ['{"tools": {"a b": {}}}', /^mock\.scenario: \$\.tools\["a b"\] must be a list of rules$/],
    [rule('"x"'), /^mock\.scenario: \$\.tools\.echo\[0\] must be an object$/],
    [rule('{}, {"status": 500}'), /^mock\.scenario: \$\.tools\.echo\[1\]\.status is unknown: expected arguments, /],
    [rule('{"arguments": []}'), /\.echo\[0\]\.arguments must be an object$/],
    [rule('{"error": 7}'), /\.echo\[0\]\.error must be a string$/],
    [rule('{"error": "x", "result": "y"}'), /\.echo\[0\] must not have both result and error$/],
    [rule('{"result": 7}'), /\.echo\[0\]\.result must be a string, or an MCP result/],
    [rule('{"result": {"isError": true}}'), /\.echo\[0\]\.result must be a string, or an MCP result/],
    [rule('{"result": {"city": "Oslo"}}'), /\.echo\[0\]\.result\.city is unknown: expected content, structuredContent/],
    [rule('{"result": {"content": "x"}}'), /\.echo\[0\]\.result\.content must be a list of content blocks$/],
    [rule('{"result": {"content": [{"text": "x"}]}}'), /\.result\.content\[0\] must be a content block of MCP/],
    [rule('{"result": {"content": [], "isError": 1}}'), /\.result\.isError must be true or false$/],
    [rule('{"result": {"content": [], "_meta": 1}}'), /\.result\._meta must be an object$/],
    [rule('{"delayMs": -1}'), /\.echo\[0\]\.delayMs must be a whole number from 0 to 60000$/],
    [rule('{"times": 0}'), /\.echo\[0\]\.times must be a whole number from 1 to 1000000$/],
    [rule('{"times": 1e999}'), /\.echo\[0\]\.times must be a whole number/],
    [rule('{"times": null}'), /\.echo\[0\]\.times must be a whole number/],
    [rule(`{"result": ${deep}}`), /^mock\.scenario: \$ is not JSON: it has more than 100 nested levels$/],
  ])('%s is refused with the path of the error', (scenario, message) => {
    const read = () => parseFixture(scenario);
    expect(read).toThrow(InvalidInputError);
    expect(read).toThrow(message);
  });

  it('may name only tools of the server', () => {
    const fixture = parseFixture('{"tools": {"echo": [], "ecko": []}}');
    expect(() => requireTools(fixture ?? new Map(), tracker.tools)).toThrow(
      'mock.scenario: $.tools.ecko names a tool the server does not have',
    );
    expect(() => requireTools(fixture ?? new Map(), [{ name: 'echo' }, { name: 'ecko' }])).not.toThrow();
  });
});
