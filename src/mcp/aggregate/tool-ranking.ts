import { setImmediate } from 'node:timers/promises';
import type { ListItem } from '../protocol/list-pages.js';

const NAME_WEIGHT = 3;
const TITLE_WEIGHT = 2;
const PARAMETER_WEIGHT = 1.5;
const DESCRIPTION_WEIGHT = 1;

/** Weight of a word that only begins with the searched word, and minimum length of such a prefix. */
const BEGINNING_WEIGHT = 0.5;
const BEGINNING_CHARS_MIN = 3;

/** Standard BM25 parameters: saturation of repeated words, and normalization of long descriptions. */
const K1 = 1.2;
const B = 0.5;

const DESCRIPTION_CHARS_MAX = 1_000;
const QUERY_WORDS_MAX = 16;

/** Maximum uninterrupted indexing time: 10,000 long descriptions take seconds, which would block other callers. */
const TURN_MS = 10;

interface WordBag {
  words: string[];
  weights: Float32Array;
  size: number;
}

export interface RankedTool {
  name: string;
  tool: ListItem;
}

const bags = new WeakMap<ListItem, WordBag>();

/** Indexes tools for {@link rankTools} in slices of 10 ms; ranking is then fast. */
export async function readTools(tools: RankedTool[]): Promise<void> {
  let from = performance.now();
  for (const tool of tools) {
    bagOf(tool);
    if (performance.now() - from < TURN_MS) continue;
    await setImmediate();
    from = performance.now();
  }
}

/**
 * Ranks tools by BM25 over the words of names, titles, parameters and descriptions. Deterministic; ties are ordered by
 * name. A query without words returns all tools by name.
 */
export function rankTools<T extends RankedTool>(tools: T[], query: string): T[] {
  const queryWords = [...new Set(wordsOf(query))].slice(0, QUERY_WORDS_MAX);
  if (queryWords.length === 0) return [...tools].sort(byName);
  const indexed = tools.map((tool) => ({ tool, bag: bagOf(tool) }));
  const meanSize = indexed.reduce((sum, { bag }) => sum + bag.size, 0) / Math.max(1, indexed.length);
  const scores = new Float64Array(indexed.length);
  for (const word of queryWords) {
    const counts = indexed.map(({ bag }) => countIn(bag, word));
    const holders = counts.reduce((sum, count) => sum + (count > 0 ? 1 : 0), 0);
    const rarity = Math.log(1 + (indexed.length - holders + 0.5) / (holders + 0.5));
    counts.forEach((count, i) => {
      if (count === 0) return;
      const { size } = indexed[i].bag;
      scores[i] += (rarity * count * (K1 + 1)) / (count + K1 * (1 - B + (B * size) / meanSize));
    });
  }
  return indexed
    .map(({ tool }, i) => ({ tool, score: scores[i] }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || byName(a.tool, b.tool))
    .map(({ tool }) => tool);
}

function byName(a: RankedTool, b: RankedTool): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

function countIn({ words, weights }: WordBag, word: string): number {
  // Finds the lower bound: the first word not less than `word`.
  let [at, to] = [0, words.length];
  while (at < to) {
    const middle = (at + to) >> 1;
    if ((words[middle] ?? '') < word) at = middle + 1;
    else to = middle;
  }
  if (words[at] === word) return weights[at] ?? 0;
  if (word.length < BEGINNING_CHARS_MIN) return 0;
  let best = 0;
  for (; words[at]?.startsWith(word); at += 1) best = Math.max(best, weights[at] ?? 0);
  return best * BEGINNING_WEIGHT;
}

function bagOf({ name, tool }: RankedTool): WordBag {
  const cached = bags.get(tool);
  if (cached) return cached;
  const { title, description, inputSchema } = JSON.parse(tool.text) as Record<string, unknown>;
  const weightOf = new Map<string, number>();
  let size = 0;
  const add = (text: unknown, weight: number) => {
    if (typeof text !== 'string') return;
    for (const word of wordsOf(text.slice(0, DESCRIPTION_CHARS_MAX))) {
      weightOf.set(word, (weightOf.get(word) ?? 0) + weight);
      size += weight;
    }
  };
  add(name, NAME_WEIGHT);
  add(title, TITLE_WEIGHT);
  add(description, DESCRIPTION_WEIGHT);
  const properties = (inputSchema as { properties?: unknown } | null | undefined)?.properties;
  if (typeof properties === 'object' && properties !== null) {
    add(Object.keys(properties).join(' '), PARAMETER_WEIGHT);
  }
  const words = [...weightOf.keys()].sort();
  const bag = { words, weights: Float32Array.from(words, (word) => weightOf.get(word) ?? 0), size };
  bags.set(tool, bag);
  return bag;
}

/** Returns words of any script in lower case. Splits `createIssue` and `create_issue`, and reduces plurals to singulars. */
function wordsOf(text: string): string[] {
  const words = text
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu);
  return (words ?? []).map((word) =>
    word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word,
  );
}
