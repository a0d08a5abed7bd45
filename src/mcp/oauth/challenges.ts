/** One challenge of a `WWW-Authenticate` header (RFC 9110 section 11.6.1). */
export interface Challenge {
  /** Lower case, since schemes are case-insensitive. */
  scheme: string;
  /** Unescaped values by lower-case name; the first value of a repeated name. */
  params: Record<string, string>;
}

/** Authorization requirements of an MCP server (RFC 6750 section 3, RFC 9728 section 5.1). */
export interface BearerChallenge {
  /** URL of the protected resource metadata; null without one. */
  resourceMetadata: string | null;
  /** Scopes that this request requires; null if unspecified. */
  scope: string | null;
  /** `invalid_token`, `insufficient_scope`, …; null when no credentials were sent. */
  error: string | null;
}

/** Size limit of parsed challenge text. */
export const CHALLENGE_CHARS_MAX = 8 * 1024;

const TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/y;
const TOKEN68 = /[A-Za-z0-9\-._~+/]+=*/y;
const SPACE = /[ \t]*/y;

/**
 * Parses all challenges in one or more `WWW-Authenticate` header values. A header may contain several challenges with
 * several parameters, both separated by commas; text after a comma is a parameter exactly if a `=` follows its name. A
 * malformed part ends that header; the challenges before it count.
 */
export function parseChallenges(headers: readonly string[]): Challenge[] {
  return headers.flatMap((header) => new ChallengeReader(header.slice(0, CHALLENGE_CHARS_MAX)).read());
}

/** First `Bearer` challenge; null without one. */
export function bearerChallenge(headers: readonly string[]): BearerChallenge | null {
  const found = parseChallenges(headers).find(({ scheme }) => scheme === 'bearer');
  if (!found) return null;
  const { resource_metadata: resourceMetadata = null, scope = null, error = null } = found.params;
  return { resourceMetadata, scope, error };
}

/** The header as a list, limited in size because the upstream controls it. */
export function challengeHeaders(header: string | string[] | undefined): string[] {
  let left = CHALLENGE_CHARS_MAX;
  return ([] as string[]).concat(header ?? []).flatMap((value) => {
    const part = value.slice(0, left);
    left -= part.length;
    return part === '' ? [] : [part];
  });
}

class ChallengeReader {
  private at = 0;
  private readonly found: Challenge[] = [];

  constructor(private readonly text: string) {}

  read(): Challenge[] {
    for (;;) {
      this.skipSeparators();
      const scheme = this.take(TOKEN);
      if (scheme === null) return this.found;
      const params: Record<string, string> = {};
      this.found.push({ scheme: scheme.toLowerCase(), params });
      if (!this.readParams(params)) return this.found;
    }
  }

  /** False when the rest is malformed. */
  private readParams(params: Record<string, string>): boolean {
    const spaces = this.take(SPACE) ?? '';
    if (this.isAtEnd || this.text[this.at] === ',') return true;
    if (spaces === '') return false;
    if (this.takeToken68()) return true;
    for (;;) {
      const start = this.at;
      const param = this.takeParam();
      if (param === null) {
        this.at = start;
        return this.text[start] !== '"' && Object.keys(params).length > 0;
      }
      if (!Object.hasOwn(params, param.name)) params[param.name] = param.value;
      const end = this.at;
      this.take(SPACE);
      if (this.isAtEnd) return true;
      if (this.text[this.at] !== ',') return false;
      this.skipSeparators();
      if (!this.isParamNext()) {
        this.at = end;
        return true;
      }
    }
  }

  /**
   * Reads credentials without a name (token68), as Negotiate has them; distinguishable from a parameter only by the
   * text after it.
   */
  private takeToken68(): boolean {
    const start = this.at;
    if (this.take(TOKEN68) !== null) {
      this.take(SPACE);
      if (this.isAtEnd || this.text[this.at] === ',') return true;
    }
    this.at = start;
    return false;
  }

  private isParamNext(): boolean {
    const start = this.at;
    const isParam = this.take(TOKEN) !== null && this.take(SPACE) !== null && this.text[this.at] === '=';
    this.at = start;
    return isParam;
  }

  private takeParam(): { name: string; value: string } | null {
    const name = this.take(TOKEN);
    if (name === null) return null;
    this.take(SPACE);
    if (this.text[this.at] !== '=') return null;
    this.at += 1;
    this.take(SPACE);
    const value = this.text[this.at] === '"' ? this.takeQuoted() : this.take(TOKEN);
    // Some servers send URLs and scopes without quotes although a token may not contain them.
    const loose = value === null || this.isInsideValue ? (value ?? '') + this.takeLoose() : value;
    return loose === '' && value === null ? null : { name: name.toLowerCase(), value: loose };
  }

  /** True when a token is followed by a character that may not follow one. */
  private get isInsideValue(): boolean {
    return !this.isAtEnd && !/[, \t]/.test(this.text[this.at] ?? '') && this.text[this.at - 1] !== '"';
  }

  private takeLoose(): string {
    return this.take(/[^\s,"]*/y) ?? '';
  }

  private takeQuoted(): string | null {
    let value = '';
    for (let at = this.at + 1; at < this.text.length; at += 1) {
      const char = this.text[at];
      if (char === '"') {
        this.at = at + 1;
        return value;
      }
      if (char === '\\') at += 1;
      value += this.text[at] ?? '';
    }
    return null;
  }

  private skipSeparators(): void {
    this.take(/[ \t,]*/y);
  }

  private take(pattern: RegExp): string | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    if (found === undefined) return null;
    this.at += found.length;
    return found;
  }

  private get isAtEnd(): boolean {
    return this.at >= this.text.length;
  }
}
