import { setImmediate } from 'node:timers/promises';
import type { ToolText } from '../client/tool-catalog.js';

/** What words count for, by where they stand. */
const NAME_WEIGHT = 3;
const TITLE_WEIGHT = 2;
const PARAMETER_WEIGHT = 1.5;
const DESCRIPTION_WEIGHT = 1;

/** A word that only begins like the one asked for counts half; shorter beginnings say too little. */
const BEGINNING_WEIGHT = 0.5;
const BEGINNING_CHARS_MIN = 3;

/** The usual numbers of BM25: how fast repeating a word stops helping, and how much long descriptions are held back. */
const K1 = 1.2;
const B = 0.5;

/** What is read of one tool, and of a question. */
const DESCRIPTION_CHARS_MAX = 1_000;
const PARAMETERS_MAX = 100;
const QUERY_WORDS_MAX = 16;

/** Reading may hold up other callers this long at a time: 10,000 long descriptions take seconds. */
const TURN_MS = 10;

/** The words of one tool in order, and what each weighs. */
interface WordBag {
  words: string[];
  weights: Float32Array;
  size: number;
}

/** A tool with the name it is found under. */
export interface RankedTool {
  name: string;
  tool: ToolText;
}

const bags = new WeakMap<ToolText, WordBag>();

/** Reads tools for {@link rankTools}, 10 ms at a time, so that ranking them takes little. */
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
 * Tools that fit a question, best first: BM25 over the words of names, titles, parameters and descriptions. The same
 * question to the same tools gives the same order; equal ones stand by name. A question without words gives all, by name.
 */
export function rankTools<T extends RankedTool>(tools: T[], query: string): T[] {
  const asked = [...new Set(wordsOf(query))].slice(0, QUERY_WORDS_MAX);
  if (asked.length === 0) return [...tools].sort(byName);
  const found = tools.map((tool) => ({ tool, bag: bagOf(tool) }));
  const meanSize = found.reduce((sum, { bag }) => sum + bag.size, 0) / Math.max(1, found.length);
  const scores = new Float64Array(found.length);
  for (const word of asked) {
    const counts = found.map(({ bag }) => countIn(bag, word));
    const holders = counts.reduce((sum, count) => sum + (count > 0 ? 1 : 0), 0);
    const rarity = Math.log(1 + (found.length - holders + 0.5) / (holders + 0.5));
    counts.forEach((count, i) => {
      if (count === 0) return;
      const { size } = found[i].bag;
      scores[i] += (rarity * count * (K1 + 1)) / (count + K1 * (1 - B + (B * size) / meanSize));
    });
  }
  return found
    .map(({ tool }, i) => ({ tool, score: scores[i] }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || byName(a.tool, b.tool))
    .map(({ tool }) => tool);
}

function byName(a: RankedTool, b: RankedTool): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

function countIn({ words, weights }: WordBag, word: string): number {
  // What begins like the word stands behind it, without a gap.
  let at = placeOf(words, word);
  if (words[at] === word) return weights[at] ?? 0;
  if (word.length < BEGINNING_CHARS_MIN) return 0;
  let best = 0;
  for (; words[at]?.startsWith(word); at += 1) best = Math.max(best, weights[at] ?? 0);
  return best * BEGINNING_WEIGHT;
}

/** The index of the first word that does not stand before `word`. */
function placeOf(words: string[], word: string): number {
  let [from, to] = [0, words.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((words[middle] ?? '') < word) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** Read once for each description of a tool; the catalog keeps the same objects until it lists anew. */
function bagOf({ name, tool }: RankedTool): WordBag {
  const known = bags.get(tool);
  if (known) return known;
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
    for (const parameter of Object.keys(properties).slice(0, PARAMETERS_MAX)) add(parameter, PARAMETER_WEIGHT);
  }
  const words = [...weightOf.keys()].sort();
  const bag = { words, weights: Float32Array.from(words, (word) => weightOf.get(word) ?? 0), size };
  bags.set(tool, bag);
  return bag;
}

/** Words of any script, lower-case; `createIssue` and `create_issue` are two each, and a plural is its singular. */
function wordsOf(text: string): string[] {
  const found = text
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu);
  return (found ?? []).map((word) =>
    word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word,
  );
}
