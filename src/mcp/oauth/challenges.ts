/** One challenge of a `WWW-Authenticate` header (RFC 9110 section 11.6.1). */
export interface Challenge {
  /** Lower case: schemes are compared without regard to case. */
  scheme: string;
  /** Names in lower case, values unescaped; of a name that is given twice, the first. */
  params: Record<string, string>;
}

/** What an MCP server says about the authorization it wants (RFC 6750 section 3, RFC 9728 section 5.1). */
export interface BearerChallenge {
  /** Where its protected resource metadata is, if it says so. */
  resourceMetadata: string | null;
  /** The scopes this very request needs, if it says so. */
  scope: string | null;
  /** `invalid_token`, `insufficient_scope`, …; null when no credentials were sent. */
  error: string | null;
}

/** More than that of challenge text is not read. */
export const CHALLENGE_CHARS_MAX = 8 * 1024;

const TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/y;
const TOKEN68 = /[A-Za-z0-9\-._~+/]+=*/y;
const SPACE = /[ \t]*/y;

/**
 * Every challenge in one or many `WWW-Authenticate` header values. A header may hold several challenges, each with several
 * parameters, and both lists are separated by commas; what follows a comma is a parameter exactly when a `=` comes after
 * its name. A part that cannot be read ends that header; what was read before it counts.
 */
export function parseChallenges(headers: readonly string[]): Challenge[] {
  return headers.flatMap((header) => new ChallengeReader(header.slice(0, CHALLENGE_CHARS_MAX)).read());
}

/** The first `Bearer` challenge; null when there is none. */
export function bearerChallenge(headers: readonly string[]): BearerChallenge | null {
  const found = parseChallenges(headers).find(({ scheme }) => scheme === 'bearer');
  if (!found) return null;
  const { resource_metadata: resourceMetadata = null, scope = null, error = null } = found.params;
  return { resourceMetadata, scope, error };
}

/** The header as HTTP libraries give it, as a list and bounded: an upstream chooses how much it says. */
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

  /** False when the rest cannot be read. */
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

  /** Credentials without a name, as Negotiate has them; a parameter looks alike until its value comes. */
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
    // Servers in the field send URLs and scopes without quotes, which no token may hold.
    const loose = value === null || this.isInsideValue ? (value ?? '') + this.takeLoose() : value;
    return loose === '' && value === null ? null : { name: name.toLowerCase(), value: loose };
  }

  /** Right behind a token stands what cannot follow one. */
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
