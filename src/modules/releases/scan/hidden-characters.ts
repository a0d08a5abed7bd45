/**
 * Finds characters that people do not see but models read: controls, format characters, fillers, selectors and Unicode
 * tags.
 *
 * They are allowed where writing needs them, each once and in its position: joiners inside emoji and after letters of
 * scripts that join, selectors after characters with variants, direction marks in right-to-left text, zero-width spaces
 * in scripts without spaces, the flags of England, Scotland and Wales. Overrides and isolates of direction never pass,
 * because the displayed text then differs from the text that models read.
 *
 * `confusableSkeleton` folds names that look alike (compare UTS 39): compatibility forms, case, accents and letters of
 * Cyrillic, Greek and Armenian, so that no two tools of a server can be mistaken for each other. Digits stay distinct
 * from letters (`v10`, `vlO`).
 */
import { codePointName } from '../../../platform/text/quoted.js';
/** Letters of other scripts that look like Latin ones: first capitals, then small letters. */
const CAPITALS = lookAlikes('АAВBЕEЅSІIЈJКKМMНHОOРPСCТTУYХXҮYԌGԚQԜWҺH', 'ΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧX', 'ՍUՏSՕO');

const SMALL = lookAlikes(
  'аaвbеeѕsіiјjкkмmнhоoрpсcтtуyхxүyһhԁdԛqԝwѵvӏl',
  'αaβbεeηnιiκkνvοoρpτtυuχxγyωw',
  'օoսuոnհhցgզqɑaɡgɩiıi',
);

export interface HiddenCharacters {
  count: number;
  /** Names of the characters, each kind once, at most five, as in `U+202E right-to-left override`. */
  names: string[];
  /** The message in Unicode tag characters; empty without any. */
  spelled: string;
}

const KINDS_MAX = 5;

/**
 * Controls, format characters, lone surrogates, and characters that fonts render as nothing (fillers, selectors, tags).
 */
const SUSPECT = /[\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * England, Scotland and Wales are spelled with tag characters. Any other spelling could be a message of six letters.
 */
const TAG_FLAG =
  /\u{1F3F4}\u{E0067}\u{E0062}(?:\u{E0065}\u{E006E}\u{E0067}|\u{E0073}\u{E0063}\u{E0074}|\u{E0077}\u{E006C}\u{E0073})\u{E007F}/gu;

const TAG = /[\u{E0020}-\u{E007E}]/gu;

const EMOJI_PART = /^[\p{Extended_Pictographic}\p{Emoji_Modifier}\uFE0F]$/u;
const PICTOGRAPH = /^\p{Extended_Pictographic}$/u;

/** Scripts whose letters change their form before a joiner or non-joiner, such as Persian and most scripts of India. */
const JOINING =
  /^(?=[\p{L}\p{M}])[\p{scx=Arab}\p{scx=Syrc}\p{scx=Mong}\p{scx=Deva}\p{scx=Beng}\p{scx=Guru}\p{scx=Gujr}\p{scx=Orya}\p{scx=Taml}\p{scx=Telu}\p{scx=Knda}\p{scx=Mlym}\p{scx=Sinh}\p{scx=Khmr}]$/u;

/** Scripts without spaces between words, in which a zero-width space marks a possible line break. */
const UNSPACED = /^(?=[\p{L}\p{M}])[\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}\p{scx=Tibt}]$/u;

const RIGHT_TO_LEFT = /(?=\p{L})[\p{sc=Arab}\p{sc=Hebr}\p{sc=Syrc}\p{sc=Thaa}\p{sc=Nkoo}\p{sc=Adlm}]/u;

const VARIED = /^[\p{Emoji}\p{S}\p{P}\p{Lo}]$/u;

/** Visible format characters: signs that span the digits after them. */
const SEEN = /^[\u0600-\u0605\u06DD\u070F\u0890\u0891\u08E2\u{110BD}\u{110CD}]$/u;

const NAMES: Record<number, string> = {
  0x00: 'NUL',
  0x0d: 'carriage return without line feed',
  0x1b: 'escape, which starts terminal commands',
  0xad: 'soft hyphen',
  0x200b: 'zero-width space',
  0x200c: 'zero-width non-joiner',
  0x200d: 'zero-width joiner',
  0x200e: 'left-to-right mark',
  0x200f: 'right-to-left mark',
  0x202a: 'left-to-right embedding',
  0x202b: 'right-to-left embedding',
  0x202c: 'pop directional formatting',
  0x202d: 'left-to-right override',
  0x202e: 'right-to-left override',
  0x2060: 'word joiner',
  0x2066: 'left-to-right isolate',
  0x2067: 'right-to-left isolate',
  0x2068: 'first strong isolate',
  0x2069: 'pop directional isolate',
  0x3164: 'Hangul filler',
  0xfeff: 'byte order mark',
};

export function hiddenCharacters(text: string): HiddenCharacters | null {
  if (text.search(SUSPECT) === -1) return null;
  const rest = text.replace(TAG_FLAG, '\u{1F3F4}');
  const runsRightToLeft = RIGHT_TO_LEFT.test(rest);
  const kinds = new Map<string, string>();
  let count = 0;
  for (const { 0: char, index } of rest.matchAll(SUSPECT)) {
    const unit = rest.charCodeAt(index - 1);
    const isSurrogate = unit >= 0xdc00 && unit <= 0xdfff;
    const before = rest.slice(Math.max(0, index - (isSurrogate ? 2 : 1)), index);
    const after = String.fromCodePoint(rest.codePointAt(index + char.length) ?? 0x20);
    if (isNeeded(char, before, after, runsRightToLeft)) continue;
    count += 1;
    const kind = kindOf(char);
    if (kinds.size === KINDS_MAX || kinds.has(kind)) continue;
    const name =
      kind === 'tag' ? 'Unicode tag' : kind === 'selector' ? 'variation selector' : NAMES[char.charCodeAt(0)];
    kinds.set(kind, name === undefined ? codePointName(char) : `${codePointName(char)} ${name}`);
  }
  if (count === 0) return null;
  const tags = rest.match(TAG)?.slice(0, 200) ?? [];
  const spelled = tags.map((tag) => String.fromCodePoint((tag.codePointAt(0) ?? 0) - 0xe0000)).join('');
  return { count, names: [...kinds.values()], spelled };
}

function isNeeded(char: string, before: string, after: string, runsRightToLeft: boolean): boolean {
  const code = char.codePointAt(0) ?? 0;
  if (code === 0x09 || code === 0x0a) return true;
  if (code === 0x0d) return after === '\n';
  if (code === 0x200d) return (EMOJI_PART.test(before) && PICTOGRAPH.test(after)) || JOINING.test(before);
  if (code === 0x200c) return JOINING.test(before);
  if (code >= 0xfe00 && code <= 0xfe0f) return VARIED.test(before);
  if (code >= 0xe0100 && code <= 0xe01ef) return /^\p{Ideographic}$/u.test(before);
  if (code === 0x200e || code === 0x200f || code === 0x061c)
    return runsRightToLeft && !/[\u200E\u200F\u061C]/.test(before);
  if (code === 0x200b) return UNSPACED.test(before) || UNSPACED.test(after);
  if (code >= 0x180b && code <= 0x180f) return /^\p{sc=Mong}$/u.test(before);
  if (code >= 0x13430 && code <= 0x1345f) return /^\p{sc=Egyp}$/u.test(before);
  return SEEN.test(char);
}

/** Returns the kind of a character. Tags and selectors come in dozens but form one mark. */
function kindOf(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  if (code >= 0xe0000 && code <= 0xe007f) return 'tag';
  if ((code >= 0xfe00 && code <= 0xfe0f) || (code >= 0xe0100 && code <= 0xe01ef)) return 'selector';
  return char;
}

/** Returns a string that is equal for names that look alike. The caller limits the length. */
export function confusableSkeleton(name: string): string {
  const plain = name.normalize('NFKD').replace(/[\p{M}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '');
  const latin = [...plain].map((char) => CAPITALS.get(char) ?? char).join('');
  return [...latin.toLowerCase()].map((char) => SMALL.get(char) ?? char).join('');
}

function lookAlikes(...rows: string[]): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>();
  for (const row of rows) {
    for (let at = 0; at + 1 < row.length; at += 2) pairs.set(row[at], row[at + 1]);
  }
  return pairs;
}
