import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import * as z3 from 'zod/v3';
import { readConfig } from './config.js';
import type { Schema } from './config-json-schema.js';

const read = (query: string, schema: Schema | null = null, parser?: unknown) =>
  readConfig(new URLSearchParams(query), schema, parser);

describe('the configuration of a caller', () => {
  it('nests at dots, reads valid JSON, and keeps other text', async () => {
    expect(await read('a.b=1&a.c=x&on=true&list=[1,2]&text="5"')).toEqual({
      config: { a: { b: 1, c: 'x' }, on: true, list: [1, 2], text: '5' },
    });
  });

  it('changes no prototype, by name or inside of a value, and nests 8 levels at most', async () => {
    const query = '__proto__.x=1&a.__proto__=1&constructor.prototype.x=1&b={"__proto__":{"x":1},"y":1}&.=1&a..b=1';
    expect(await read(`${query}&1.2.3.4.5.6.7.8.9=1`)).toEqual({ config: { b: { y: 1 } } });
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });

  it('keeps the first of a value and a group of one name', async () => {
    expect(await read('a=1&a.b=2')).toEqual({ config: { a: 1 } });
    expect(await read('a.b=2&a=1')).toEqual({ config: { a: { b: 2 } } });
  });

  it('converts a value to the type of its schema', async () => {
    const schema: Schema = {
      type: 'object',
      $defs: { port: { type: 'integer' } },
      properties: {
        key: { type: 'string' },
        port: { $ref: '#/$defs/port' },
        tags: { type: 'array', items: { type: 'string' } },
        mode: { enum: ['1', '2'] },
        maybe: { anyOf: [{ type: 'number' }, { type: 'null' }] },
      },
    };
    expect(await read('key=5000&port=80&tags=1&tags=2&mode=1&maybe=null&other=7', schema)).toEqual({
      config: { key: '5000', port: 80, tags: ['1', '2'], mode: '1', maybe: null, other: 7 },
    });
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

  const errors: [Schema, string, string, string][] = [
    [{ type: 'integer' }, '1.5', 'a', 'must be integer'],
    [{ type: 'integer', maximum: 3 }, '4', 'a', 'must be at most 3'],
    [{ type: 'number', exclusiveMinimum: 0 }, '0', 'a', 'must be more than 0'],
    [{ type: 'number', multipleOf: 5 }, '6', 'a', 'must be a multiple of 5'],
    [{ type: 'boolean' }, 'yes', 'a', 'must be boolean'],
    [{ type: 'string', pattern: '^x' }, 'y', 'a', 'must match ^x'],
    [{ type: 'string', minLength: 2 }, 'y', 'a', 'must have at least 2 characters'],
    [{ enum: ['u', 'v'] }, 'w', 'a', 'must be one of "u", "v"'],
    [{ type: 'array', items: { type: 'number' }, maxItems: 1 }, '[1,2]', 'a', 'must have at most 1 items'],
    [{ type: 'array', items: { type: 'number' } }, '["x"]', 'a.0', 'must be number'],
    [{ oneOf: [{ type: 'number' }, { type: 'boolean' }] }, 'x', 'a', 'matches none of the allowed forms'],
  ];

  it.each(errors)('names the field that does not fit %j', async (property, value, path, message) => {
    const schema: Schema = { type: 'object', properties: { a: property } };
    expect(await read(`a=${value}`, schema)).toEqual({ errors: [{ path, message }] });
  });

  it('stops at cyclic references and ignores an invalid pattern', async () => {
    const round: Schema = { $defs: { a: { $ref: '#/$defs/a' } }, properties: { x: { $ref: '#/$defs/a' } } };
    expect(await read('x=1', round)).toEqual({ config: { x: 1 } });
    const tree: Schema = { type: 'object', properties: { next: { $ref: '#' }, n: { type: 'integer', default: 1 } } };
    expect(await read('next.n=2', tree)).toEqual({ config: { next: { n: 2 }, n: 1 } });
    expect(
      await read('x=1', { properties: { x: { $ref: '#/$defs/a' } }, $defs: { a: { anyOf: [{ $ref: '#/$defs/a' }] } } }),
    ).toEqual({ config: { x: 1 } });
    expect(await read('x=y', { properties: { x: { type: 'string', pattern: '[' } } })).toEqual({ config: { x: 'y' } });
  });

  it.each([
    ['zod 4', z.object({ key: z.string(), n: z.number().default(3) })],
    ['zod 3', z3.object({ key: z3.string(), n: z3.number().default(3) })],
  ])('asks the object of %s a module exports, which keeps text where it wants text', async (_name, parser) => {
    expect(await read('key=5000', null, parser)).toEqual({ config: { key: '5000', n: 3 } });
    expect(await read('key=a&n=b', null, parser)).toMatchObject({ errors: [{ path: 'n' }] });
  });
});
