/** One word, quoted text or comma of a scenario. */
export interface Token {
  text: string;
  isQuoted: boolean;
}

const TOKENS = /"([^"]*)"|“([^”]*)”|(?<=^|[\s(])'([^']*)'(?=$|[\s,.;:!)])|[^\s,;"“”()]+|,/g;

/** Quoted texts stand in for these while a text is split, so that a full stop inside one ends nothing. */
const QUOTED = /"[^"]*"|“[^”]*”|(?<=^|[\s(])'[^']*'(?=$|[\s,.;:!)])/g;

/** The sentences and half sentences of a scenario. */
export function clausesOf(text: string): string[] {
  const kept: string[] = [];
  const hidden = text.replace(/[\ue000\ue001]/g, '').replace(QUOTED, (quote) => `\ue000${kept.push(quote) - 1}\ue001`);
  return hidden
    .split(/[.;!?]+(?=\s|$)|\n+|,?\s+(?:but|however|except that|and then|while)\s+/i)
    .map((clause) => clause.replace(/\ue000(\d+)\ue001/g, (_all, at: string) => kept[Number(at)] ?? '').trim())
    .filter((clause) => clause !== '');
}

/** The words of a clause. */
export function tokensOf(clause: string): Token[] {
  return [...clause.matchAll(TOKENS)].map(([all, double, curly, single]) => {
    const quote = double ?? curly ?? single;
    return quote === undefined ? { text: all.replace(/[:.]+$/, ''), isQuoted: false } : { text: quote, isQuoted: true };
  });
}

const CARDINALS = 'zero one two three four five six seven eight nine ten eleven twelve'.split(' ');
const ORDINALS = 'zeroth first second third fourth fifth sixth seventh eighth ninth tenth'.split(' ');

/** `3`, `three`, `a` and `no` as numbers; null for other words. */
export function cardinal(word: string): number | null {
  const lower = word.toLowerCase();
  if (/^\d{1,4}$/.test(lower)) return Number(lower);
  if (lower === 'no' || lower === 'zero') return 0;
  if (lower === 'a' || lower === 'an') return 1;
  if (lower === 'both') return 2;
  const at = CARDINALS.indexOf(lower);
  return at > 0 ? at : null;
}

/** `3rd` and `third` as numbers; null for other words. */
export function ordinal(word: string): number | null {
  const lower = word.toLowerCase();
  const digits = /^(\d{1,4})(st|nd|rd|th)$/.exec(lower);
  if (digits) return Number(digits[1]);
  const at = ORDINALS.indexOf(lower);
  return at > 0 ? at : null;
}
