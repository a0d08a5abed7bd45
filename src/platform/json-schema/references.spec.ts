import { describe, expect, it } from '@jest/globals';
import { referenced, resolveRef } from './references.js';

const root = {
  $defs: {
    text: { type: 'string', description: 'a text' },
    'a/b~c d': { type: 'integer' },
    loop: { $ref: '#/$defs/loop' },
    never: false,
  },
  properties: { choice: { oneOf: [{ type: 'null' }, true] } },
};

describe('a local reference', () => {
  it.each([
    ['#', root],
    ['#/$defs/text', root.$defs.text],
    ['#/$defs/a~1b~0c%20d', { type: 'integer' }],
    ['#/properties/choice/oneOf/0', { type: 'null' }],
    ['#/properties/choice/oneOf/1', true],
  ])('%s leads to a schema', (reference, target) => {
    expect(referenced(reference, root)).toEqual(target);
  });

  it.each([
    '#anchor',
    '#/$defs/missing',
    '#/constructor',
    '#/$defs/text/type/length',
    'https://example.com/schema#/$defs/text',
    '#/%E0%A4%A',
    `#${'/$defs'.repeat(1_000)}`,
  ])('%s leads nowhere', (reference) => {
    expect(referenced(reference, root)).toBeUndefined();
  });
});

describe('a resolved schema', () => {
  it('has the keywords of its target, and its own over them', () => {
    expect(resolveRef({ $ref: '#/$defs/text', description: 'a name' }, root)).toEqual({
      type: 'string',
      description: 'a name',
    });
  });

  it('keeps a reference without a target and one in a cycle', () => {
    expect(resolveRef({ $ref: '#/nowhere', title: 'x' }, root)).toEqual({ $ref: '#/nowhere', title: 'x' });
    expect(resolveRef({ $ref: '#/$defs/loop' }, root)).toEqual({ $ref: '#/$defs/loop' });
  });

  it('allows nothing for `false`, and everything for a value that is not a schema', () => {
    expect(resolveRef({ $ref: '#/$defs/never' }, root)).toEqual({ not: {} });
    expect([resolveRef(true, root), resolveRef('text', root), resolveRef(undefined, root)]).toEqual([{}, {}, {}]);
  });
});
