/**
 * Names and texts of a result that may be stored. Results belong to their callers, so only words that a program's author
 * chose are stored: names of members, and enum values such as a status.
 */

const NAME_CHARS_MAX = 64;

/** Names made from data: a path, an address, a date, four digits, invisible characters, or a token. */
const DATA_NAME =
  /.@.|[/\\]|^-?\d+(?:\.\d+)?$|^\d{4}-\d\d|(?:\d\D*){4}|^[0-9a-f]{12,}$|[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|^(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[\w+=-]{20,}$/u;

/**
 * True for a member name that an author chose. Other names, such as ids, are not stored: their values count as those of a
 * dictionary. Names that every JavaScript object inherits count as data too: validators find them in objects without them.
 */
export function isFieldName(name: string): boolean {
  return name !== '' && name.length <= NAME_CHARS_MAX && !(name in Object.prototype) && !DATA_NAME.test(name);
}

/** Last words of member names whose values are usually an enum. */
const CLOSED_LISTS = new Set(
  (
    'action availability category channel class condition currency decision direction encoding environment event ' +
    'format frequency importance interval kind lang language level locale method mode network operation outcome period ' +
    'permission phase platform policy priority privacy protocol provider quality reason region relation result role ' +
    'scope severity side size sort source stage state status step style tier trend type unit visibility'
  ).split(' '),
);

/** True when the values of a member with this name may be stored as an enum. */
export function isClosedList(name: string | null): boolean {
  if (name === null) return false;
  const words = name.replace(/([a-z])([A-Z])/g, '$1 $2').split(/[^A-Za-z]+/);
  const last = words.at(-1)?.toLowerCase() ?? '';
  return [last, last.replace(/s$/, ''), last.replace(/e?s$/, ''), last.replace(/ies$/, 'y')].some((word) =>
    CLOSED_LISTS.has(word),
  );
}

/** `open`, `in_progress`, `IN-PROGRESS`, `needsReview`, `usd`: no sentence, number or secret. */
const WORD = /^(?=.{1,24}$)[A-Za-z]+(?:[_-][A-Za-z]+){0,3}$/;

/** True for a text in the form of an enum value. */
export function isWord(text: string): boolean {
  return WORD.test(text);
}
