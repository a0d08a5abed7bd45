/** An escape in JSON text. `JSON.stringify` escapes surrogates only where they are alone. */
const ESCAPE = /\\(?:u0000|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)/g;
const UNSTORABLE = /^\\u(?:0000|[dD][89a-fA-F])/;

/** A JSON value that a stranger sent, as jsonb can hold it: NUL characters and lone surrogates become U+FFFD. */
export function toStorableJson<T>(value: T): T {
  const text = JSON.stringify(value);
  if (text === undefined || !text.includes('\\u')) return value;
  return JSON.parse(text.replace(ESCAPE, (escape) => (UNSTORABLE.test(escape) ? '\ufffd' : escape))) as T;
}

/** A text that a stranger sent, as text of Postgres: what that cannot hold becomes U+FFFD. */
export function toStorableText(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed();
}
