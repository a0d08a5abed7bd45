import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { pasted } from '../../../test/support/documentation/zod-expression.js';
import { toZodText } from './tool-schema.mapper.js';
import { mergeShapes, shapeOf, type ObjectShape, type Shape } from './shape.js';

/** The most names of one object that count as fields; written out, so that a change of the limit is seen. */
const FIELDS_MAX = 128;

/** An object with fields `f0x`, `f1x`, …, or others from `from` on. */
function objectWith(count: number, from = 0): object {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`f${from + i}x`, i]));
}

function objectsOf({ objects }: Shape): ObjectShape {
  if (!objects) throw new Error('This shape has no objects.');
  return objects;
}

describe('an object', () => {
  it('has fields up to the limit, and is a dictionary above it', () => {
    const full = objectsOf(shapeOf(objectWith(FIELDS_MAX)));
    expect([full.isMap, full.fields.size, full.rest]).toEqual([false, FIELDS_MAX, null]);
    const over = objectsOf(shapeOf(objectWith(FIELDS_MAX + 1)));
    expect([over.isMap, over.fields.size, over.rest?.integers]).toEqual([true, 0, FIELDS_MAX + 1]);
  });

  it('is a dictionary if the merged fields of several results exceed the limit', () => {
    const half = FIELDS_MAX / 2;
    const full = objectsOf(mergeShapes(shapeOf(objectWith(half)), shapeOf(objectWith(half, half))));
    expect([full.isMap, full.fields.size]).toEqual([false, FIELDS_MAX]);
    const over = objectsOf(mergeShapes(shapeOf(objectWith(half)), shapeOf(objectWith(half + 1, half))));
    expect([over.isMap, over.fields.size, over.rest?.integers]).toEqual([true, 0, FIELDS_MAX + 1]);
  });

  it('stays a dictionary when merged with an object of few fields, in either order', () => {
    const [map, few] = [shapeOf(objectWith(FIELDS_MAX + 1)), shapeOf(objectWith(2))];
    for (const { count, isMap, fields, rest } of [mergeShapes(map, few), mergeShapes(few, map)].map(objectsOf)) {
      expect([count, isMap, fields.size, rest?.integers]).toEqual([2, true, 0, FIELDS_MAX + 3]);
    }
  });

  it('folds some names away without constraining other members', () => {
    const expression = toZodText(shapeOf({ 'xs:name': 1, 'a\\b': 2, constructor: 3, '4711': 4 }));
    expect(expression).toBe('z.object({ "xs:name": z.number().optional() })');
    expect(pasted(expression, z).safeParse({ 'xs:name': 5, foo: 's', constructor: 's' }).success).toBe(true);
  });
});
