/**
 * Locates values in JSON text without rebuilding it, so that forwarded messages stay byte for byte the same: numbers
 * beyond 2^53, key order, escapes and unknown fields survive. Every function expects text accepted by `JSON.parse`, and
 * throws a TypeError when the expected bracket or quote is missing, since scanning would not stop.
 */

/** Position of a value: the start is inclusive, the end exclusive. */
export type Span = readonly [start: number, end: number];

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;

function skipBlank(text: string, at: number): number {
  while (text.charCodeAt(at) <= 0x20) at += 1;
  return at;
}

function requireAt(text: string, at: number, opening: string): void {
  if (text[at] !== opening) throw new TypeError(`expected ${opening} at ${at}`);
}

function skipString(text: string, at: number): number {
  let end = text.indexOf('"', at + 1);
  while (text.charCodeAt(end - 1) === BACKSLASH) {
    let backslashes = 1;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) break;
    end = text.indexOf('"', end + 1);
  }
  return end + 1;
}

function skipNested(text: string, at: number): number {
  let depth = 0;
  for (let i = at; ; i += 1) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) i = skipString(text, i) - 1;
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1;
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth -= 1;
      if (depth === 0) return i + 1;
    }
  }
}

function skipValue(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code === QUOTE) return skipString(text, at);
  if (code === OPEN_BRACE || code === OPEN_BRACKET) return skipNested(text, at);
  let end = at;
  for (let next = code; next > 0x20 && next !== COMMA && next !== CLOSE_BRACE && next !== CLOSE_BRACKET;) {
    end += 1;
    next = text.charCodeAt(end);
  }
  return end;
}

/** Returns the position of each member. The last of repeated members is used, as in `JSON.parse`. */
export function members(text: string, at = 0): Map<string, Span> {
  return read(text, at, false) as Map<string, Span>;
}

/**
 * Returns the {@link members} of an object, or a name that occurs twice in it: two parsers could read different
 * messages.
 */
export function uniqueMembers(text: string): Map<string, Span> | string {
  return read(text, 0, true);
}

function read(text: string, at: number, isUnique: boolean): Map<string, Span> | string {
  const spans = new Map<string, Span>();
  const start = skipBlank(text, at);
  requireAt(text, start, '{');
  let i = skipBlank(text, start + 1);
  while (text.charCodeAt(i) !== CLOSE_BRACE) {
    const nameEnd = skipString(text, i);
    const raw = text.slice(i + 1, nameEnd - 1);
    const name = raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
    const valueAt = skipBlank(text, skipBlank(text, nameEnd) + 1);
    const end = skipValue(text, valueAt);
    if (isUnique && spans.has(name)) return name;
    spans.set(name, [valueAt, end]);
    i = skipBlank(text, end);
    if (text.charCodeAt(i) === COMMA) i = skipBlank(text, i + 1);
  }
  return spans;
}

export function elements(text: string, at = 0): Span[] {
  const spans: Span[] = [];
  const start = skipBlank(text, at);
  requireAt(text, start, '[');
  let i = skipBlank(text, start + 1);
  while (text.charCodeAt(i) !== CLOSE_BRACKET) {
    const end = skipValue(text, i);
    spans.push([i, end]);
    i = skipBlank(text, end);
    if (text.charCodeAt(i) === COMMA) i = skipBlank(text, i + 1);
  }
  return spans;
}

export function slice(text: string, [start, end]: Span): string {
  return text.slice(start, end);
}

export function splice(text: string, [start, end]: Span, replacement: string): string {
  return text.slice(0, start) + replacement + text.slice(end);
}
