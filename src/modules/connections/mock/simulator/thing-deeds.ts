import { isObject } from '../../../../platform/text/json.js';
import { plainName, plural } from './names.js';
import { choicesOf, mergedSchema } from './schema-parts.js';
import { listPlace, nested, replacedAt, thingPlace } from './schema-places.js';
import { satisfyingValue } from './schema-value.js';
import type { ToolModel } from './server-model.js';
import { errorResult, structuredResult, textResult, type Answered, type Item, type ToolResult } from './simulator.js';
import { limitNames, ownValue, queryNames, type ThingKeeper } from './thing-keeper.js';
import { idNames, propertiesOf, type ToolMeaning } from './tool-meaning.js';
import { thingsOf, withChanged, withoutThing, withThing, type Thing, type World } from './world.js';

/** What one answer lists when nobody says how much. */
const LIST_USUAL = 30;
const LIST_MAX = 500;

/** Things one call may create. */
const BATCH_MAX = 100;

/** Members of arguments that hold what is to be changed. */
const CHANGES = /^(fields|data|updates?|patch|changes|attributes|properties|values)$/;

/** Carries one call out on the things of a kind. */
export class ThingDeeds {
  private readonly meaning: ToolMeaning;
  private readonly kind: string;

  /** @param seed of this call, for what is not about a thing */
  constructor(
    private readonly keeper: ThingKeeper,
    private readonly tool: ToolModel,
    private readonly seed: string,
  ) {
    this.meaning = tool.meaning as ToolMeaning;
    this.kind = this.meaning.kind;
  }

  /** @returns null when the tool's arguments do not say what to do it to. @throws UnsatisfiableError */
  carryOut(given: Item, world: World): Answered | null {
    const { deed, idArgument } = this.meaning;
    if (deed === 'create') return this.create(given, world);
    if (deed === 'list' || deed === 'search') return { result: this.list(given, world), world };
    if (idArgument === null || given[idArgument] === undefined) return null;
    const { [idArgument]: id, ...others } = given;
    if (typeof id === 'object') return null;
    const filters = deed === 'update' ? this.unchanging(others) : others;
    const thing = this.keeper.find(world, idArgument, id, filters);
    if (!thing)
      return deed === 'update' && this.meaning.isUpsert
        ? this.add(given, world, [given], id)
        : this.notFound(id, world);
    if (deed === 'get') return { result: this.one(thing, filters), world };
    if (deed === 'delete')
      return { result: this.deleted(thing, id), world: withoutThing(world, this.kind, thing.number) };
    return this.update(thing, others, world);
  }

  private create(given: Item, world: World): Answered {
    const many = Object.entries(given).find(
      ([name, value]) => isManyOf(this.kind, name) && Array.isArray(value) && value.every(isObject),
    );
    if (many) return this.add(given, world, (many[1] as Item[]).slice(0, BATCH_MAX));
    const { idArgument } = this.meaning;
    const id = idArgument === null ? undefined : given[idArgument];
    if (idArgument !== null && id !== undefined && this.keeper.find(world, idArgument, id, {})) {
      return { result: errorResult(`${titled(this.kind)} ${shown(id)} already exists`), world };
    }
    return this.add(given, world, [given], id);
  }

  private add(given: Item, before: World, all: Item[], id?: unknown): Answered {
    let world = before;
    const made = all.map((one) => {
      const thing = this.keeper.create(world, one, this.beginnings(one), id);
      world = withThing(world, this.kind, thing);
      return thing;
    });
    const [first] = made;
    const list = made.length === 1 && all[0] === given ? null : this.listed(made, given, made.length);
    return { result: list ?? (first ? this.one(first, {}) : this.told([], {}, {})), world };
  }

  /** What a new thing is where its creator says nothing: the defaults of the tool, and the first of the states. */
  private beginnings(said: Item): Item {
    const found: Item = { ...this.keeper.model.firstState };
    for (const [name, schema] of Object.entries(propertiesOf(this.tool.tool.inputSchema))) {
      const { default: fallback } = mergedSchema(schema, this.tool.tool.inputSchema);
      if (fallback !== undefined && fallback !== null) found[name] = fallback;
    }
    return Object.fromEntries(Object.entries(found).filter(([name]) => ownValue(said, name) === undefined));
  }

  private update(thing: Thing, others: Item, world: World): Answered {
    const { leaves } = this.meaning;
    const said: Item = Object.fromEntries<unknown>(
      Object.entries(others).flatMap(([name, value]) =>
        CHANGES.test(plainName(name)) && isObject(value) ? Object.entries(value) : [[name, value]],
      ),
    );
    const state = leaves === null ? {} : this.stateAfter(leaves);
    const changed = { ...thing, given: { ...thing.given, ...said, ...state } };
    return { result: this.one(changed, {}), world: withChanged(world, this.kind, changed) };
  }

  /** In the word that the server uses for it. */
  private stateAfter(leaves: string): Item {
    const { properties, view } = this.keeper.model;
    for (const [name, schema] of Object.entries(properties)) {
      const merged = mergedSchema(schema, view.root);
      const stem = leaves.replace(/e?d$/, '');
      const choice = choicesOf(merged).find((one) => plainName(one).startsWith(stem));
      if (choice !== undefined) return { [name]: choice };
      if (merged.type === 'boolean' && /^(is)?(done|completed|finished)$/.test(plainName(name)))
        return { [name]: leaves !== 'open' };
    }
    const state = Object.keys(properties).find((name) => /^(state|status)$/i.test(name));
    return { [state ?? 'state']: leaves };
  }

  /** Of an update's arguments those that say which thing is meant: what only reading tools and no new value may say. */
  private unchanging(others: Item): Item {
    const { creatable } = this.keeper.model;
    const answers = new Set(
      Object.keys(propertiesOf(this.keeper.model.view.schema, this.keeper.model.view.root)).map(plainName),
    );
    const isOther = (name: string) =>
      !creatable.has(plainName(name)) && !answers.has(plainName(name)) && !CHANGES.test(plainName(name));
    return Object.fromEntries(
      Object.entries(others).filter(
        ([name]) => /^(owner|repo|project|workspace|org|parent|namespace)$/i.test(name) && isOther(name),
      ),
    );
  }

  private list(given: Item, world: World): ToolResult {
    const query = Object.entries(given).find(
      ([name, value]) => queryNames.test(plainName(name)) && typeof value === 'string',
    );
    const passing = thingsOf(world, this.kind)
      .filter((thing) => this.keeper.passes(thing, given))
      .filter((thing) => query === undefined || this.keeper.isFound(thing, query[1] as string));
    return this.listed(pageOf(passing, given), given, passing.length) ?? this.told([], {}, { total: passing.length });
  }

  /** @returns null when the tool's answers have no place for a list */
  private listed(things: readonly Thing[], given: Item, total: number): ToolResult | null {
    const schema = this.tool.outputSchema;
    if (!schema) return textResult(JSON.stringify(things.map((thing) => this.plain(thing))));
    const place = listPlace(schema, this.kind);
    if (!place) return null;
    const alike = this.filtersIn(given);
    const isText = mergedSchema(place.schema, schema).type === 'string';
    const items = things.map((thing) =>
      isText ? this.nameOf(thing) : this.keeper.shown(thing, place.schema, schema, alike),
    );
    return this.told(place.path, items, this.around(schema, total, things.length));
  }

  private one(thing: Thing, asked: Item): ToolResult {
    const schema = this.tool.outputSchema;
    if (!schema) return textResult(JSON.stringify(this.plain(thing)));
    const place = thingPlace(schema, this.kind);
    const value = this.keeper.shown(thing, place.schema, schema, this.filtersIn(asked));
    return this.told(place.path, value, this.around(schema, 1, 1));
  }

  private deleted(thing: Thing, id: unknown): ToolResult {
    if (!this.tool.outputSchema) return textResult(`${titled(this.kind)} ${shown(id)} was deleted`);
    return this.one(thing, {});
  }

  private notFound(id: unknown, world: World): Answered {
    return { result: errorResult(`${titled(this.kind)} ${shown(id)} not found`), world };
  }

  /** Members beside the things: that it worked, how many there are, and that there are no more pages. */
  private around(schema: Item, total: number, count: number): Item {
    const found: Item = {};
    for (const [name, member] of Object.entries(propertiesOf(schema))) {
      const { type } = mergedSchema(member, schema);
      const plain = plainName(name);
      if (type === 'boolean' && /^(success|successful|ok|deleted|removed|created|updated|archived|found)$/.test(plain))
        found[name] = true;
      if (type === 'boolean' && /^(hasmore|hasnext|hasnextpage|incomplete|incompleteresults|truncated)$/.test(plain))
        found[name] = count < total;
      if (/^(total|totalcount|totalresults|totalitems|nbhits)$/.test(plain)) found[name] = total;
      if (/^(count|size|length|returned)$/.test(plain)) found[name] = count;
      if (/^(nextcursor|nextpage|nextpagetoken|cursor)$/.test(plain) && Array.isArray(type) && type.includes('null'))
        found[name] = null;
    }
    return this.meaning.deed === 'get' ? {} : found;
  }

  /** The result with `value` at its place, as it is if the schema allows, and the rest made up. */
  private told(path: readonly string[], value: unknown, around: Item): ToolResult {
    const schema = this.tool.outputSchema ?? {};
    const given = { ...(nested(path, value) as Item), ...around };
    const wish = { seed: this.seed, given };
    const exact = path.length === 0 ? given : replacedAt(satisfyingValue(schema, null, wish), path, value);
    const isAllowed = this.tool.checkOutput?.(exact) == null;
    return structuredResult(isAllowed ? exact : satisfyingValue(schema, this.tool.checkOutput, wish));
  }

  /** A thing where no schema says how it looks. */
  private plain(thing: Thing): Item {
    return { id: thing.id, ...(thing.isCreated ? thing.given : this.keeper.view(thing)) };
  }

  private nameOf(thing: Thing): unknown {
    return this.keeper.view(thing)[this.keeper.model.label] ?? String(thing.id);
  }

  /** What was asked for, less what says how much of it. */
  private filtersIn(given: Item): Item {
    const ids = new Set(idNames(this.kind));
    return Object.fromEntries(
      Object.entries(given).filter(([name, value]) => {
        const plain = plainName(name);
        return (
          typeof value !== 'object' &&
          value !== 'all' &&
          !ids.has(plain) &&
          !limitNames.test(plain) &&
          !queryNames.test(plain)
        );
      }),
    );
  }
}

function isManyOf(kind: string, name: string): boolean {
  const plain = plainName(name);
  return (
    plain === plainName(plural(kind)) ||
    plain === plainName(plural(kind.split('_').at(-1) ?? kind)) ||
    plain === 'items'
  );
}

function pageOf(things: readonly Thing[], given: Item): readonly Thing[] {
  const number = (pattern: RegExp) => {
    const value = Object.entries(given).find(([name]) => pattern.test(plainName(name)))?.[1];
    return typeof value === 'number' && value >= 0 ? Math.floor(value) : null;
  };
  const limit = Math.min(number(limitNames) ?? LIST_USUAL, LIST_MAX);
  const page = number(/^page(number)?$/);
  const offset = number(/^(offset|skip)$/) ?? (page === null ? 0 : Math.max(0, page - 1) * limit);
  return things.slice(offset, offset + limit);
}

function titled(kind: string): string {
  return kind.charAt(0).toUpperCase() + kind.slice(1).replaceAll('_', ' ');
}

function shown(id: unknown): string {
  return String(id).slice(0, 200);
}
