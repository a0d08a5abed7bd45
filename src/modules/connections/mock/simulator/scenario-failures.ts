import { plainName, singular, wordsOf } from './names.js';
import { cardinal, ordinal, tokensOf } from './scenario-text.js';
import type { ServerModel, ToolModel } from './server-model.js';
import { deedOf, type Deed } from './tool-meaning.js';
import { countIn, type World } from './world.js';

const FAILS = /\b(?:fails?|failing|failed|errors? out|is broken|is down|times? out|throws?|is rate limited)\b/i;

/** What is said when a scenario names no words of its own. */
const DEFAULT_MESSAGE = 'The simulated server failed, as its scenario says.';

/** Which calls of those it is about a rule fails. `after`: all behind that many. */
type Turns =
  { kind: 'all' } | { kind: 'nth'; numbers: number[] } | { kind: 'every' | 'after' | 'first'; count: number };

/** Calls that a scenario makes fail. */
export interface FailureRule {
  /** One tool; null: any. */
  tool: string | null;
  /** Tools that do this; null: any. */
  deed: Deed | null;
  /** Tools about these things; null: any. */
  kind: string | null;
  turns: Turns;
  message: string;
}

/** The rule a clause states; null when it is about something else. */
export function failureOf(clause: string, model: ServerModel): FailureRule | null {
  const verb = FAILS.exec(clause.replace(/"[^"]*"|“[^”]*”/g, (quote) => ' '.repeat(quote.length)));
  if (!verb) return null;
  const subject = clause.slice(0, verb.index);
  const rest = clause.slice(verb.index + verb[0].length);
  const words = tokensOf(subject).map(({ text }) => text);
  const tool = toolNamed(words, model);
  return {
    tool,
    deed: tool === null ? firstOf(words, deedOf) : null,
    kind: tool === null ? kindNamed(words, model) : null,
    turns: turnsOf(words),
    message: messageOf(rest, verb[0]),
  };
}

/** What a call fails with, if a rule is about it. @param seq its place among all calls */
export function failureFor(
  rules: readonly FailureRule[],
  tool: ToolModel,
  { seq, world }: { seq: number; world: World },
): string | null {
  const rule = rules.find((one) => isAbout(one, tool) && isTurn(one, tool, seq, world));
  return rule?.message ?? null;
}

function isAbout(rule: FailureRule, { name, meaning }: ToolModel): boolean {
  if (rule.tool !== null) return rule.tool === name;
  if (rule.deed !== null && rule.deed !== meaning?.deed && !(rule.deed === 'list' && meaning?.deed === 'search')) {
    return false;
  }
  return rule.kind === null || rule.kind === meaning?.kind;
}

function isTurn({ turns, tool }: FailureRule, { name }: ToolModel, seq: number, world: World): boolean {
  const turn = tool === null ? seq : countIn(world.calls, name) + 1;
  if (turns.kind === 'nth') return turns.numbers.includes(turn);
  if (turns.kind === 'every') return turn % turns.count === 0;
  if (turns.kind === 'after') return turn > turns.count;
  return turns.kind === 'all' || turn <= turns.count;
}

function toolNamed(words: string[], model: ServerModel): string | null {
  const names = [...model.tools.keys()];
  const exact = words.find((word) => model.tools.has(word));
  if (exact !== undefined) return exact;
  // A spelling of its own must look like a name: the word "search" alone is about searching.
  const spelled = words.filter((word) => /[a-z0-9][_\-./][a-z0-9]|[a-z][A-Z]/.test(word)).map(plainName);
  return names.find((name) => spelled.includes(plainName(name))) ?? null;
}

function kindNamed(words: string[], model: ServerModel): string | null {
  const kinds = [...model.tools.values()].flatMap(({ meaning }) => (meaning ? [meaning.kind] : []));
  const plain = words.flatMap(wordsOf).map(singular);
  return kinds.find((kind) => ` ${plain.join(' ')} `.includes(` ${kind.replaceAll('_', ' ')} `)) ?? null;
}

function turnsOf(words: string[]): Turns {
  const lower = words.map((word) => word.toLowerCase());
  const numbers = words.flatMap((word) => ordinal(word) ?? []);
  if (lower.includes('after')) {
    const count = numbers[0] ?? firstOf(words.slice(lower.indexOf('after') + 1), cardinal);
    if (count !== null) return { kind: 'after', count };
  }
  const every = lower.indexOf('every') === -1 ? lower.indexOf('each') : lower.indexOf('every');
  if (every >= 0) {
    const count = ordinal(words[every + 1] ?? '') ?? (lower[every + 1] === 'other' ? 2 : null);
    return count === null || count === 0 ? { kind: 'all' } : { kind: 'every', count };
  }
  const first = lower.indexOf('first');
  const firstCount = first >= 0 ? cardinal(words[first + 1] ?? '') : null;
  if (firstCount !== null) return { kind: 'first', count: firstCount };
  const calls = lower.findIndex((word) => /^(call|calls|attempt|attempts|request|requests)$/.test(word));
  const counted = calls >= 0 ? lower.slice(calls + 1).flatMap((word) => (/^\d+$/.test(word) ? Number(word) : [])) : [];
  const all = [...numbers, ...counted];
  return all.length > 0 ? { kind: 'nth', numbers: all } : { kind: 'all' };
}

function messageOf(rest: string, verb: string): string {
  const quoted = tokensOf(rest).find(({ isQuoted }) => isQuoted);
  if (quoted) return quoted.text;
  const said = /^\s*(?:with|as|because of|because|saying|:)\s+(?:an?\s+|the\s+)?(?:error\s+|message\s+)?(.+)$/i.exec(
    rest,
  );
  if (said?.[1]) return said[1].trim();
  return /time/i.test(verb) ? 'The request timed out.' : /rate/i.test(verb) ? 'rate limited' : DEFAULT_MESSAGE;
}

function firstOf<T>(words: string[], find: (word: string) => T | null): T | null {
  for (const word of words) {
    const found = find(word.toLowerCase());
    if (found !== null) return found;
  }
  return null;
}
