/** Characters that pages display differently, or that browsers send differently. */
const CHANGED = /[^\P{Cc}\n\t]|[\p{Cs}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Returns true if a page and a form preserve the text. */
export function isPlainText(text: string): boolean {
  return text.search(CHANGED) < 0;
}

/** Returns JSON text that a page displays unchanged. */
export function jsonText(value: unknown, indent?: number): string {
  const escapeChar = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value, null, indent).replace(CHANGED, escapeChar);
}
