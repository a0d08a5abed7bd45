import { describe, expect } from '@jest/globals';
import fc from 'fast-check';
import { matchTool } from '../../src/mcp/client/tools/tool-catalog.js';
import type { ListItem } from '../../src/mcp/protocol/list-pages.js';
import { verifies } from '../support/verifies.js';
import { randomRuns } from '../support/random-runs.js';

/** Few letters and many separators, so that names and paths often meet. */
const word = fc.string({ unit: fc.constantFrom('a', 'b', 'B', '.', '/', '%', ' ', '_'), maxLength: 6 });
const names = fc.uniqueArray(word, { maxLength: 8 });
const segment = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '-', 'ü'), minLength: 1, maxLength: 3 });

const toTools = (from: string[]): ListItem[] => from.map((name) => ({ name, text: JSON.stringify({ name }) }));

/** The same in other words: names and paths are lists of segments. */
function naive(all: string[], path: string): { tool: string } | { category: string[] } | null {
  if (all.includes(path)) return { tool: path };
  const parts = (text: string) => text.split(/[./]/);
  const same = (a: string[], b: string[]) => a.length === b.length && a.every((part, i) => part === b[i]);
  const pathParts = parts(path);
  for (const name of all) if (same(parts(name), pathParts)) return { tool: name };
  const under = all.filter(
    (name) => parts(name).length > pathParts.length && same(parts(name).slice(0, pathParts.length), pathParts),
  );
  return under.length > 0 ? { category: under } : null;
}

function match(all: string[], path: string): ReturnType<typeof naive> {
  const match = matchTool(toTools(all), path);
  if (!match) return null;
  return 'tool' in match ? { tool: match.tool.name } : { category: match.category.map(({ name }) => name) };
}

describe('a tool path', () => {
  verifies(
    [
      'tools:get:one',
      'tools:get:category',
      'tools:get:exact-wins',
      'tools:get:category-boundary',
      'tools:get:not-found',
    ],
    'has the meaning of its list of segments',
    () => {
      fc.assert(
        fc.property(names, word, (all, path) => {
          expect(match(all, path)).toEqual(naive(all, path));
          for (const name of all) expect(match(all, name)).toEqual({ tool: name });
        }),
        { numRuns: randomRuns(3_000) },
      );
    },
  );

  verifies(
    ['tools:get:path-spellings', 'tools:get:slash-path'],
    'finds a dotted name however its dots are spelled',
    () => {
      fc.assert(
        fc.property(
          fc.array(segment, { minLength: 1, maxLength: 5 }),
          fc.infiniteStream(fc.boolean()),
          names,
          (segments, slashes, others) => {
            const name = segments.join('.');
            const path = segments.reduce((before, next) => `${before}${slashes.next().value ? '/' : '.'}${next}`);
            const rest = others.filter((other) => other.replaceAll('/', '.') !== name);
            expect(match([...rest, name], path)).toEqual({ tool: name });
          },
        ),
        { numRuns: randomRuns(2_000) },
      );
    },
  );

  verifies('tools:get:category', 'lists every tool below a prefix of its segments, and only those', () => {
    const tree = fc.uniqueArray(fc.array(segment, { minLength: 2, maxLength: 4 }), {
      selector: (segments) => segments.join('.'),
      minLength: 1,
      maxLength: 8,
    });
    fc.assert(
      fc.property(tree, (paths) => {
        const all = paths.map((segments) => segments.join('.'));
        const [first] = paths[0];
        const below = all.filter((name) => name.startsWith(`${first}.`));
        expect(match(all, first)).toEqual({ category: below });
      }),
      { numRuns: randomRuns(1_000) },
    );
  });
});
