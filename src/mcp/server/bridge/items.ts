import { rewriteMembers } from '../../protocol/json-edit.js';
import { elements, slice } from '../../protocol/json-text.js';

/** A list result with each of its items as `rewrite` gives it, which gets it as JSON text; null drops the item. */
export function rewriteItems(result: string, member: string, rewrite: (item: string) => string | null): string {
  return rewriteMembers(result, (name, value) => (name === member ? rewriteList(value, rewrite) : value));
}

/** The same for the text of a list alone. What is no list stays as it is. */
export function rewriteList(list: string, rewrite: (item: string) => string | null): string {
  if (!list.startsWith('[')) return list;
  const items = elements(list).map((span) => slice(list, span));
  const kept = items.map(rewrite).filter((item) => item !== null);
  const isSame = kept.length === items.length && kept.every((item, i) => item === items[i]);
  return isSame ? list : `[${kept.join(',')}]`;
}
