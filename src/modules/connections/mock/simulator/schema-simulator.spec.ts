import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { tracker, trackerTools } from '../../../../../test/support/tracker.js';
import { schemaCheck } from './schema-check.js';
import { SchemaSimulator } from './schema-simulator.js';
import type { FrozenServer, Item, ToolResult } from './simulator.js';
import type { World } from './world.js';
import { randomRuns } from '../../../../../test/support/random-runs.js';

const BY_DEFAULT = 'The simulated server failed, as its scenario says.';

/** A mock without a database: remembers its world, and how it got there. */
class Mock {
  private readonly simulator: SchemaSimulator;
  private world: World;
  private seq = 0;

  constructor(
    scenario: string | null = null,
    seed = 'acme/mock',
    server: FrozenServer = tracker,
    simulator?: SchemaSimulator,
  ) {
    this.simulator = simulator ?? new SchemaSimulator(server, { seed, scenario });
    this.world = this.simulator.firstWorld;
  }

  call(tool: string, given: Item = {}): ToolResult {
    this.seq += 1;
    const answer = this.simulator.answerer({ tool, arguments: given });
    const { result, world } = answer({ seq: this.seq, world: this.world });
    // As the database keeps it.
    this.world = JSON.parse(JSON.stringify(world)) as World;
    return result;
  }

  /** The structured answer, or the text read as JSON. */
  value<T = Item>(tool: string, given: Item = {}): T {
    const { structuredContent, content, isError } = this.call(tool, given);
    if (isError) throw new Error(String(content[0]?.text));
    return (structuredContent ?? JSON.parse(String(content[0]?.text))) as T;
  }

  error(tool: string, given: Item = {}): string | null {
    const { content, isError } = this.call(tool, given);
    return isError ? String(content[0]?.text) : null;
  }

  issues(given: Item = {}): Item[] {
    return this.value<{ issues: Item[] }>('list_issues', given).issues;
  }

  users(): Item[] {
    return this.value<{ users: Item[] }>('list_users').users;
  }
}

describe('memory', () => {
  it('finds what was created, by get, list and search, with the values it was given', () => {
    const mock = new Mock('empty');
    const { issue } = mock.value<{ issue: Item }>('create_issue', { title: 'Login fails', assignee: 'alice' });
    expect(issue).toMatchObject({ id: 1, title: 'Login fails', assignee: 'alice', state: expect.any(String) });
    expect(mock.value('get_issue', { issue_id: 1 })).toEqual(issue);
    expect(mock.issues()).toEqual([issue]);
    expect(mock.value('search_issues', { query: 'login' }).results).toEqual([issue]);
    expect(mock.value('search_issues', { query: 'logout' }).results).toEqual([]);
  });

  it('forgets what was deleted, and changes what was changed', () => {
    const mock = new Mock('3 open issues');
    expect(mock.value('update_issue', { issue_id: 2, title: 'New title' })).toMatchObject({
      id: 2,
      title: 'New title',
    });
    expect(mock.value('close_issue', { issue_id: 1 })).toMatchObject({ id: 1, state: 'closed' });
    expect(mock.value('delete_issue', { issue_id: 3 })).toEqual({ deleted: true, id: 3 });
    expect(mock.error('get_issue', { issue_id: 3 })).toBe('Issue 3 not found');
    expect(mock.error('update_issue', { issue_id: 3, title: 'x' })).toBe('Issue 3 not found');
    expect(mock.issues().map(({ id, state, title }) => [id, state, title])).toEqual([
      [1, 'closed', expect.any(String)],
      [2, 'open', 'New title'],
    ]);
    expect(mock.value<{ issue: Item }>('create_issue', { title: 'Next' }).issue.id).toBe(4);
  });

  it('filters lists by what is asked for, and gives as many as are asked for', () => {
    const mock = new Mock('5 issues, two are closed');
    mock.call('create_issue', { title: 'Mine', assignee: 'alice' });
    expect(mock.issues({ state: 'closed' })).toHaveLength(2);
    expect(mock.issues({ state: 'all' })).toHaveLength(6);
    expect(mock.issues({ assignee: 'alice', state: 'open' }).at(-1)).toMatchObject({ title: 'Mine' });
    const page = mock.value('list_issues', { limit: 4, page: 2 });
    expect(page).toMatchObject({ total: 6, issues: [{ id: 5 }, { id: 6, title: 'Mine' }] });
    expect(mock.value('list_issues', { limit: 2 })).toMatchObject({ total: 6, has_more: true });
  });

  it('keeps things whose tools say nothing of their answers, and shows them as JSON', () => {
    const mock = new Mock('no notes');
    const note = mock.value('create_note', { text: 'Buy milk' });
    expect(note).toEqual({ id: 'note-1', text: 'Buy milk' });
    expect(mock.value('get_note', { id: 'note-1' })).toEqual(note);
    expect(mock.value('list_notes')).toEqual([note]);
    expect(mock.error('get_note', { id: 'note-2' })).toBe('Note note-2 not found');
  });

  it('forgets the oldest beyond 2,000 things', () => {
    const mock = new Mock('empty');
    for (let made = 0; made < 2_001; made += 1) mock.call('create_issue', { title: 'x' });
    expect(mock.error('get_issue', { issue_id: 1 })).toBe('Issue 1 not found');
    expect(mock.value('get_issue', { issue_id: 2_001 })).toMatchObject({ id: 2_001 });
  });
});

describe('determinism', () => {
  const calls: [string, Item][] = [
    ['list_issues', {}],
    ['create_issue', { title: 'One' }],
    ['get_weather', { city: 'Lisbon' }],
    ['list_users', {}],
    ['echo', { message: 'Hello' }],
    ['get_issue', { issue_id: 4 }],
  ];
  const run = (scenario: string | null, seed?: string) =>
    calls.map(([tool, given]) => new Mock(scenario, seed).call(tool, given));

  it('gives the same calls the same answers, and others for another seed or scenario', () => {
    expect(run('3 issues')).toEqual(run('3 issues'));
    expect(run('3 issues')).not.toEqual(run('3 issues', 'acme/other'));
    expect(run('3 issues')).not.toEqual(run('4 issues'));
  });

  it('shows a thing alike wherever it is shown', () => {
    const mock = new Mock();
    for (const issue of mock.issues()) expect(mock.value('get_issue', { issue_id: issue.id })).toEqual(issue);
    for (const user of mock.users()) {
      expect(mock.value('get_user', { name: user.name }).user).toEqual(user);
    }
  });

  it('answers questions that keep nothing the same however often', () => {
    const mock = new Mock();
    const first = mock.value('get_weather', { city: 'Lisbon' });
    expect(first).toMatchObject({ city: 'Lisbon' });
    expect(mock.value('get_weather', { city: 'Lisbon' })).toEqual(first);
    expect(mock.call('echo', { message: 'Hello' }).content).toEqual([{ type: 'text', text: 'Hello' }]);
  });
});

describe('what a scenario promises', () => {
  it.each<[string, (mock: Mock) => unknown, unknown]>([
    ['3 open issues', (mock) => mock.issues().map(({ state }) => state), ['open', 'open', 'open']],
    ['three issues, two are closed', (mock) => mock.issues({ state: 'closed' }).length, 2],
    ['There are 4 issues. Two are closed, the others are open.', (mock) => mock.issues({ state: 'open' }).length, 2],
    ['5 issues that are closed', (mock) => mock.issues({ state: 'closed' }).length, 5],
    ['No issues', (mock) => mock.issues(), []],
    ['The tracker is empty', (mock) => [mock.issues(), mock.users()], [[], []]],
    ['Empty, but there is one closed issue', (mock) => [mock.issues().length, mock.users()], [1, []]],
    ['user Alice and user Bob', (mock) => mock.users().map(({ name }) => name), ['Alice', 'Bob']],
    ['users Alice, Bob and Carol', (mock) => mock.users().map(({ name }) => name), ['Alice', 'Bob', 'Carol']],
    ['two users called Ann and Ben', (mock) => mock.users().map(({ name }) => name), ['Ann', 'Ben']],
    ['an issue titled "Login. Fails"', (mock) => mock.issues().map(({ title }) => title), ['Login. Fails']],
    [
      'issue "A" and issue "B"; "A" is closed',
      (mock) => mock.issues({ state: 'closed' }),
      [expect.objectContaining({ title: 'A' })],
    ],
    [
      'issue 12 is closed',
      (mock) => mock.value('get_issue', { issue_id: 12 }),
      expect.objectContaining({ id: 12, state: 'closed' }),
    ],
    [
      'an issue called "X" with assignee alice',
      (mock) => mock.issues({ assignee: 'alice' }),
      [expect.objectContaining({ title: 'X' })],
    ],
    ['user Alice is admin', (mock) => mock.users(), [expect.objectContaining({ name: 'Alice', is_admin: true })]],
    [
      'a repository called acme/site',
      (mock) => mock.value<Item[]>('list_repos'),
      [expect.objectContaining({ name: 'acme/site' })],
    ],
    [
      'a repo acme/site',
      (mock) => mock.value('get_repo', { owner: 'acme', repo: 'site' }),
      expect.objectContaining({ name: 'acme/site' }),
    ],
    ['a repo acme/site', (mock) => mock.error('get_repo', { owner: 'acme', repo: 'shop' }), 'Repo shop not found'],
    ['Words nobody understands', (mock) => [mock.issues().length, mock.users().length], [3, 3]],
  ])('%s', (scenario, ask, expected) => {
    expect(ask(new Mock(scenario))).toEqual(expected);
  });

  it.each<[string, (string | null)[]]>([
    ["create_issue fails with 'rate limited'", ['rate limited', null, 'rate limited']],
    ['create_issue fails with "a. b"', ['a. b', null, 'a. b']],
    ['Creating issues fails with quota exceeded', ['quota exceeded', null, 'quota exceeded']],
    ['3 issues, but creating an issue fails', [BY_DEFAULT, null, BY_DEFAULT]],
    ['Everything fails with "down"', ['down', 'down', 'down']],
    ['fails with "down"', ['down', 'down', 'down']],
    ['The third call fails with "late"', [null, null, 'late']],
    ['Call 2 fails with "late"', [null, 'late', null]],
    ['The second call to create_issue fails with "again"', [null, null, 'again']],
    ['The first two calls fail with "warming up"', ['warming up', 'warming up', null]],
    ['Every second call fails with "flaky"', [null, 'flaky', null]],
    ['After 2 calls everything fails with "quota"', [null, null, 'quota']],
    ['listing issues times out', [null, 'The request timed out.', null]],
    ['deleting issues fails', [null, null, null]],
  ])('%s', (scenario, expected) => {
    const mock = new Mock(scenario);
    const create = () => mock.error('create_issue', { title: 'x' });
    expect([create(), mock.error('list_issues'), create()]).toEqual(expected);
  });

  it('leaves nothing behind where a call failed', () => {
    const mock = new Mock("Empty. The first call fails with 'no'");
    mock.call('create_issue', { title: 'lost' });
    expect(mock.issues()).toEqual([]);
  });
});

describe('arguments', () => {
  it.each<[Item, string]>([
    [{}, "must have required property 'title'"],
    [{ title: 7 }, 'title must be string'],
    [{ title: 'a', more: 1 }, 'must NOT have additional properties (more)'],
    [{ title: 'a', state: 'new' }, 'state must be equal to one of the allowed values (open, closed)'],
  ])('%j is refused as SDK servers do', (given, fault) => {
    const mock = new Mock('empty');
    expect(mock.error('create_issue', given)).toBe(
      `MCP error -32602: Input validation error: Invalid arguments for tool create_issue: ${fault}`,
    );
    expect(mock.issues()).toEqual([]);
  });
});

describe('every answer', () => {
  it('satisfies its output schema, whatever is called in whatever order', () => {
    const checks = new Map(
      trackerTools.map((tool) => [tool.name, 'outputSchema' in tool ? schemaCheck(tool.outputSchema) : null]),
    );
    const call = fc.oneof(
      fc
        .record({ title: fc.string({ minLength: 1 }), assignee: fc.string() })
        .map((given) => ['create_issue', given] as const),
      fc
        .integer({ min: 1, max: 8 })
        .chain((issue_id) =>
          fc
            .constantFrom('get_issue', 'close_issue', 'delete_issue', 'update_issue')
            .map((tool) => [tool, { issue_id }] as const),
        ),
      fc.string().map((query) => ['search_issues', { query }] as const),
      fc
        .constantFrom({}, { state: 'open' }, { limit: 1 }, { assignee: 'x' })
        .map((given) => ['list_issues', given] as const),
      fc.string().map((name) => ['get_user', { name }] as const),
      fc.constant(['list_users', {}] as const),
      fc.string().map((city) => ['get_weather', { city }] as const),
    );
    const scenario = fc.constantFrom(
      null,
      'empty',
      '3 open issues',
      'user Alice and issue "x" with state closed',
      'user "" is ',
    );
    const simulators = new Map<string | null, SchemaSimulator>();
    fc.assert(
      fc.property(fc.array(call, { maxLength: 12 }), scenario, (calls, text) => {
        const simulator = simulators.get(text) ?? new SchemaSimulator(tracker, { seed: 'a', scenario: text });
        simulators.set(text, simulator);
        const [one, other] = [new Mock(text, 'a', tracker, simulator), new Mock(text, 'a', tracker, simulator)];
        for (const [tool, given] of calls) {
          const result = one.call(tool, given);
          expect(other.call(tool, given)).toEqual(result);
          if (!result.isError) expect(checks.get(tool)?.(result.structuredContent)).toBeNull();
        }
      }),
      { numRuns: randomRuns(150) },
    );
  });

  it('is an error where the schema cannot be satisfied', () => {
    const tools = [
      {
        name: 'impossible',
        inputSchema: {},
        outputSchema: { type: 'object', required: ['a'], properties: { a: false } },
      },
    ];
    const mock = new Mock(null, 'a', {
      serverInfo: null,
      tools,
      resources: null,
      resourceTemplates: null,
      prompts: null,
    });
    expect(mock.error('impossible')).toMatch(/asks for something the simulator cannot make/);
  });

  it('comes from names every object has, too', () => {
    const tools = ['constructor', 'get_constructor', 'list_constructors', 'create___proto__', 'toString'].map(
      (name) => ({
        name,
        inputSchema: { type: 'object', properties: { id: { type: 'string' } } },
      }),
    );
    const server = { serverInfo: null, tools, resources: null, resourceTemplates: null, prompts: null };
    const mock = new Mock('two constructors', 'a', server);
    for (const { name } of tools)
      expect(mock.error(name, { id: 'x' })).toEqual(name === 'get_constructor' ? 'Constructor x not found' : null);
    expect(mock.value<Item[]>('list_constructors')).toHaveLength(2);
  });
});
