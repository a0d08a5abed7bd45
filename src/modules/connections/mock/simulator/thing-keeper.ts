import { isObject } from '../../../../platform/text/json.js';
import { plainName } from './names.js';
import { mergedSchema } from './schema-parts.js';
import { jsonType, satisfyingValue, UnsatisfiableError } from './schema-value.js';
import { SeededRandom } from './seeded-random.js';
import type { KindModel } from './server-model.js';
import type { Item } from './simulator.js';
import { idNames } from './tool-meaning.js';
import { nextNumber, thingsOf, type Thing, type World } from './world.js';

/** Arguments that say how much of a list is wanted, and how it is shown. */
export const limitNames = /^(limit|perpage|pagesize|maxresults|maxitems|count|top|first|size|take|maximum|n|max)$/;
const PAGING =
  /^(page|offset|skip|start|cursor|after|before|nextcursor|pagetoken|from|sort|sortby|order|orderby|direction|format|fields|include|expand|verbose|since|until)$/;
export const queryNames =
  /^(query|q|search|searchterm|searchquery|text|term|keyword|keywords|pattern|filter|question)$/;

/** Values of an argument that leave nothing out. */
const ANY = new Set(['all', 'any', '*', '']);

/** Knows the things of one kind: what each is like, which one is meant, and which of them pass a filter. */
export class ThingKeeper {
  private readonly views = new WeakMap<Thing, Item>();
  private readonly idNames: ReadonlySet<string>;

  constructor(
    readonly model: KindModel,
    private readonly seed: string,
  ) {
    this.idNames = new Set(idNames(model.kind));
  }

  /** What is the same for a thing wherever it is shown. */
  seedOf(number: number): string {
    return `${this.seed}\0${this.model.kind}\0${number}`;
  }

  /** A new thing, with the id that was asked for or the next one. */
  make(world: World, given: Item, id?: unknown): Thing {
    const number = nextNumber(world, this.model.kind);
    const wanted = typeof id === 'string' || typeof id === 'number' ? id : this.freeId(world, number);
    return { number, id: wanted, given };
  }

  /** A new thing that a call asked for: with the defaults of what the call left out, in the state things begin in. */
  create(world: World, said: Item, defaults: Item, id?: unknown): Thing {
    return { ...this.make(world, { ...defaults, ...said }, id), isCreated: true };
  }

  /** Everything about a thing: what was said of it, and the rest made up. */
  view(thing: Thing): Item {
    const known = this.views.get(thing);
    if (known) return known;
    const view = { ...this.shown(thing, this.model.view.schema, this.model.view.root), ...thing.given };
    this.views.set(thing, view);
    return view;
  }

  /** A thing as an answer holds it. @param alike what was asked for, which then holds of whatever is not known otherwise */
  shown(thing: Thing, schema: unknown, root: unknown, alike: Item = {}): Item {
    const given = { ...alike, ...this.aliases(thing, schema, root), ...spelled(thing.given, schema, root) };
    try {
      const absent = thing.isCreated ? this.model.creatable : undefined;
      const value = satisfyingValue(schema, null, { seed: this.seedOf(thing.number), given, root, absent });
      return isObject(value) ? value : given;
    } catch (error) {
      if (error instanceof UnsatisfiableError) return given;
      throw error;
    }
  }

  /** The thing an argument means: by its id, or by its name. */
  find(world: World, name: string, value: unknown, others: Item): Thing | undefined {
    const wanted = textOf(value);
    const candidates = thingsOf(world, this.model.kind).filter((thing) => this.passes(thing, others));
    const isLabel = !this.idNames.has(plainName(name));
    return (
      candidates.find((thing) => textOf(thing.id) === wanted || textOf(ownValue(thing.given, name)) === wanted) ??
      candidates.find((thing) => namesIn(thing.given[this.model.label]).includes(wanted)) ??
      (isLabel ? candidates.find((thing) => textOf(ownValue(this.view(thing), name)) === wanted) : undefined)
    );
  }

  /** Whether a thing has the values that are asked for. What nobody said of it leaves it in, unless it has few choices. */
  passes(thing: Thing, filters: Item): boolean {
    return Object.entries(filters).every(([name, value]) => {
      const plain = plainName(name);
      if (limitNames.test(plain) || PAGING.test(plain) || queryNames.test(plain)) return true;
      if (typeof value === 'object' || ANY.has(textOf(value))) return true;
      const said = ownValue(thing.given, name);
      if (said !== undefined)
        return Array.isArray(said) ? said.map(textOf).includes(textOf(value)) : textOf(said) === textOf(value);
      if (this.idNames.has(plain) && plain !== 'key' && plain !== 'number') return textOf(thing.id) === textOf(value);
      if (thing.isCreated && this.model.creatable.has(plain)) return false;
      return !this.hasFewChoices(name) || textOf(ownValue(this.view(thing), name)) === textOf(value);
    });
  }

  /** Whether a search finds a thing. Those that nobody said anything of are found by every search. */
  isFound(thing: Thing, query: string): boolean {
    if (Object.keys(thing.given).length === 0) return true;
    const text = JSON.stringify({ ...this.view(thing), id: thing.id }).toLowerCase();
    const words = query
      .toLowerCase()
      .split(/[^\p{L}\p{N}@./#_-]+/u)
      .filter((word) => word !== '' && !/^\w+:/.test(word));
    return words.every((word) => text.includes(word));
  }

  private freeId(world: World, number: number): string | number {
    const taken = new Set(thingsOf(world, this.model.kind).map(({ id }) => textOf(id)));
    for (let at = number; ; at += 1) {
      const id = this.idFor(at);
      if (!taken.has(textOf(id))) return id;
    }
  }

  private idFor(number: number): string | number {
    const schema = this.model.idSchema ?? {};
    const types = Array.isArray(schema.type) ? (schema.type as unknown[]) : [schema.type];
    if (types.includes('integer') || types.includes('number')) return number;
    if (schema.format === 'uuid') return new SeededRandom(`${this.seedOf(number)}\0id`).uuid();
    if (typeof schema.pattern === 'string' || typeof schema.format === 'string') {
      const made = satisfyingValue(schema, null, { seed: `${this.seedOf(number)}\0id` });
      if (typeof made === 'string') return made;
    }
    return `${this.model.kind.replaceAll('_', '-')}-${number}`;
  }

  /** The id under every name a schema has for it, in the type it wants. */
  private aliases(thing: Thing, schema: unknown, root: unknown): Item {
    const { properties } = mergedSchema(schema, root);
    const found: Item = {};
    for (const [name, member] of Object.entries(isObject(properties) ? properties : { id: {} })) {
      if (this.idNames.has(plainName(name))) found[name] = inType(thing.id, mergedSchema(member, root).type);
    }
    return found;
  }

  private hasFewChoices(name: string): boolean {
    const schema = mergedSchema(ownValue(this.model.properties, name), this.model.view.root);
    return Array.isArray(schema.enum) || schema.type === 'boolean' || /^(state|status)$/.test(plainName(name));
  }
}

/** A name, and its last part: `acme/site` is found as `site` too. */
function namesIn(label: unknown): string[] {
  return typeof label === 'string' ? [textOf(label), textOf(label.split('/').at(-1))] : [];
}

/** A member by its name in any spelling. */
export function ownValue(values: Item, name: string): unknown {
  if (Object.hasOwn(values, name)) return values[name];
  const plain = plainName(name);
  const same = Object.keys(values).find((one) => plainName(one) === plain);
  return same === undefined ? undefined : values[same];
}

/** `state: closed` where a schema has a `closed` of its own, `status: open` where it says `state`: the words a schema uses. */
function spelled(given: Item, schema: unknown, root: unknown): Item {
  const { properties } = mergedSchema(schema, root);
  if (!isObject(properties)) return given;
  const words = { ...given };
  const state = ownValue(given, 'state') ?? ownValue(given, 'status');
  if (typeof state !== 'string') return words;
  for (const [name, member] of Object.entries(properties)) {
    const plain = plainName(name);
    const { type } = mergedSchema(member, root);
    if ((plain === 'state' || plain === 'status') && ownValue(given, name) === undefined) words[name] = state;
    const isFlag = type === 'boolean' && ownValue(given, name) === undefined;
    if (isFlag && (plain === plainName(state) || plain === `is${plainName(state)}`)) words[name] = true;
    if (isFlag && /^(is)?(done|completed|closed|archived|finished)$/.test(plain) && state === 'open')
      words[name] = false;
    if (isFlag && /^(is)?(done|completed|finished)$/.test(plain) && /^(done|completed|finished)$/.test(state))
      words[name] = true;
  }
  return words;
}

function inType(id: string | number, type: unknown): unknown {
  const types = Array.isArray(type) ? (type as unknown[]) : [type];
  const own = jsonType(id);
  if (type === undefined || types.includes(own) || (own === 'integer' && types.includes('number'))) return id;
  if (types.includes('string')) return String(id);
  return /^\d{1,15}$/.test(String(id)) ? Number(id) : undefined;
}

/** What values are compared by. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value.trim().toLowerCase();
  return value === undefined ? '\0' : JSON.stringify(value);
}
