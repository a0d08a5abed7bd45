import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { randomRuns } from '../../../../../test/support/random-runs.js';
import { tracker, trackerTools } from '../../../../../test/support/special-upstreams/tracker.js';
import { schemaCheck } from '../../../../platform/json-schema/schema-check.js';
import type { JsonObject } from '../../../../platform/text/json.js';
import { SchemaSimulator } from './schema-simulator.js';
import type { FrozenServer, ToolResult } from './simulator.js';

/** The result of a call on a mock. */
async function call(tool: string, given: JsonObject = {}, server: FrozenServer = tracker): Promise<ToolResult> {
  const simulator = new SchemaSimulator(server, 'acme');
  const { result, uses } = (await simulator.prepare({ tool, arguments: given }))({});
  expect(uses).toBeUndefined();
  return result;
}

function serverOf(...tools: JsonObject[]): FrozenServer {
  return { serverInfo: null, tools, resources: null, resourceTemplates: null, prompts: null };
}

describe('a simulated result', () => {
  it('is equal for equal calls', async () => {
    expect(await call('list_users')).toEqual(await call('list_users'));
  });

  it('repeats arguments under equal names, as structured content and as text', async () => {
    const { structuredContent, content } = await call('get_weather', { city: 'Lisbon' });
    expect(structuredContent).toMatchObject({ city: 'Lisbon', temperature: expect.any(Number) });
    expect(content).toEqual([{ type: 'text', text: JSON.stringify(structuredContent) }]);
  });

  it.each<[string, JsonObject, string]>([
    ['echo', { message: 'Hello' }, 'Hello'],
    ['create_note', { text: 'Buy milk', pinned: true }, 'create_note (text: Buy milk, pinned: true)'],
    ['list_notes', {}, 'list_notes: done.'],
  ])('is text for %s, which declares no output schema', async (tool, given, text) => {
    expect(await call(tool, given)).toEqual({ content: [{ type: 'text', text }] });
  });

  it('matches the inferred schema of a tool that declares none', async () => {
    const inferred = { read: { type: 'object', required: ['lines'], properties: { lines: { type: 'integer' } } } };
    const server = { ...serverOf({ name: 'read', inputSchema: {} }), inferred };
    expect((await call('read', {}, server)).structuredContent).toEqual({ lines: expect.any(Number) });
  });

  it('matches the output schema of every call', async () => {
    const checks = new Map(
      trackerTools.map((tool) => [tool.name, 'outputSchema' in tool ? schemaCheck(tool.outputSchema) : null]),
    );
    const simulator = new SchemaSimulator(tracker, 'acme');
    const calls = fc.oneof(
      fc.record({ title: fc.string({ minLength: 1 }), assignee: fc.string() }).map((given) => ['create_issue', given]),
      fc
        .integer()
        .chain((issue_id) =>
          fc
            .constantFrom('get_issue', 'close_issue', 'delete_issue', 'update_issue')
            .map((tool) => [tool, { issue_id }]),
        ),
      fc.string().map((query) => ['search_issues', { query }]),
      fc.constantFrom({}, { state: 'open' }, { limit: 1 }, { assignee: 'x' }).map((given) => ['list_issues', given]),
      fc.string().map((name) => ['get_user', { name }]),
      fc.string().map((city) => ['get_weather', { city }]),
    ) as fc.Arbitrary<[string, JsonObject]>;
    await fc.assert(
      fc.asyncProperty(calls, async ([tool, given]) => {
        const { result } = (await simulator.prepare({ tool, arguments: given }))({});
        expect(result.isError).toBeUndefined();
        expect(checks.get(tool)?.(result.structuredContent)).toBeNull();
      }),
      { numRuns: randomRuns(200) },
    );
  });

  it('is an error where the schema cannot be satisfied', async () => {
    const outputSchema = { type: 'object', required: ['a'], properties: { a: false } };
    const server = serverOf({ name: 'impossible', inputSchema: {}, outputSchema });
    expect(await call('impossible', {}, server)).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/the simulator cannot create a value/) }],
    });
  });

  it.each(['constructor', '__proto__', 'toString'])('is returned for a tool named %s, too', async (name) => {
    expect(await call(name, {}, serverOf({ name, inputSchema: {} }))).toMatchObject({
      content: [{ text: `${name}: done.` }],
    });
  });
});

describe('arguments', () => {
  it.each<[JsonObject, string]>([
    [{}, "must have required property 'title'"],
    [{ title: 7 }, 'title must be string'],
    [{ title: 'a', more: 1 }, 'must NOT have additional properties (more)'],
    [{ title: 'a', state: 'new' }, 'state must be equal to one of the allowed values (open, closed)'],
  ])('%j are refused like SDK servers do', async (given, fault) => {
    const text = `MCP error -32602: Input validation error: Invalid arguments for tool create_issue: ${fault}`;
    expect(await call('create_issue', given)).toEqual({ isError: true, content: [{ type: 'text', text }] });
  });
});
