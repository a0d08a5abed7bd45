/**
 * JSON of arguments and results for the logs, without what looks like a secret.
 *
 * Blanked are members whose name has a secret word (`apiKey`, `session id`, …), strings that are known kinds of keys
 * (JWT, private keys, keys of OpenAI, GitHub, AWS and others), values named in running text (`password: x`), and long
 * runs of mixed characters. The heuristic prefers to blank too much; a secret that looks like a word is not recognized.
 *
 * Work is limited for every value: content above 128 K characters or 32 levels is left out, a string above 64 K is
 * replaced entirely, because a truncated secret could not be recognized.
 */
import { isObject } from '../text/json.js';
import { redact } from './logger.js';

const BLANK = '[redacted]';

const DEPTH_MAX = 32;

/** A longer string is replaced entirely: a truncated secret could no longer be recognized. */
const TEXT_CHARS_MAX = 64 * 1024;

/** The rest of the value is cut. */
const CHARS_MAX = 128 * 1024;

/** Members with such a word in their name are blanked, whatever their value: `apiKey` is the words "api" and "key". */
const SECRET_WORDS = new RegExp(
  '(^| )(' +
    'passwords?|passwd|passphrase|passcode|pwd|secrets?|token|credentials?|authorization|auth|bearer|jwt|cookies?|otp|pin|' +
    'cvv|cvc|ssn|apikey|api keys?|(private|access|secret|signing|encryption|auth|client|service|account|shared) keys?|' +
    'session id|signature|connection string|card number' +
    ')( |$)',
);

const VALUES: readonly RegExp[] = [
  /-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?/g,
  // A JWT, signed or sealed. It must not start within a run of its characters: each of 16,000 `eyJ-` would scan all the
  // rest.
  /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,4}/g,
  // Keys with a known prefix: OpenAI and Stripe, GitHub, GitLab, Slack, AWS, Google, npm, Hugging Face, SendGrid, …
  /\b(?:sk|pk|rk|whsec)[-_][A-Za-z0-9_-]{16,}/g,
  /\b(?:gh[opsur]_|github_pat_|glpat-|xox[a-z]-|xapp-|npm_|hf_|dop_v1_|shp[a-z]{2}_|lin_api_|ntn_|sm_)[A-Za-z0-9_-]{10,}/g,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  /\bAIza[A-Za-z0-9_-]{30,}/g,
  /\bya29\.[A-Za-z0-9_-]{20,}/g,
  /\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}/g,
];

/** Named in running text or in a query: `password: x`, `&api_key=x`. */
const NAMED =
  /((?:password|passwd|passphrase|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|signature)["']?\s{0,4}[=:]\s{0,4}["']?)(?!\[redacted\])[^\s"'&,;]+/gi;

/** Long, and of all three kinds of characters: not a word, a UUID or a hexadecimal hash. */
const LONG_RUN = /[A-Za-z0-9+/_=-]{40,}/g;

/** Returns redacted JSON, cut to `bytesMax` bytes; null for undefined. */
export function redactedJson(value: unknown, bytesMax: number): string | null {
  if (value === undefined) return null;
  return truncate(JSON.stringify(new Redaction().redact(value, 0)), bytesMax);
}

/** Returns true for the name of a secret. Names have at most 200 characters. */
function isSecretName(name: string): boolean {
  if (name.length > 200) return false;
  const words = name.replace(/([a-z\d])([A-Z])/g, '$1 $2').replace(/[^A-Za-z\d]+/g, ' ');
  return SECRET_WORDS.test(words.trim().toLowerCase());
}

class Redaction {
  private charsLeft = CHARS_MAX;

  redact(value: unknown, depth: number): unknown {
    if (typeof value === 'string') return this.text(value);
    if (typeof value !== 'object' || value === null) return value;
    if (depth >= DEPTH_MAX) return '[nested too deep]';
    if (Array.isArray(value)) {
      const items: unknown[] = [];
      for (const item of value) {
        if (this.isSpent(2)) break;
        items.push(this.redact(item, depth + 1));
      }
      return items;
    }
    return isObject(value) ? this.object(value, depth) : null;
  }

  private object(members: Record<string, unknown>, depth: number): Record<string, unknown> {
    const redacted = Object.create(null) as Record<string, unknown>;
    for (const name in members) {
      if (this.isSpent(2)) break;
      const value = members[name];
      const isSecret = isSecretName(name) && value !== null && typeof value !== 'boolean';
      redacted[this.text(name)] = isSecret ? BLANK : this.redact(value, depth + 1);
    }
    return redacted;
  }

  private text(text: string): string {
    if (text.length > TEXT_CHARS_MAX || this.isSpent(text.length)) return `[text of ${text.length} characters]`;
    return redactText(text);
  }

  private isSpent(by: number): boolean {
    if (this.charsLeft < by) return true;
    this.charsLeft -= by;
    return false;
  }
}

/** Redacts secrets in content. The time grows with the length: pass at most 64 K characters. */
export function redactText(text: string): string {
  const clean = VALUES.reduce((rest, pattern) => rest.replace(pattern, BLANK), redact(text)).replace(
    NAMED,
    `$1${BLANK}`,
  );
  return clean.replace(LONG_RUN, (run) => (/[a-z]/.test(run) && /[A-Z]/.test(run) && /\d/.test(run) ? BLANK : run));
}

function truncate(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= bytesMax) return text;
  return `${bytes
    .subarray(0, bytesMax - 3)
    .toString()
    .replace(/\uFFFD+$/, '')}…`;
}
