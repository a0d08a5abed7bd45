/** Shorter values also occur in ordinary words. */
const VALUE_CHARS_MIN = 6;

/** Maximum number of compared spellings with the same beginning; with more, the string is blanked to its end. */
const CANDIDATES_MAX = 64;

/** Maximum number of characters of spellings compared with one string; with more, the string is blanked to its end. */
const COMPARED_CHARS_MAX = 8 * 1024 * 1024;

/**
 * Blanks the values plain and as programs usually print them: in JSON, in `util.inspect`, in URLs and forms, in Base64
 * and hexadecimal, and each line of a longer value separately.
 *
 * The time grows with the text, not with the number of values.
 *
 * @param blank replaces each value
 */
export function valueRedactor(values: readonly string[], blank = '[redacted]'): (text: string) => string {
  let spellings: Map<string, string[]> | undefined;
  return (text) => {
    if (values.length === 0) return text;
    spellings ??= spellingsByStart(values);
    let redacted = '';
    let from = 0;
    let charsLeft = COMPARED_CHARS_MAX;
    for (let at = 0; at + VALUE_CHARS_MIN <= text.length;) {
      const candidates = spellings.get(text.slice(at, at + VALUE_CHARS_MIN));
      for (const { length } of candidates ?? []) charsLeft -= length;
      if (candidates && (candidates.length > CANDIDATES_MAX || charsLeft < 0))
        return redacted + text.slice(from, at) + blank;
      const match = candidates?.find((spelling) => text.startsWith(spelling, at));
      if (match === undefined) at += 1;
      else {
        redacted += text.slice(from, at) + blank;
        from = at += match.length;
      }
    }
    return redacted + text.slice(from);
  };
}

/** Returns spellings of the values, longest first, since a longer one can contain a shorter one. */
function spellingsByStart(values: readonly string[]): Map<string, string[]> {
  const lines = new Set(values.flatMap((value) => [value, ...value.split(/[\r\n]+/)]));
  const spellings = new Set([...lines].filter(({ length }) => length >= VALUE_CHARS_MIN).flatMap(spellingsOf));
  const byStart = new Map<string, string[]>();
  for (const spelling of [...spellings].sort((a, b) => b.length - a.length)) {
    const start = spelling.slice(0, VALUE_CHARS_MIN);
    const group = byStart.get(start);
    if (group) group.push(spelling);
    else byStart.set(start, [spelling]);
  }
  return byStart;
}

function spellingsOf(value: string): string[] {
  // A lone surrogate has no form in a URL.
  const text = value.toWellFormed();
  const json = JSON.stringify(value).slice(1, -1);
  const printed = [
    ...[value, json, json.replaceAll('\\"', '"'), JSON.stringify(json).slice(1, -1)],
    ...[encodeURIComponent(text), encodeURI(text), new URLSearchParams({ '': text }).toString().slice(1)],
  ];
  return [
    ...printed,
    ...printed.map((spelling) => encodeURIComponent(spelling.toWellFormed())),
    Buffer.from(value).toString('hex'),
    ...[0, 1, 2].flatMap((offset) => inBase64(value, offset)),
  ].filter(({ length }) => length >= VALUE_CHARS_MIN);
}

/** Leaves out the first and last digits, which also depend on the neighbours of the value. */
function inBase64(value: string, offset: number): string[] {
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(value)]);
  const digits = bytes.toString('base64url').slice(offset && offset + 1, Math.floor((bytes.length * 8) / 6));
  return [digits, digits.replaceAll('-', '+').replaceAll('_', '/')];
}
