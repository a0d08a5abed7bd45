import type { Shape } from './shape.js';
import { inferTypes } from './schema-inference.js';

/** What was seen less often may be one caller's alone. */
const SEEN_MIN = 3;

/**
 * What of a shape may be told to those who did not get the answers: members seen at least 3 times. Null unless answers are
 * objects, as MCP wants of an output schema, and there were 3.
 */
export function publishableShape(shape: Shape): Shape | null {
  const isObjects = inferTypes(shape).join() === 'object' && shape.count >= SEEN_MIN;
  return isObjects ? withoutRare(shape) : null;
}

function withoutRare(shape: Shape): Shape {
  const { lists, objects } = shape;
  return {
    ...shape,
    lists: lists && { ...lists, items: withoutRare(lists.items) },
    objects: objects && {
      ...objects,
      fields: new Map(
        [...objects.fields]
          .filter(([, field]) => field.count >= SEEN_MIN)
          .map(([name, field]) => [name, withoutRare(field)]),
      ),
      rest: objects.rest && withoutRare(objects.rest),
    },
  };
}
