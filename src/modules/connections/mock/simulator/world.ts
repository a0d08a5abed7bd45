import type { Item } from './item.js';

/** Things of all kinds that a mock remembers. */
const THINGS_MAX = 2_000;

/** What it remembers of them, as JSON. */
const WORLD_CHARS_MAX = 4 * 1024 * 1024;

/** One issue, user or file of a simulated server. What nobody said of it is made up from its number, the same each time. */
export interface Thing {
  /** Counts the things of its kind from 1, deleted ones included. */
  number: number;
  id: string | number;
  /** What was said of it, by the scenario or by calls. */
  given: Item;
  /** A call made it: what that call could have said and did not, it does not have. */
  isCreated?: boolean;
}

/** Where a simulated server stands after some calls. A value: it is replaced, never changed, and goes through JSON unharmed. */
export interface World {
  /** By kind, in the order they were made. */
  things: Record<string, Thing[]>;
  /** The number of the last thing of each kind. */
  lastNumbers: Record<string, number>;
  /** Calls so far, by tool. */
  calls: Record<string, number>;
  /** How often a recorded call was answered, by its key. */
  replayed: Record<string, number>;
}

export const emptyWorld: World = { things: {}, lastNumbers: {}, calls: {}, replayed: {} };

/** The world with one call of a tool more. */
export function counted(world: World, tool: string): World {
  return { ...world, calls: { ...world.calls, [tool]: countIn(world.calls, tool) + 1 } };
}

/** A count by name; 0 for names that are not there, also for those every object has. */
export function countIn(counts: Record<string, number>, name: string): number {
  return Object.hasOwn(counts, name) ? counts[name] : 0;
}

export function thingsOf(world: World, kind: string): readonly Thing[] {
  return Object.hasOwn(world.things, kind) ? world.things[kind] : [];
}

/** The number the next thing of a kind will have. */
export function nextNumber(world: World, kind: string): number {
  return countIn(world.lastNumbers, kind) + 1;
}

/**
 * The world with one thing more. Beyond 2,000 things, or 4 MB of them, the oldest of their kind are forgotten: those are
 * then not found any more.
 */
export function withThing(world: World, kind: string, thing: Thing): World {
  const things = { ...world.things, [kind]: [...thingsOf(world, kind), thing] };
  return bounded({ ...world, things, lastNumbers: { ...world.lastNumbers, [kind]: thing.number } }, kind);
}

/** The world with `thing` in place of the one that has its number. */
export function withChanged(world: World, kind: string, thing: Thing): World {
  const changed = thingsOf(world, kind).map((one) => (one.number === thing.number ? thing : one));
  return bounded({ ...world, things: { ...world.things, [kind]: changed } }, kind);
}

export function withoutThing(world: World, kind: string, number: number): World {
  const left = thingsOf(world, kind).filter((one) => one.number !== number);
  return { ...world, things: { ...world.things, [kind]: left } };
}

function bounded(world: World, kind: string): World {
  let { things } = world;
  const count = () => Object.values(things).reduce((sum, list) => sum + list.length, 0);
  const left = () => thingsOf({ ...world, things }, kind).length;
  const forget = () => (things = { ...things, [kind]: (things[kind] ?? []).slice(1) });
  while (count() > THINGS_MAX && left() > 1) forget();
  while (left() > 0 && JSON.stringify(things).length > WORLD_CHARS_MAX) forget();
  return { ...world, things };
}
