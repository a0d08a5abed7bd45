import { quoted } from '../../platform/text/quoted.js';
import { DeclaredSchema } from './declared-schema.js';
import type { Shape } from './shape.js';
import { pathStep } from '../../platform/text/json.js';
import { inferObject, inferTypes } from './schema-inference.js';
import type { Observed } from './tool-shape.repository.js';

/**
 * `unstructured`: results without `structuredContent`. `type`: a value of another type. `missing`: a required member was
 * absent. `forbidden`: a member that the schema forbids. `undeclared`: a member that the schema does not mention.
 */
export const driftKinds = ['unstructured', 'type', 'missing', 'forbidden', 'undeclared'] as const;
export type DriftKind = (typeof driftKinds)[number];

/** One deviation of results from the declared output schema. */
export interface Drift {
  /** JSONPath. */
  path: string;
  kind: DriftKind;
  message: string;
}

/** Most deviations reported of one tool. */
const DRIFTS_MAX = 50;

/** The deviations of a tool's results from its declared output schema. */
export function driftOf(declared: unknown, { samples, structured, shape }: Observed): Drift[] {
  const unstructured = samples - structured;
  const first: Drift[] =
    unstructured === 0
      ? []
      : [
          {
            path: '$',
            kind: 'unstructured',
            message: `${unstructured} of ${samples} answers had no structuredContent, which a tool with an output schema must send.`,
          },
        ];
  if (structured === 0) return first;
  // Results without structured content are texts or lists, which are no deviation.
  const seen = unstructured === 0 ? shape : { ...shape, texts: null, lists: null };
  return [...first, ...new Comparison(new DeclaredSchema(declared)).at('$', undefined, seen)].slice(0, DRIFTS_MAX);
}

class Comparison {
  constructor(private readonly declared: DeclaredSchema) {}

  /** @param schema undefined for the whole schema */
  at(path: string, schema: unknown, shape: Shape): Drift[] {
    const place = this.declared.read(schema);
    if (!place || shape.isOpaque) return [];
    const { lists, objects } = shape;
    const { fields = [] } = objects ? inferObject(objects) : {};
    const objectCount = objects?.count ?? 0;
    return [
      ...wrongTypes(path, place.types, shape),
      ...place.required.flatMap((name) => missing(path, name, objects?.isMap ? null : objects, objectCount)),
      ...fields.flatMap(([name, field]) =>
        this.member(path + pathStep(name), place.member(name), place.isClosed, field),
      ),
      ...(lists && place.items !== null ? this.at(`${path}[*]`, place.items, lists.items) : []),
    ];
  }

  private member(path: string, schema: unknown, isClosed: boolean, field: Shape): Drift[] {
    if (schema !== null) return this.at(path, schema, field);
    const message = isClosed
      ? 'It is there, and the output schema forbids it.'
      : 'It is there, and the output schema does not mention it.';
    return [{ path, kind: isClosed ? 'forbidden' : 'undeclared', message }];
  }
}

function wrongTypes(path: string, types: Set<string> | null, shape: Shape): Drift[] {
  if (!types) return [];
  const wrong = inferTypes(shape).filter((type) => !types.has(type) && !(type === 'integer' && types.has('number')));
  if (wrong.length === 0) return [];
  const message = `It is declared as ${[...types].join(' or ')}, and was ${wrong.join(' or ')}.`;
  return [{ path, kind: 'type', message }];
}

function missing(path: string, name: string, objects: Shape['objects'], of: number): Drift[] {
  const seen = objects?.fields.get(name)?.count ?? 0;
  // The member may be among those whose names are not stored.
  if (!objects || seen >= of || (objects.rest && !objects.fields.has(name))) return [];
  const message = `${quoted(name)} is required, and was missing in ${of - seen} of ${of}.`;
  return [{ path: path + pathStep(name), kind: 'missing', message }];
}
