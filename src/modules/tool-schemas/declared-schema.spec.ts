import { describe, expect, it } from '@jest/globals';
import { DeclaredSchema } from './schema-drift.js';

const ref = (name: string) => ({ $ref: `#/$defs/${name}` });

describe('a declared output schema', () => {
  it('is read through references and alternatives', () => {
    const schema = {
      anyOf: [ref('text'), { anyOf: [ref('none'), ref('list')] }],
      $defs: { text: { type: 'string' }, none: { type: 'null' }, list: { type: 'array', items: { type: 'integer' } } },
    };
    const place = new DeclaredSchema(schema).read();
    expect([...(place?.types ?? [])]).toEqual(['string', 'null', 'array']);
    expect(place?.items).toEqual({ type: 'integer' });
  });

  it.each([
    ['itself', { anyOf: Array.from({ length: 5_000 }, () => ({ $ref: '#' })) }],
    [
      'more and more alternatives',
      {
        ...ref('d0'),
        $defs: Object.fromEntries(
          Array.from({ length: 8 }, (_, at) => [
            `d${at}`,
            at === 7 ? { type: 'string' } : { anyOf: Array.from({ length: 100 }, () => ref(`d${at + 1}`)) },
          ]),
        ),
      },
    ],
  ])('that consists of %s is ignored', (_, schema) => {
    expect(new DeclaredSchema(schema).read()).toBeNull();
  });
});
