/** Maximum depth of JSON; Postgres and every recursion of Slipway support some thousands. */
export const DEPTH_MAX = 100;

/**
 * Returns why Postgres would reject or change a JSON value, as the end of a message; null when it can be stored. Text and jsonb
 * hold no NUL and no lone surrogates; a number such as 1e400 is infinite here and null in JSON.
 */
export function storableFault(value: unknown, depth = 0): string | null {
  if (typeof value === 'string') {
    return value.includes('\0') || !value.isWellFormed() ? 'must not hold NUL characters or broken unicode' : null;
  }
  if (typeof value === 'number') return Number.isFinite(value) ? null : 'must not hold numbers beyond 1.7e308';
  if (typeof value !== 'object' || value === null) return null;
  if (depth > DEPTH_MAX) return `must not be nested deeper than ${DEPTH_MAX} levels`;
  const parts: unknown[] = Array.isArray(value) ? value : Object.entries(value).flat();
  for (const part of parts) {
    const fault = storableFault(part, depth + 1);
    if (fault !== null) return fault;
  }
  return null;
}

/** Converts a string of an upstream so that Postgres can store it: unsupported characters become U+FFFD. */
export function toStorableText(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed();
}

/** Converts JSON so that Postgres can store it, including names of members. Requires at most {@link DEPTH_MAX} levels. */
export function toStorableJson<T>(value: T): T {
  return storableForm(value) as T;
}

function storableForm(value: unknown): unknown {
  if (typeof value === 'string') return toStorableText(value);
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (Array.isArray(value)) return value.map(storableForm);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [toStorableText(name), storableForm(item)]));
}
