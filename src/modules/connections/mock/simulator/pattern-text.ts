/** Maximum length of a string; a pattern that needs a longer one is not supported. */
const CHARS_MAX = 10_000;

/** Characters in the order of preference: ASCII first, of which letters and digits first. */
const CHARS = ['a', 'A', '0', '-', ...Array.from({ length: 95 }, (_none, at) => String.fromCharCode(32 + at))];

const ATOM = /\\[^]|\[\^?(?:\\[^]|[^\]\\])*\]|\((?:\?:)?|[^]/y;
/** A quantifier; an empty match stands for once. */
const QUANTIFIER = /(?:([*+?])|\{(\d+)(,?)(\d*)\})?\??/y;

/**
 * Returns a short string that a regular expression of JSON Schema is likely to match, with as few repetitions as possible.
 *
 * @param turn varies the characters, and adds that many repetitions where the pattern allows them
 * @returns null for look-around, back-references, and a string over 10,000 characters
 */
export function textOfPattern(pattern: string, turn: number): string | null {
  const groups = [{ text: '', isComplete: false }];
  for (let at = 0; at < pattern.length;) {
    ATOM.lastIndex = at;
    const [atom] = ATOM.exec(pattern) ?? [''];
    at += atom.length;
    const group = groups[groups.length - 1];
    if (atom.startsWith('(')) {
      if (atom === '(' && pattern[at] === '?') return null;
      groups.push({ text: '', isComplete: false });
    } else if (atom === '|') {
      group.isComplete = true;
    } else {
      const part = atom === ')' ? groups.pop()?.text : charOf(atom, turn);
      const outer = groups.at(-1);
      QUANTIFIER.lastIndex = at;
      const [quantifier, sign, least, comma, most] = QUANTIFIER.exec(pattern) ?? [''];
      at += quantifier.length;
      const min = least === undefined ? (sign === '*' || sign === '?' ? 0 : 1) : Number(least);
      const isOpen = sign === '*' || sign === '+' || (comma === ',' && most === '');
      const max = isOpen ? Infinity : comma === ',' ? Number(most) : Math.max(min, sign ? 1 : 0);
      const count = Math.min(max, min + turn);
      if (part === undefined || outer === undefined || Math.max(part.length, 1) * count > CHARS_MAX) return null;
      if (!outer.isComplete) outer.text += part.repeat(count);
      if (outer.text.length > CHARS_MAX) return null;
    }
  }
  return groups.length === 1 ? groups[0].text : null;
}

/** @returns empty for an anchor, undefined if no ASCII character matches or RegExp rejects the atom */
function charOf(atom: string, turn: number): string | undefined {
  if (/^(?:[$^]|\\[bB])$/.test(atom)) return '';
  if (/^[^\\[.]$/.test(atom)) return atom;
  // A back-reference would match nothing, and an escape such as \x41 is longer than its atom.
  if (/^\\[1-9cukpPx]$/.test(atom)) return undefined;
  try {
    const expression = new RegExp(`^${atom}$`);
    const matching = CHARS.filter((char) => expression.test(char));
    return matching[turn % matching.length];
  } catch {
    return undefined;
  }
}
