import { members, slice, splice, type Span, elements } from './json-text.js';

/**
 * Edits of an object's JSON text that preserve the bytes of unchanged members. Inputs are objects accepted by
 * `JSON.parse`.
 */

/** Rewrites members of an object. `rewrite` gets and returns JSON text, or null to remove the member. Returns the same string when nothing changes. */
export function rewriteMembers(object: string, rewrite: (name: string, value: string) => string | null): string {
  const spans = [...members(object)].sort(([, a], [, b]) => a[0] - b[0]);
  const parts: string[] = [];
  let isSame = true;
  let at = object.indexOf('{') + 1;
  let behind = at;
  for (const [name, span] of spans) {
    const [start, end] = span;
    const value = slice(object, span);
    const next = rewrite(name, value);
    const comma = object.indexOf(',', end);
    const rest = span === spans.at(-1)?.[1] ? '' : object.slice(end, comma);
    if (next !== null) parts.push(object.slice(at, start) + next + rest);
    isSame &&= next === value;
    behind = end;
    at = comma + 1;
  }
  return isSame ? object : `{${parts.join(',')}${object.slice(behind)}`;
}

export function withoutMembers(object: string, isDropped: (name: string) => boolean): string {
  return rewriteMembers(object, (name, value) => (isDropped(name) ? null : value));
}

/** Puts members first in an object. @param first JSON text without braces */
export function withFirst(object: string, first: string): string {
  const rest = object.slice(object.indexOf('{') + 1);
  return `{${first}${/^\s*\}/.test(rest) ? '' : ','}${rest}`;
}

/** Sets the member in place, or prepends it. `value` is JSON text. */
export function withMember(object: string, name: string, value: string): string {
  const span = members(object).get(name);
  return span ? splice(object, span, value) : withFirst(object, `${JSON.stringify(name)}:${value}`);
}

export function memberText(object: string, name: string): string | undefined {
  const span = members(object).get(name);
  return span && slice(object, span);
}

/** Spans may come in any order and must not overlap. */
export function spliceAll(text: string, edits: readonly (readonly [Span, string])[]): string {
  let result = '';
  let at = 0;
  for (const [[start, end], replacement] of [...edits].sort(([a], [b]) => a[0] - b[0])) {
    result += text.slice(at, start) + replacement;
    at = end;
  }
  return result + text.slice(at);
}

/** Rewrites items of a list. `rewrite` gets and returns JSON text, or null to remove the item. */
export function rewriteItems(result: string, member: string, rewrite: (item: string) => string | null): string {
  return rewriteMembers(result, (name, value) => (name === member ? rewriteList(value, rewrite) : value));
}

/** Rewrites a list like {@link rewriteItems}, and returns other values unchanged. */
export function rewriteList(list: string, rewrite: (item: string) => string | null): string {
  if (!list.startsWith('[')) return list;
  const items = elements(list).map((span) => slice(list, span));
  const rewritten = items.map(rewrite).filter((item) => item !== null);
  const isSame = rewritten.length === items.length && rewritten.every((item, i) => item === items[i]);
  return isSame ? list : `[${rewritten.join(',')}]`;
}

/** Returns the params without these members of their `_meta`, which is removed when it becomes empty. */
export function withoutMeta(params: string, isDropped: (name: string) => boolean): string {
  return rewriteMembers(params, (name, value) => {
    if (name !== '_meta' || !value.startsWith('{')) return value;
    const rest = withoutMembers(value, isDropped);
    return rest !== value && /^\{\s*\}$/.test(rest) ? null : rest;
  });
}
