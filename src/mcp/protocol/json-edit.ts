import { members, slice, splice, type Span } from './json-text.js';

/** Changing an object's text without rebuilding it: what stays keeps its bytes. Texts are objects that `JSON.parse` accepted. */

/**
 * `object` with each member's value as `rewrite` gives it, which gets it as text; null drops the member. The very same text
 * when nothing changes.
 */
export function rewriteMembers(object: string, rewrite: (name: string, value: string) => string | null): string {
  const found = [...members(object)].sort(([, a], [, b]) => a[0] - b[0]);
  const kept: string[] = [];
  let isSame = true;
  let at = object.indexOf('{') + 1;
  let behind = at;
  for (const [name, span] of found) {
    const [start, end] = span;
    const value = slice(object, span);
    const next = rewrite(name, value);
    // Behind a value stand blanks, and a comma unless it is the last one.
    const comma = object.indexOf(',', end);
    const rest = span === found.at(-1)?.[1] ? '' : object.slice(end, comma);
    if (next !== null) kept.push(object.slice(at, start) + next + rest);
    isSame &&= next === value;
    behind = end;
    at = comma + 1;
  }
  return isSame ? object : `{${kept.join(',')}${object.slice(behind)}`;
}

/** `object` without the members whose names are dropped. */
export function withoutMembers(object: string, isDropped: (name: string) => boolean): string {
  return rewriteMembers(object, (name, value) => (isDropped(name) ? null : value));
}

/** `object` with these members, as JSON text without braces, in front of its own. */
export function withFirst(object: string, first: string): string {
  const rest = object.slice(object.indexOf('{') + 1);
  return `{${first}${/^\s*\}/.test(rest) ? '' : ','}${rest}`;
}

/** `object` with a member set: in the place it has, or else in front. `value` is JSON text. */
export function withMember(object: string, name: string, value: string): string {
  const span = members(object).get(name);
  return span ? splice(object, span, value) : withFirst(object, `${JSON.stringify(name)}:${value}`);
}

/** The text of an object's member; undefined when it has none of this name. */
export function memberText(object: string, name: string): string | undefined {
  const span = members(object).get(name);
  return span && slice(object, span);
}

/** `text` with each span's value replaced; spans may come in any order and must not overlap. */
export function spliceAll(text: string, edits: readonly (readonly [Span, string])[]): string {
  let result = '';
  let at = 0;
  for (const [[start, end], replacement] of [...edits].sort(([a], [b]) => a[0] - b[0])) {
    result += text.slice(at, start) + replacement;
    at = end;
  }
  return result + text.slice(at);
}
