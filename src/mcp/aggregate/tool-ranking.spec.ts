import { describe, expect, it } from '@jest/globals';
import { rankTools, readTools, type RankedTool } from './tool-ranking.js';

function tool(name: string, description = '', parameters: string[] = []): RankedTool {
  const properties = Object.fromEntries(parameters.map((one) => [one, { type: 'string' }]));
  return {
    name,
    tool: { name, text: JSON.stringify({ name, description, inputSchema: { type: 'object', properties } }) },
  };
}

const tools = [
  tool('github.create_issue', 'Open a new issue in a repository', ['title', 'body']),
  tool('github.listIssues', 'List issues of a repository'),
  tool('weather.forecast', 'Tells tomorrow’s weather of a city', ['city', 'days']),
  tool('mail.send', 'Send a message to a person', ['recipient', 'subject']),
  tool('wiki.search', 'Find pages; an issue may be mentioned here and there', []),
];
const found = (query: string) => rankTools(tools, query).map(({ name }) => name);

describe('rankTools', () => {
  it('ranks names above descriptions and rare words above common ones', () => {
    expect(found('create issue')[0]).toBe('github.create_issue');
    expect(found('issues')).toEqual(
      expect.arrayContaining(['github.create_issue', 'github.listIssues', 'wiki.search']),
    );
    expect(found('issues').at(-1)).toBe('wiki.search');
  });

  it('finds by parameter and by prefix, in any letter case and script', () => {
    expect(found('RECIPIENT')).toEqual(['mail.send']);
    expect(found('fore')).toEqual(['weather.forecast']);
    expect(rankTools([tool('a', 'Tagesübersicht anzeigen')], 'tagesübersicht')).toHaveLength(1);
    expect(rankTools([tool('a', '天気 を調べる')], '天気')).toHaveLength(1);
  });

  it('returns nothing without a match, and everything sorted by name without words', () => {
    expect(found('kubernetes')).toEqual([]);
    expect(found(' ,. ')).toEqual([...tools].map(({ name }) => name).sort());
  });

  it('returns the same order whatever the order of the tools', () => {
    const query = 'a repository of issues and messages for the city';
    const turned = rankTools([...tools].reverse(), query).map(({ name }) => name);
    expect(turned).toEqual(found(query));
  });

  it('accepts tools with unusual descriptions', () => {
    const odd = { name: 'odd', text: '{"name":"odd","description":5,"inputSchema":null,"title":["x"]}' };
    expect(rankTools([{ name: 'odd', tool: odd }], 'odd')).toHaveLength(1);
  });
});

describe('readTools', () => {
  it('yields to the event loop and does not change the result', async () => {
    const long = Array.from({ length: 2_000 }, (_, i) => tool(`t${i}`, `word${i} `.repeat(100)));
    let turns = 0;
    const timer = setInterval(() => (turns += 1), 0);
    await readTools([...long, ...tools]);
    clearInterval(timer);
    expect(turns).toBeGreaterThan(0);
    expect(found('create issue')[0]).toBe('github.create_issue');
  });
});
