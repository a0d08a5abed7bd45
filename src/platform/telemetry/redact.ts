/** What must never reach a log: our keys, setup and signed links, bearer and basic credentials, and passwords in URLs. */
const patterns: readonly [RegExp, string][] = [
  [/(\/setup\/)[A-Za-z0-9_-]{20,}/g, '$1[redacted]'],
  [/(\bsignature=)[A-Za-z0-9_-]{16,}/g, '$1[redacted]'],
  [/slipway_[A-Za-z0-9_-]{20,}/g, 'slipway_[redacted]'],
  [/\b(Bearer|Basic|Token)\s+[A-Za-z0-9._~+/=-]{6,}/gi, '$1 [redacted]'],
  // Bounded, and ended by the next beginning, or a text of many beginnings is searched far on from each of them.
  [/(\b[a-z][a-z0-9+.-]{0,30}:\/\/[^\s/:@"\\]{0,256}):(?:(?!:\/\/)[^\s@"\\]){0,1024}@/gi, '$1:[redacted]@'],
  [/((?:authorization|cookie|x-api-key|api[-_]?key|password|secret|token)\\*"\s*:\s*\\*")[^"\\]*/gi, '$1[redacted]'],
];

/** Blanks credentials in a finished log line. The last wall, not the first: nothing should log a secret at all. */
export function redact(line: string): string {
  return patterns.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), line);
}
