/** A JSON object whose members are not known. */
export type JsonObject = Record<string, unknown>;

/** Returns true if a value read from JSON is an object: not an array, not null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the text of a document without the byte order mark before it, which parsers of JSON and YAML reject (RFC 8259, 8.1). */
export function withoutBom(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

/** Returns JSON text with members sorted by name: equal values have equal JSON. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${members.map(([name, item]) => `${JSON.stringify(name)}:${canonicalJson(item)}`).join(',')}}`;
}

/**
 * Works level by level, without recursion, since the value can be too deep for recursive readers (`JSON.stringify`,
 * validators, Postgres).
 */
export function isWithinDepth(value: unknown, depthMax: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > depthMax) return false;
    level = level.flatMap((item) =>
      typeof item === 'object' && item !== null ? Object.values(item as Record<string, unknown>) : [],
    );
  }
  return true;
}

/**
 * Returns one step of a JSONPath (RFC 9535): `.name`, or `["a name"]`.
 *
 * @param write writes a name in quotes; a limited form keeps foreign text in messages short
 */
export function pathStep(name: string, write: (name: string) => string = JSON.stringify): string {
  return /^[A-Za-z_]\w{0,63}$/.test(name) ? `.${name}` : `[${write(name)}]`;
}
