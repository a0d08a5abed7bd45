export interface Challenge {
  /** Scheme in lower case, since schemes are case-insensitive. */
  scheme: string;
  /** Parameters in their order: lower-case names and unescaped values; a name can be repeated. */
  params: [name: string, value: string][];
}

/**
 * Authorization requirements of an MCP server (RFC 6750 section 3, RFC 9728 section 5.1), from all its `Bearer` challenges:
 * a proxy may add one of its own.
 */
export interface BearerChallenge {
  /** URLs of protected resource metadata as sent, which may be relative. */
  resourceMetadata: string[];
  /** Scopes that this request requires; null if unspecified. */
  scope: string | null;
  /** `invalid_token`, `insufficient_scope`, …; null when no credentials were sent. */
  error: string | null;
}

export const CHALLENGE_CHARS_MAX = 8 * 1024;

const TOKEN = /([!#$%&'*+\-.^_`|~0-9A-Za-z]+)/.source;

/**
 * A parameter. The value may be unquoted even if it is not a token, or in single quotes: some servers send URLs and
 * scopes that way. Some separate parameters with a semicolon, or only with white space.
 */
const PARAM = new RegExp(
  `[ \\t,;]*${TOKEN}[ \\t]*=[ \\t]*(?:"((?:[^"\\\\]|\\\\.)*)"|'([^']*)'|([^\\s,;"]+))[ \\t]*`,
  'y',
);

/** A scheme, with credentials without a name (token68), as Negotiate has them. */
const SCHEME = new RegExp(`[ \\t,;]*${TOKEN}(?:[ \\t]+[A-Za-z0-9\\-._~+/]+=*[ \\t]*(?=,|$)|:?(?=[ \\t,;]|$))`, 'y');

/**
 * Parses challenges. A header can contain several of them with several parameters, both separated by commas; a name is that of a
 * parameter exactly if a `=` follows it. Parsing stops at a malformed part and keeps what precedes it.
 */
export function parseChallenges(headers: readonly string[]): Challenge[] {
  return headers.flatMap((header) => challengesIn(header.slice(0, CHALLENGE_CHARS_MAX)));
}

/** Returns the first scope and error of the `Bearer` challenges; null without any. */
export function bearerChallenge(headers: readonly string[]): BearerChallenge | null {
  const bearers = parseChallenges(headers).filter(({ scheme }) => scheme === 'bearer');
  if (bearers.length === 0) return null;
  const params = bearers.flatMap((bearer) => bearer.params);
  const valuesOf = (name: string) => params.filter(([key]) => key === name).map(([, value]) => value);
  const [[scope = null], [error = null]] = [valuesOf('scope'), valuesOf('error')];
  return { resourceMetadata: valuesOf('resource_metadata'), scope, error };
}

/** Returns the headers, limited in size because the upstream controls them. */
export function challengeHeaders(header: string | string[] | undefined): string[] {
  let charsLeft = CHALLENGE_CHARS_MAX;
  return ([] as string[]).concat(header ?? []).flatMap((value) => {
    const part = value.slice(0, charsLeft);
    charsLeft -= part.length;
    return part === '' ? [] : [part];
  });
}

function challengesIn(header: string): Challenge[] {
  const challenges: Challenge[] = [];
  for (let at = 0; ;) {
    PARAM.lastIndex = SCHEME.lastIndex = at;
    const param = PARAM.exec(header);
    const part = param ?? SCHEME.exec(header);
    if (!part) return challenges;
    const [match, name = '', quoted, single, loose = ''] = part;
    at += match.length;
    if (!param) challenges.push({ scheme: name.toLowerCase(), params: [] });
    else {
      // Servers that leave out the scheme mean `Bearer`.
      if (challenges.length === 0) challenges.push({ scheme: 'bearer', params: [] });
      challenges.at(-1)?.params.push([name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? single ?? loose]);
    }
  }
}
