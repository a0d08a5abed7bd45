import type { Shape } from './shape.js';
import { inferFormat, inferObject, inferTypes } from './schema-inference.js';

/** One place of a tool's answers. */
export interface ShapeField {
  /** JSONPath (RFC 9535): `$.items[*].name`. */
  path: string;
  /** In which share of the objects around it a member was; 1 for what has no name of its own. */
  presence: number;
  /** Types of JSON Schema; empty when nothing is known. */
  types: string[];
  format?: string;
}

/** Every place of a shape, outer ones first. */
export function fieldsOf(shape: Shape): ShapeField[] {
  return placesOf(shape, '$', 1);
}

function placesOf(shape: Shape, path: string, presence: number): ShapeField[] {
  const { texts, lists, objects } = shape;
  const format = texts && inferFormat(texts);
  const here: ShapeField = { path, presence, types: inferTypes(shape), ...(format && { format }) };
  const told = objects && inferObject(objects);
  return [
    here,
    ...(lists ? placesOf(lists.items, `${path}[*]`, 1) : []),
    ...(told?.fields ?? []).flatMap(([name, field]) =>
      placesOf(field, path + step(name), share(field.count, objects?.count ?? 0)),
    ),
    ...(told?.rest ? placesOf(told.rest, `${path}.*`, 1) : []),
  ];
}

/** To three decimals; what was missing once is not 1. */
function share(seen: number, of: number): number {
  return seen >= of ? 1 : Math.min(0.999, Math.round((seen / of) * 1_000) / 1_000);
}

/** One step of a JSONPath. */
export function step(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}
