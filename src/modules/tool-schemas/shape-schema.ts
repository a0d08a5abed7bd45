import type { Shape } from './shape.js';
import { inferFormat, inferObject, inferTypes, inferEnum } from './schema-inference.js';

const DIALECT = 'https://json-schema.org/draft/2020-12/schema';

type Schema = Record<string, unknown>;

/** The shape as JSON Schema 2020-12. Accepts every sampled value; no member is required. */
export function toJsonSchema(shape: Shape): Schema {
  return { $schema: DIALECT, ...schemaOf(shape) };
}

/** Every keyword but `enum` applies to one type only, so a union lists its types. */
function schemaOf(shape: Shape): Schema {
  const types = inferTypes(shape);
  if (types.length === 0) return {};
  const { texts, lists, objects } = shape;
  const words = texts && types.every((type) => type === 'string' || type === 'null') ? inferEnum(texts) : null;
  const format = texts && !words ? inferFormat(texts) : null;
  return {
    type: types.length === 1 ? types[0] : types,
    ...(words && { enum: shape.nulls > 0 ? [...words, null] : words }),
    ...(format && { format }),
    ...(lists && { items: schemaOf(lists.items) }),
    ...(objects && membersOf(inferObject(objects))),
  };
}

function membersOf({ fields, rest }: ReturnType<typeof inferObject>): Schema {
  return {
    ...(fields.length > 0 && {
      properties: Object.fromEntries(fields.map(([name, field]) => [name, schemaOf(field)])),
    }),
    ...(rest && { additionalProperties: schemaOf(rest) }),
  };
}
