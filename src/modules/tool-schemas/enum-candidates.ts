/**
 * Which names and texts of an answer may be kept. Answers belong to whoever called, so only what a program's author chose
 * is kept: names of members, and the words of closed lists such as a status.
 */

const NAME_CHARS_MAX = 64;

/** A path, an address, a date, something unreadable, something with this many digits, or a token: made from data, not chosen by an author. */
const DATA_NAME =
  /.@.|[/\\]|^-?\d+(?:\.\d+)?$|^\d{4}-\d\d|(?:\d\D*){4}|^[0-9a-f]{12,}$|[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|^(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[\w+=-]{20,}$/u;

/**
 * Whether a member's name is one that an author chose. Others, such as ids, are not kept: what stands under them is one
 * kind of value. Names that every JavaScript object has are taken as such too: validators find them in objects without.
 */
export function isFieldName(name: string): boolean {
  return name !== '' && name.length <= NAME_CHARS_MAX && !(name in Object.prototype) && !DATA_NAME.test(name);
}

/** The last word of a member's name, when its values come from a closed list. */
const CLOSED_LISTS = new Set(
  (
    'action availability category channel class condition currency decision direction encoding environment event ' +
    'format frequency importance interval kind lang language level locale method mode network operation outcome period ' +
    'permission phase platform policy priority privacy protocol provider quality reason region relation result role ' +
    'scope severity side size sort source stage state status step style tier trend type unit visibility'
  ).split(' '),
);

/** Whether the values of a member with this name may be told, if they are few and words. */
export function isClosedList(name: string | null): boolean {
  if (name === null) return false;
  const words = name.replace(/([a-z])([A-Z])/g, '$1 $2').split(/[^A-Za-z]+/);
  const last = words.at(-1)?.toLowerCase() ?? '';
  return [last, last.replace(/s$/, ''), last.replace(/e?s$/, ''), last.replace(/ies$/, 'y')].some((word) =>
    CLOSED_LISTS.has(word),
  );
}

/** `open`, `in_progress`, `IN-PROGRESS`, `needsReview`, `usd`: a word of a program, not a sentence, number or secret. */
const WORD = /^(?=.{1,24}$)[A-Za-z]+(?:[_-][A-Za-z]+){0,3}$/;

/** Whether a text has the form of a word of a closed list. */
export function isWord(text: string): boolean {
  return WORD.test(text);
}
