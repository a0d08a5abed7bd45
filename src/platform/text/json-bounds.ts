/**
 * Limits of JSON from tenants and upstreams: nested levels, members of objects, elements of arrays. Within them
 * `JSON.parse` and recursive functions need no more memory and stack than the text suggests; a megabyte of `[[[[` or of
 * `{"a":…` would.
 *
 * `JsonScanner` counts bytes as they arrive, without recursion and without building values, so that JSON is rejected
 * before it is complete. The counts are exact for valid JSON in UTF-8; `JSON.parse` rejects anything else.
 */

interface JsonBounds {
  depth: number;
  /** Members of all objects together. */
  members: number;
  /** Elements of all arrays together. */
  elements: number;
}

export const BOUNDS: JsonBounds = { depth: 100, members: 50_000, elements: 500_000 };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/**
 * Bytes of a string that are checked one by one before the native search starts, which pays off only in long strings.
 */
const SHORT_STRING_BYTES = 32;

export class JsonScanner {
  private depth = 0;
  private members = 0;
  private elements = 0;
  private isInString = false;
  /** The next byte follows a backslash in a string. */
  private isEscaped = false;
  /** An array was opened and its first element, if any, has not arrived. */
  private isFresh = false;
  /** Null before the first byte; false for text that is neither an object nor an array, and so exceeds nothing. */
  private isContainer: boolean | null = null;
  /** Kinds of the open containers, outermost first; true for an array. */
  private readonly isArray: boolean[] = [];

  constructor(private readonly bounds = BOUNDS) {}

  /** @returns the limit that the text exceeds, as a noun phrase; null while none is exceeded */
  push(bytes: Buffer): string | null {
    const { length } = bytes;
    const { bounds } = this;
    if (this.isContainer === false) return null;
    for (let i = this.isInString ? this.skipString(bytes, 0) : 0; i < length; i += 1) {
      const byte = bytes[i];
      if (byte <= 0x20) continue;
      if (this.isContainer === null) {
        // A byte order mark precedes some JSON.
        if (byte >= 0x80) continue;
        this.isContainer = byte === OPEN_BRACE || byte === OPEN_BRACKET;
        if (!this.isContainer) return null;
      }
      if (this.isFresh) {
        this.isFresh = false;
        if (byte !== CLOSE_BRACKET && ++this.elements > bounds.elements) return elementsExceeded(bounds);
      }
      switch (byte) {
        case QUOTE:
          i = this.skipString(bytes, i + 1) - 1;
          break;
        case COMMA:
          if (this.isArray[this.depth - 1] && ++this.elements > bounds.elements) return elementsExceeded(bounds);
          break;
        case COLON:
          if (++this.members > bounds.members) return `more than ${bounds.members} members of objects`;
          break;
        case OPEN_BRACE:
        case OPEN_BRACKET:
          this.isFresh = byte === OPEN_BRACKET;
          this.isArray[this.depth] = this.isFresh;
          if (++this.depth > bounds.depth) return `more than ${bounds.depth} nested levels`;
          break;
        case CLOSE_BRACE:
        case CLOSE_BRACKET:
          if (this.depth > 0) this.depth -= 1;
      }
    }
    return null;
  }

  /** @returns index after the closing quote, or the length when the string continues */
  private skipString(bytes: Buffer, from: number): number {
    const { length } = bytes;
    this.isInString = true;
    let i = this.isEscaped ? from + 1 : from;
    let searchAt = i + SHORT_STRING_BYTES;
    while (i < length) {
      if (i >= searchAt) {
        const quote = bytes.indexOf(QUOTE, i);
        const end = quote < 0 ? length : quote;
        // An odd run of backslashes escapes what follows it.
        let run = end;
        while (run > i && bytes[run - 1] === BACKSLASH) run -= 1;
        i = (end - run) % 2 === 0 ? end : end + 1;
        searchAt = i + SHORT_STRING_BYTES;
        continue;
      }
      const byte = bytes[i];
      if (byte === QUOTE) {
        this.isInString = this.isEscaped = false;
        return i + 1;
      }
      i += byte === BACKSLASH ? 2 : 1;
    }
    this.isEscaped = i > length;
    return length;
  }
}

function elementsExceeded({ elements }: JsonBounds): string {
  return `more than ${elements} elements of arrays`;
}

/** Returns the exceeded limit as a noun phrase; null if the text exceeds none. */
export function boundExceeded(json: string | Buffer): string | null {
  // Opening a level takes a byte, and so does closing it.
  if (json.length <= 2 * BOUNDS.depth) return null;
  return new JsonScanner().push(typeof json === 'string' ? Buffer.from(json) : json);
}

/** Parses JSON of a tenant or an upstream. @throws SyntaxError for invalid JSON, and above a limit */
export function parseBounded(text: string): unknown {
  const exceeded = boundExceeded(text);
  if (exceeded !== null) throw new SyntaxError(`it has ${exceeded}`);
  return JSON.parse(text);
}

/** Parses JSON; returns undefined for invalid JSON. */
export function jsonIn(text: string): unknown {
  try {
    return parseBounded(text);
  } catch {
    return undefined;
  }
}
