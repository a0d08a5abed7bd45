import { pathStep } from '../../platform/text/json.js';
import type { Shape } from './shape.js';
import { inferFormat, inferObject, inferTypes } from './schema-inference.js';

/** One place of a tool's results. */
export interface ShapeField {
  /** JSONPath (RFC 9535): `$.items[*].name`. */
  path: string;
  /** Share of the enclosing objects that have the member; 1 for elements. */
  presence: number;
  /** Types of JSON Schema; empty when unknown. */
  types: string[];
  format?: string;
}

/** All places of a shape, outer ones first. */
export function fieldsOf(shape: Shape): ShapeField[] {
  return placesOf(shape, '$', 1);
}

function placesOf(shape: Shape, path: string, presence: number): ShapeField[] {
  const { texts, lists, objects } = shape;
  const format = texts && inferFormat(texts);
  const here: ShapeField = { path, presence, types: inferTypes(shape), ...(format && { format }) };
  const inferred = objects && inferObject(objects);
  return [
    here,
    ...(lists ? placesOf(lists.items, `${path}[*]`, 1) : []),
    ...(inferred?.fields ?? []).flatMap(([name, field]) =>
      placesOf(field, path + pathStep(name), share(field.count, objects?.count ?? 0)),
    ),
    ...(inferred?.rest ? placesOf(inferred.rest, `${path}.*`, 1) : []),
  ];
}

/** Rounded to three decimals; below 1 when it was missing once. */
function share(seen: number, of: number): number {
  return seen >= of ? 1 : Math.min(0.999, Math.round((seen / of) * 1_000) / 1_000);
}
