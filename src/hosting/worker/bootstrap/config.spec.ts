import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import * as z3 from 'zod/v3';
import { readConfig, type Schema } from './config.js';

const read = (query: string, schema: Schema | null = null, parser?: unknown) =>
  readConfig(new URLSearchParams(query), schema, parser);

describe('the configuration of a caller', () => {
  it('changes no prototype, by name or inside of a value', async () => {
    const query = '__proto__.x=1&a.__proto__=1&constructor.prototype.x=1&b={"__proto__":{"x":1},"y":1}&.=1&a..b=1';
    expect(await read(query)).toEqual({ config: { b: { y: 1 } } });
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });

  it('fills in defaults also inside of missing groups, and drops members that a closed schema does not list', async () => {
    const schema: Schema = {
      type: 'object',
      properties: {
        db: { type: 'object', properties: { port: { type: 'number', default: 5432 }, host: { type: 'string' } } },
        empty: { type: 'object', properties: { x: { type: 'string' } } },
      },
      additionalProperties: false,
    };
    expect(await read('utm=1', schema)).toEqual({ config: { db: { port: 5432 } } });
    expect(await read('db.host=h', schema)).toEqual({ config: { db: { port: 5432, host: 'h' } } });
  });

  it('stops at cyclic references', async () => {
    const round: Schema = { $defs: { a: { $ref: '#/$defs/a' } }, properties: { x: { $ref: '#/$defs/a' } } };
    expect(await read('x=1', round)).toEqual({ config: { x: 1 } });
    const tree: Schema = { type: 'object', properties: { next: { $ref: '#' }, n: { type: 'integer', default: 1 } } };
    expect(await read('next.n=2', tree)).toEqual({ config: { next: { n: 2 }, n: 1 } });
    expect(
      await read('x=1', { properties: { x: { $ref: '#/$defs/a' } }, $defs: { a: { anyOf: [{ $ref: '#/$defs/a' }] } } }),
    ).toEqual({ config: { x: 1 } });
  });

  it.each([
    ['zod 4', z.object({ key: z.string(), n: z.number().default(3) })],
    ['zod 3', z3.object({ key: z3.string(), n: z3.number().default(3) })],
  ])('asks the object of %s a module exports, which keeps text where it wants text', async (_name, parser) => {
    expect(await read('key=5000', null, parser)).toEqual({ config: { key: '5000', n: 3 } });
    expect(await read('key=a&n=b', null, parser)).toMatchObject({ errors: [{ path: 'n' }] });
  });
});
