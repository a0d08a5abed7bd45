import { isObject } from '../../../../platform/text/json.js';
import { isPlural, plainName, singular, wordsOf } from './names.js';
import { mergedSchema } from './schema-parts.js';
import type { Item } from './simulator.js';

/** What a tool does to the things of a server. */
export type Deed = 'create' | 'get' | 'list' | 'search' | 'update' | 'delete';

const verbs: Record<string, Deed> = {
  ...verbsOf('create', 'create add insert new make post open register send upload invite schedule book'),
  ...verbsOf('get', 'get read fetch retrieve show view describe lookup'),
  ...verbsOf('list', 'list ls browse enumerate'),
  ...verbsOf('search', 'search find query filter'),
  ...verbsOf(
    'update',
    'update edit set change modify patch rename move assign put close reopen complete resolve finish mark',
  ),
  ...verbsOf('delete', 'delete remove archive destroy drop cancel revoke erase'),
};

function verbsOf(deed: Deed, words: string): Record<string, Deed> {
  return Object.fromEntries(words.split(' ').map((word) => [word, deed]));
}

/** The deed a word names, also as `creating` or `deletion`; null when it names none. */
export function deedOf(word: string): Deed | null {
  const stems = [
    word,
    word.replace(/ing$/, ''),
    word.replace(/ing$/, 'e'),
    word.replace(/ting$/, 't'),
    word.replace(/s$/, ''),
  ];
  const known = stems.find((stem) => Object.hasOwn(verbs, stem));
  return known === undefined ? null : verbs[known];
}

/** Words behind which a tool's name says more about how than about what. */
const ENDS = new Set(['by', 'for', 'of', 'in', 'from', 'with', 'to', 'on', 'at', 'as', 'using', 'via', 'into', 'and']);
const FILLERS = new Set([
  'all',
  'my',
  'the',
  'a',
  'an',
  'new',
  'single',
  'one',
  'multiple',
  'many',
  'list',
  'details',
  'detail',
  'info',
]);

/** What changes by itself when a tool is called so. */
const stateAfter: Record<string, string> = {
  close: 'closed',
  reopen: 'open',
  complete: 'completed',
  finish: 'completed',
  resolve: 'resolved',
};

/** What a tool means, as its name and its arguments tell. */
export interface ToolMeaning {
  deed: Deed;
  /** One of its things, in lower case with `_`: `pull_request`. */
  kind: string;
  /** The argument that says which thing; null when there is none. */
  idArgument: string | null;
  /** The state it leaves a thing in; null when its name does not say. */
  leaves: string | null;
  /** It makes the thing when there is none: `set` and `put`. */
  isUpsert: boolean;
}

/** @returns null when the name tells no deed to any thing */
export function meaningOf(tool: Item): ToolMeaning | null {
  const words = wordsOf(String(tool.name));
  const at = words.findIndex((word) => Object.hasOwn(verbs, word));
  const verb = words[at];
  if (verb === undefined) return null;
  const after = nounOf(words.slice(at + 1));
  const noun = after.length > 0 ? after : nounOf(words.slice(0, at));
  const last = noun.at(-1);
  if (last === undefined) return null;
  const kind = [...noun.slice(0, -1), singular(last)].join('_');
  const deed = verbs[verb];
  const idArgument = idArgumentOf(tool, kind, deed);
  const isList = deed === 'get' && isPlural(last) && !isOwnId(idArgument, kind);
  const leaves = stateAfter[verb] ?? null;
  return {
    deed: isList ? 'list' : deed,
    kind,
    idArgument: isList ? null : idArgument,
    leaves,
    isUpsert: verb === 'set' || verb === 'put',
  };
}

function nounOf(words: string[]): string[] {
  const end = words.findIndex((word) => ENDS.has(word));
  return words.slice(0, end === -1 ? undefined : end).filter((word) => !FILLERS.has(word));
}

/** The properties of an object schema. */
export function propertiesOf(schema: unknown, root: unknown = schema): Item {
  const { properties } = mergedSchema(schema, root);
  return isObject(properties) ? properties : {};
}

/** Names, in plain form, that a property with the id of a thing may have; the surest first. */
export function idNames(kind: string): string[] {
  const own = plainName(kind);
  const short = plainName(kind.split('_').at(-1) ?? kind);
  const ofKind = [own, short].flatMap((name) => [`${name}id`, `${name}number`, `${name}key`, `${name}uuid`]);
  return [...new Set([...ofKind, 'id', 'number', 'key', 'uuid', 'guid'])];
}

/** Names, in plain form, that a property with the name of a thing may have. */
export function labelNames(kind: string): string[] {
  const own = plainName(kind);
  const short = plainName(kind.split('_').at(-1) ?? kind);
  const fixed = ['name', 'title', 'fullname', 'displayname', 'login', 'username', 'subject', 'slug', 'path', 'label'];
  return [...new Set([...fixed, `${own}name`, `${short}name`, own, short, 'uri', 'url', 'email', 'summary'])];
}

function isOwnId(argument: string | null, kind: string): boolean {
  return argument !== null && idNames(kind).includes(plainName(argument));
}

/** The argument that names a thing: one called so, else the only one that is required and plain. */
function idArgumentOf(tool: Item, kind: string, deed: Deed): string | null {
  if (deed === 'list' || deed === 'search') return null;
  const properties = propertiesOf(tool.inputSchema);
  const plain = new Map(Object.keys(properties).map((name) => [plainName(name), name]));
  const named = [...idNames(kind), ...(deed === 'create' ? [] : labelNames(kind))].find((name) => plain.has(name));
  if (named !== undefined) return plain.get(named) ?? null;
  if (deed === 'create') return null;
  const { required } = mergedSchema(tool.inputSchema, tool.inputSchema);
  const [only, ...more] = Array.isArray(required) ? (required as string[]) : [];
  const isPlain = (name: string) =>
    ['string', 'integer', 'number'].includes(String((properties[name] as Item | undefined)?.type));
  return only !== undefined && more.length === 0 && isPlain(only) ? only : null;
}
