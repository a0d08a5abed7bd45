/**
 * Regular expressions in JSON Schemas of tenants, matched in linear time by RE2. JavaScript's engine takes exponential
 * time for some patterns, and nothing else runs meanwhile.
 *
 * Rejected, and then not checked: look-around, back-references, repeats above 1,000, patterns longer than 2,000
 * characters, and more than 50 patterns or 64,000 instructions in a schema. A string above 64 K characters is not
 * matched and accepted. `\s` means only ASCII white space. Nothing is thrown: a rejected pattern has a reason
 * (`refusal`) for the publisher.
 */
import { growingLru } from '../limits/growing-lru.js';
import type * as Re2 from 're2js';
import { lazyRequire } from '../lazy-require.js';
import { isObject, type JsonObject } from '../text/json.js';
import { SCHEMA_MAPS } from './references.js';

const re2 = lazyRequire<typeof Re2>('re2js');

const PATTERNS_MAX = 50;

/**
 * Length times counted repeats, of all patterns of one schema: roughly their instructions, of which 100,000 compile in
 * 1 s.
 */
const SIZE_MAX = 64_000;

/** Maximum length of a pattern; longer ones take more than 0.1 s to compile. */
const PATTERN_CHARS_MAX = 2_000;

/** Maximum counted repeat that RE2 compiles. */
const REPEATS_MAX = 1_000;

const TEXT_CHARS_MAX = 64 * 1024;

/** Instructions times characters of one match, about 40 ms at worst; a longer string is not matched. */
const STEPS_MAX = 4_000_000;

const CACHED_MAX = 2_000;

/** Keywords that hold values, not schemas: a `$ref` or `pattern` inside them is data. */
export const DATA_KEYWORDS: ReadonlySet<string> = new Set(['default', 'const', 'enum', 'examples', 'example']);

const PARTS = /\\(?:[pP]\{[^}]*\}|[\s\S])|\[|\]|\(\?(?:<?[=!])?|\{(\d+)(?:,(\d*))?\}/g;

export interface FoundPattern {
  pattern: string;
  /** Location of the pattern: names from the root, joined by dots. */
  place: string;
  /** Reason why the pattern is not used, such as `look-around "(?="`; null for a used one. */
  refusal: string | null;
  remove: () => void;
}

export interface LinearPattern {
  /** Returns true for a match, and for a string that is too long to match. */
  test: (text: string) => boolean;
  toString: () => string;
}

/** Compiled properties, each compiled once. */
const properties = growingLru<boolean>(CACHED_MAX);

/** Matches every string when RE2 rejects the expression. */
export function linearPattern(pattern: string): LinearPattern {
  return { test: matcherOf(pattern) ?? (() => true), toString: () => JSON.stringify(pattern) };
}

export function isLinearPattern(pattern: string): boolean {
  return matcherOf(pattern) !== null;
}

function matcherOf(pattern: string): ((text: string) => boolean) | null {
  if (refusedConstruct(pattern) !== null) return null;
  try {
    const { RE2JS } = re2();
    const expression = RE2JS.compile(RE2JS.translateRegExp(pattern));
    const charsMax = Math.min(TEXT_CHARS_MAX, STEPS_MAX / expression.programSize());
    return (text) => text.length > charsMax || expression.test(text);
  } catch {
    return null;
  }
}

/** Returns a construct that RE2 lacks or that makes the pattern too large; null without one. Does not compile the pattern. */
export function refusedConstruct(pattern: string): string | null {
  if (pattern.length > PATTERN_CHARS_MAX) return `more than ${PATTERN_CHARS_MAX} characters`;
  let isInClass = false;
  for (const [part, least, most] of pattern.matchAll(PARTS)) {
    if (/^\\[pP]\{/.test(part)) {
      if (!/^..\{\^?[A-Za-z]{1,2}\}$/.test(part) && !isCharacterClass(part)) return `the property "${part}"`;
    } else if (isInClass) {
      if (part === ']') isInClass = false;
      else if (part === '\\b') return 'the escape "[\\b]"';
    } else if (part === '[') isInClass = true;
    else if (/^\(\?<?[=!]$/.test(part)) return `look-around "${part}"`;
    else if (/^\\[1-9k]$/.test(part)) return `the back-reference "${part}"`;
    else if (least !== undefined && Math.max(Number(least), Number(most ?? 0)) > REPEATS_MAX) {
      return `the repeat "${part}", which is over ${REPEATS_MAX}`;
    }
  }
  return sizeOf(pattern) > SIZE_MAX
    ? `repeats of its ${pattern.length} characters that are over ${SIZE_MAX} in all`
    : null;
}

/** Returns true for a property such as `\p{Greek}` that RE2 knows. */
function isCharacterClass(part: string): boolean {
  const isClass = properties.get(part) ?? canCompile(part);
  properties.set(part, isClass);
  return isClass;
}

function canCompile(expression: string): boolean {
  try {
    return re2().RE2JS.compile(expression).programSize() > 0;
  } catch {
    return false;
  }
}

function sizeOf(pattern: string): number {
  const repeats = [...pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].map(([, least, most]) => Number(most || least));
  return (
    pattern.length *
    Math.max(
      1,
      repeats.reduce((sum, count) => sum + count, 0),
    )
  );
}

/**
 * Schemas are in the author's order; a path has the names from the root, joined by dots. Members with unknown names are
 * treated as schemas, since references can point to them.
 *
 * @param isData true for a keyword whose value is not a schema
 */
export function* schemasIn(
  schema: unknown,
  isData = (keyword: string): boolean => DATA_KEYWORDS.has(keyword),
): Generator<[schema: JsonObject, place: string]> {
  const stack: [value: unknown, place: string, isMap: boolean][] = [[schema, '', false]];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const [value, at, isMap] = next;
    if (typeof value !== 'object' || value === null) continue;
    const isSchema = isObject(value) && !isMap;
    if (isSchema) yield [value, at];
    // Reversed, so that the stack yields the author's order.
    for (const [name, part] of Object.entries(value).reverse()) {
      if (isSchema && isData(name)) continue;
      stack.push([part, at === '' ? name : `${at}.${name}`, isSchema && SCHEMA_MAPS.has(name)]);
    }
  }
}

/**
 * Reads `pattern` and `patternProperties`. More than 50 patterns, or patterns above the limit of their size, are
 * rejected.
 */
export function patternsOf(schema: unknown): FoundPattern[] {
  const patterns: FoundPattern[] = [];
  let size = 0;
  const add = (pattern: string, place: string, remove: () => void) => {
    size += sizeOf(pattern);
    const isSurplus = patterns.length >= PATTERNS_MAX || size > SIZE_MAX;
    const surplus = isSurplus ? `more than ${PATTERNS_MAX} patterns, or larger ones, in one schema` : null;
    patterns.push({ pattern, place, refusal: surplus ?? refusedConstruct(pattern), remove });
  };
  for (const [part, at] of schemasIn(schema)) {
    const placeOf = (keyword: string) => (at === '' ? keyword : `${at}.${keyword}`);
    if (typeof part.pattern === 'string') add(part.pattern, placeOf('pattern'), () => delete part.pattern);
    const { patternProperties } = part;
    if (!isObject(patternProperties)) continue;
    for (const pattern of Object.keys(patternProperties)) {
      add(pattern, placeOf('patternProperties'), () => {
        delete patternProperties[pattern];
        // Names that the pattern might match must not be treated as additional.
        patternProperties[''] = true;
      });
    }
  }
  return patterns;
}

export function withoutRefusedPatterns<T>(schema: T): T {
  if (!patternsOf(schema).some(({ refusal }) => refusal !== null)) return schema;
  const copy = structuredClone(schema);
  for (const { refusal, remove } of patternsOf(copy)) if (refusal !== null) remove();
  return copy;
}
