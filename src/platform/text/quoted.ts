/**
 * Characters that a reader cannot see or that change how a string is shown: controls, formatting and
 * default-ignorable characters, lone surrogates, private use, unassigned, and every white space but the plain blank.
 */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|[^\P{Zs} ]/gu;

/** Marks stacked on one letter: further ones would cover the lines above and below. */
const STACKED_MARKS = /(\p{M}{2})\p{M}+/gu;

/**
 * Returns a string in double quotes, at most `charsMax` characters with `…` for the rest, and everything invisible written as its code
 * (`\u{202E}`), so that an error or a log line never contains what it warns about.
 */
export function quote(text: string, charsMax = 60): string {
  const { start, isCut } = truncate(text, charsMax);
  return `"${escapeUnseen(start.replace(/[\\"]/g, '\\$&'))}${isCut ? '…' : ''}"`;
}

/** Works like {@link quote} without quotes and escapes of quotes, for text that is a complete message. */
export function visible(text: string, charsMax: number): string {
  const { start, isCut } = truncate(text, charsMax);
  return escapeUnseen(start) + (isCut ? '…' : '');
}

/** Returns foreign text as a name to show: one line, nothing invisible, at most `charsMax` characters. Idempotent. */
export function displayName(text: string, charsMax: number): string {
  const plain = text.replace(UNSEEN, ' ').replace(STACKED_MARKS, '$1').replace(/ +/g, ' ').trim();
  return truncate(plain, charsMax).start.trim();
}

function escapeUnseen(text: string): string {
  const names: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };
  return text
    .replace(UNSEEN, (char) => names[char] ?? `\\u{${(char.codePointAt(0) ?? 0).toString(16).toUpperCase()}}`)
    .replace(STACKED_MARKS, '$1');
}

/** Returns a name such as `U+202E`, as in Unicode's charts. */
export function codePointName(char: string): string {
  return `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** Cuts between characters, never inside a surrogate pair. Reads no more than needed: the text can be megabytes. */
function truncate(text: string, charsMax: number): { start: string; isCut: boolean } {
  const chars = [...text.slice(0, 2 * charsMax + 2)];
  return chars.length <= charsMax && text.length <= 2 * charsMax + 2
    ? { start: text, isCut: false }
    : { start: chars.slice(0, charsMax).join(''), isCut: true };
}
