import type { Shape } from './shape.js';
import { toldFormat, toldObject, toldTypes, toldWords } from './told-shape.js';

const DIALECT = 'https://json-schema.org/draft/2020-12/schema';

type Schema = Record<string, unknown>;

/** The shape as JSON Schema 2020-12. It accepts every value the shape was made of; no field is required. */
export function toJsonSchema(shape: Shape): Schema {
  return { $schema: DIALECT, ...schemaOf(shape) };
}

/** Keywords but `enum` speak of one type each, so a union needs no more than its types. */
function schemaOf(shape: Shape): Schema {
  const types = toldTypes(shape);
  if (types.length === 0) return {};
  const { texts, lists, objects } = shape;
  const words = texts && types.every((type) => type === 'string' || type === 'null') ? toldWords(texts) : null;
  const format = texts && !words ? toldFormat(texts) : null;
  return {
    type: types.length === 1 ? types[0] : types,
    ...(words && { enum: shape.nulls > 0 ? [...words, null] : words }),
    ...(format && { format }),
    ...(lists && { items: schemaOf(lists.items) }),
    ...(objects && membersOf(toldObject(objects))),
  };
}

function membersOf({ fields, rest }: ReturnType<typeof toldObject>): Schema {
  return {
    ...(fields.length > 0 && {
      properties: Object.fromEntries(fields.map(([name, field]) => [name, schemaOf(field)])),
    }),
    ...(rest && { additionalProperties: schemaOf(rest) }),
  };
}
