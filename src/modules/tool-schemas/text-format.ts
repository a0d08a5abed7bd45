export const textFormats = ['date-time', 'date', 'uuid', 'email', 'uri'] as const;
export type TextFormat = (typeof textFormats)[number];

/** Maximum length of a string with a format. */
const FORMAT_CHARS_MAX = 512;

const DATE = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/;
const TIME = /^(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;
const EMAIL = /^[a-z0-9_+-]+(?:\.[a-z0-9_+-]+)*@(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$/i;
const URI =
  /^https?:\/\/[a-z0-9.-]+(?::\d{1,5})?(?:[/?](?:[\w.~!$&'()*+,;=:@/?-]|%[0-9a-f]{2})*)?(?:#[\w.~!$&'()*+,;=:@/?-]*)?$/i;

/**
 * Returns null without a format. The formats are narrower than the definitions of Zod and of JSON Schema, which both accept the
 * string.
 */
export function formatOf(text: string): TextFormat | null {
  if (text.length < 8 || text.length > FORMAT_CHARS_MAX) return null;
  const day = text.slice(0, 10);
  if (DATE.test(day)) {
    // 2026-02-30 does not exist.
    const date = new Date(`${day}T00:00:00Z`);
    if (Number.isNaN(date.getTime()) || !date.toISOString().startsWith(day)) return null;
    if (text.length === 10) return 'date';
    return text[10] === 'T' && TIME.test(text.slice(11)) ? 'date-time' : null;
  }
  if (text.length === 36 && UUID.test(text)) return 'uuid';
  if (/^https?:/i.test(text)) return URI.test(text) && URL.canParse(text) ? 'uri' : null;
  return text.includes('@') && EMAIL.test(text) ? 'email' : null;
}
