import { describe, expect, it } from '@jest/globals';
import { headerParams, paramHeaders, ToolHeaders } from './tool-headers.js';

const marked = (name: unknown, type: unknown = 'string') => ({ type, 'x-mcp-header': name });
const object = (properties: object) => ({ type: 'object', properties });

describe('headerParams', () => {
  it('finds `x-mcp-header` at any depth of properties', () => {
    const schema = object({ a: marked('A'), b: object({ c: marked('C', 'integer'), d: { type: 'string' } }) });
    expect(headerParams(schema)).toEqual([
      { path: ['a'], header: 'mcp-param-a' },
      { path: ['b', 'c'], header: 'mcp-param-c' },
    ]);
    expect(headerParams({})).toEqual([]);
  });

  it.each([
    ['no token', object({ a: marked('a b') })],
    ['empty', object({ a: marked('') })],
    ['no string', object({ a: marked(5) })],
    ['on a number', object({ a: marked('A', 'number') })],
    ['on an object', object({ a: marked('A', 'object') })],
    ['without a type', object({ a: { 'x-mcp-header': 'A' } })],
    ['the same but for case', object({ a: marked('Same'), b: marked('sAME') })],
    ['at the root', { ...object({}), 'x-mcp-header': 'A' }],
    ['below items', object({ a: { type: 'array', items: marked('A') } })],
    ['below properties of items', object({ a: { type: 'array', items: object({ b: marked('B') }) } })],
    ['below anyOf', object({ a: { anyOf: [marked('A')] } })],
    ['below $defs', { ...object({}), $defs: { a: marked('A') } }],
    ['below additionalProperties', { type: 'object', additionalProperties: marked('A') }],
  ])('refuses a mark that is %s', (_, schema) => {
    expect(headerParams(schema)).toBeNull();
  });

  it('ignores a property of that name, and too deep schemas', () => {
    expect(headerParams(object({ 'x-mcp-header': { type: 'string' } }))).toEqual([]);
    let deep: object = {};
    for (let i = 0; i < 10_000; i += 1) deep = { items: deep };
    expect(headerParams(deep)).toBeNull();
  });
});

describe('paramHeaders', () => {
  const params = ['a', 'b'].map((name) => ({ path: ['o', name], header: `mcp-param-${name}` }));
  it.each([
    ['text', 'text'],
    ['', '=?base64??='],
    [' x', '=?base64?IHg=?='],
    ['=?base64?eA==?=', '=?base64?PT9iYXNlNjQ/ZUE9PT89?='],
    ['ü', '=?base64?w7w=?='],
    [true, 'true'],
    [false, 'false'],
    [-7, '-7'],
  ])('writes %j as %s', (value, header) => {
    expect(paramHeaders(params, { o: { a: value } })).toEqual({ 'mcp-param-a': header });
  });

  it.each([null, undefined, {}, [], 2 ** 53, 'x'])('writes no header for a missing value: %j', (value) => {
    expect(paramHeaders(params, value === 'x' ? 'x' : { o: { a: value } })).toEqual({});
    expect(paramHeaders(params, undefined)).toEqual({});
  });
});

describe('ToolHeaders', () => {
  it('is updated by each tool list', () => {
    const tools = new ToolHeaders();
    const text = (inputSchema: object) => JSON.stringify({ name: 't', inputSchema });
    expect(tools.learnHeaders([text(object({ a: marked('A') }))])).toEqual(new Set());
    expect(tools.headersOf('t')).toHaveLength(1);
    expect(tools.learnHeaders(['5', text(object({}))])).toEqual(new Set());
    expect(tools.headersOf('t')).toBeUndefined();
    expect(tools.learnHeaders(['{}', text(object({ a: marked('A', 'number') }))])).toEqual(new Set([1]));
  });
});
