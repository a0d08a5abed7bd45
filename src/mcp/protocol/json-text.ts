/**
 * Finding values in JSON text without rebuilding it, so that what passes through Slipway passes byte for byte: numbers
 * beyond 2^53, key order, escapes and unknown fields survive. Every function expects text that `JSON.parse` accepted, and
 * throws a TypeError where something else stands than it was asked for: searching on would never end.
 */

/** Where a value stands in its text: from the first index up to, not including, the second. */
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

/** The index behind the string that starts at `at`. */
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

/** The index behind the object or array that starts at `at`. */
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

/** A member name occurs twice in one object, so two readers could see two different messages. */
export class DuplicateMemberError extends Error {}

/**
 * The members of the object that starts at or after `at`, with the places of their values. Of a repeated member the
 * last one counts, as for `JSON.parse`, unless `refuseDuplicates` is set.
 *
 * @throws DuplicateMemberError
 */
export function members(text: string, at = 0, refuseDuplicates = false): Map<string, Span> {
  const found = new Map<string, Span>();
  const start = skipBlank(text, at);
  requireAt(text, start, '{');
  let i = skipBlank(text, start + 1);
  while (text.charCodeAt(i) !== CLOSE_BRACE) {
    const nameEnd = skipString(text, i);
    const raw = text.slice(i + 1, nameEnd - 1);
    const name = raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
    const valueAt = skipBlank(text, skipBlank(text, nameEnd) + 1);
    const end = skipValue(text, valueAt);
    if (refuseDuplicates && found.has(name)) throw new DuplicateMemberError(name);
    found.set(name, [valueAt, end]);
    i = skipBlank(text, end);
    if (text.charCodeAt(i) === COMMA) i = skipBlank(text, i + 1);
  }
  return found;
}

/** The places of the elements of the array that starts at or after `at`. */
export function elements(text: string, at = 0): Span[] {
  const found: Span[] = [];
  const start = skipBlank(text, at);
  requireAt(text, start, '[');
  let i = skipBlank(text, start + 1);
  while (text.charCodeAt(i) !== CLOSE_BRACKET) {
    const end = skipValue(text, i);
    found.push([i, end]);
    i = skipBlank(text, end);
    if (text.charCodeAt(i) === COMMA) i = skipBlank(text, i + 1);
  }
  return found;
}

/** The text of a value. */
export function slice(text: string, [start, end]: Span): string {
  return text.slice(start, end);
}

/** `text` with the value at `span` replaced. */
export function splice(text: string, [start, end]: Span, replacement: string): string {
  return text.slice(0, start) + replacement + text.slice(end);
}
