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

const TOKEN = /([!#$%&'*+\-.^_`|~0-9A-Za-z]+)/.source;

/**
 * A parameter, with the comma or end that must follow it. The value may be unquoted even if it is no token: some servers
 * send URLs and scopes that way.
 */
const PARAM = new RegExp(`[ \\t,]*${TOKEN}[ \\t]*=[ \\t]*(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s,"]+))[ \\t]*(,|$)?`, 'y');

/** A scheme, with credentials without a name (token68), as Negotiate has them. */
const SCHEME = new RegExp(`[ \\t,]*${TOKEN}(?:[ \\t]+[A-Za-z0-9\\-._~+/]+=*[ \\t]*(?=,|$)|(?=[ \\t,]|$))`, 'y');

/**
 * Parses all challenges in one or more `WWW-Authenticate` header values. A header may contain several challenges with
 * several parameters, both separated by commas; text after a comma is a parameter exactly if a `=` follows its name. A
 * malformed part ends that header; the challenges before it count.
 */
export function parseChallenges(headers: readonly string[]): Challenge[] {
  return headers.flatMap((header) => challengesIn(header.slice(0, CHALLENGE_CHARS_MAX)));
}

/** First `Bearer` challenge; null without one. */
export function bearerChallenge(headers: readonly string[]): BearerChallenge | null {
  const bearer = parseChallenges(headers).find(({ scheme }) => scheme === 'bearer');
  if (!bearer) return null;
  const { resource_metadata: resourceMetadata = null, scope = null, error = null } = bearer.params;
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

function challengesIn(header: string): Challenge[] {
  const challenges: Challenge[] = [];
  for (let at = 0; ;) {
    PARAM.lastIndex = SCHEME.lastIndex = at;
    const param = PARAM.exec(header);
    const part = param ?? SCHEME.exec(header);
    if (!part) return challenges;
    const [whole, name = '', quoted, loose = '', end] = part;
    at += whole.length;
    const current = challenges.at(-1);
    if (!param) challenges.push({ scheme: name.toLowerCase(), params: {} });
    else if (!current) return challenges;
    else {
      const key = name.toLowerCase();
      if (!Object.hasOwn(current.params, key)) current.params[key] = quoted?.replace(/\\(.)/g, '$1') ?? loose;
      if (end === undefined) return challenges;
    }
  }
}
