import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { checkModule, type ModuleFacts } from './hosted-module.js';
import { InvalidModuleError } from './hosting.errors.js';
import { randomRuns } from '../../test/support/random-runs.js';

function faultOf(source: string): string {
  try {
    checkModule(source);
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidModuleError);
    return (error as Error).message;
  }
  return 'accepted';
}

describe('a hosted module', () => {
  it('exports a function that creates the server, in any syntax', () => {
    for (const source of [
      'export default function createServer({ config }) { return config; }',
      'export default async function () {}',
      'export default ({ config }) => config',
      'export default (function () {})',
      'function create() {}\nexport default create;',
      'const create = async () => {}; export { create as default };',
      // As esbuild writes it.
      'var src_default = createServer;\nfunction createServer() {}\nexport {\n  src_default as default\n};',
      '\uFEFF#!/usr/bin/env node\nexport default () => 1',
      'let a = () => {}; export { a as "default" }',
    ]) {
      expect(checkModule(source)).toMatchObject({ form: 'factory', exports: ['default'] });
    }
  });

  it('may export an object with fetch; what only a run can show stays unknown', () => {
    const forms: [string, ModuleFacts['form']][] = [
      ['export default { fetch() {} }', 'fetch'],
      ['export default { async fetch(request) {}, scheduled() {} }', 'fetch'],
      ['const worker = { "fetch": handle }; function handle() {} export default worker', 'fetch'],
      ['export default { ...base }; const base = {};', 'unknown'],
      ['export default makeServer(); function makeServer() {}', 'unknown'],
      ['export default class {}', 'unknown'],
      ['let f = () => {}; f = 3; export default f', 'unknown'],
      ['var f; f = () => {}; export { f as default }', 'unknown'],
      ['export { createServer as default } from "node:http"', 'unknown'],
      ['import { createServer } from "node:http"; export default createServer', 'unknown'],
      ['const a = b; const b = a; export default a', 'unknown'],
    ];
    for (const [source, form] of forms) expect([source, checkModule(source).form]).toEqual([source, form]);
  });

  it('names all its exports and its imports', () => {
    const source = `
      import { randomUUID } from 'node:crypto';
      import fs, * as all from 'fs';
      import { DurableObject } from 'cloudflare:workers';
      import 'node:crypto';
      export const { stateful: a, ...rest } = {}, [b, [c = 1]] = [];
      export const configSchema = {}, stateful = true;
      export async function createSandboxServer() { const inner = await import('anything'); }
      export function handleHttp() {}
      export class createAuthAdapter {}
      export * as os from 'os';
      export default () => {};`;
    expect(checkModule(source)).toEqual({
      form: 'factory',
      stateful: true,
      imports: ['node:crypto', 'fs', 'cloudflare:workers', 'os'],
      exports: [
        ...['a', 'rest', 'b', 'c', 'configSchema', 'stateful', 'createSandboxServer', 'handleHttp'],
        ...['createAuthAdapter', 'os', 'default'],
      ],
    });
  });

  it('is stateful or not where its text shows it', () => {
    const said: [string, boolean | null][] = [
      ['', null],
      ['export const stateful = true', true],
      ['export const stateful = false', false],
      ['var s = !0; export { s as stateful }', true],
      ['var s = !1; export { s as stateful }', false],
      ['export let stateful', null],
      ['export const stateful = isIt()', null],
      ['export const stateful = "yes"', null],
      ['const stateful = true', null],
    ];
    for (const [source, stateful] of said) {
      expect([source, checkModule(`export default () => {};${source}`).stateful]).toEqual([source, stateful]);
    }
  });
});

describe('a module that cannot be hosted', () => {
  it('does not parse: the message names place and reason', () => {
    const faults: [string, string][] = [
      ['export default (\n  a: string\n) => a', 'The module has a syntax error at 2:4: Unexpected token.'],
      ['export default () => {', 'The module has a syntax error at 1:23: Unexpected token.'],
      ['let a; let a;', "The module has a syntax error at 1:12: Identifier 'a' has already been declared."],
      ['export { a }', "The module has a syntax error at 1:10: Export 'a' is not defined."],
      ['export default 1; export default 2', "The module has a syntax error at 1:26: Duplicate export 'default'."],
      ['export const a = 1; export { a }', "The module has a syntax error at 1:30: Duplicate export 'a'."],
      ['with (a) {}', "The module has a syntax error at 1:1: 'with' in strict mode."],
    ];
    for (const [source, message] of faults) expect(faultOf(source)).toBe(message);
  });

  it('has an import that is not bundled', () => {
    expect(faultOf('import z from "zod";\nimport { a } from "./a.js";\nexport default () => {}')).toBe(
      'The module imports "zod" (1:1), "./a.js" (2:1), and only Node built-ins are there when it runs: ' +
        'bundle your dependencies into it, as `esbuild --bundle --format=esm --platform=node` does.',
    );
    for (const name of ['https://esm.sh/zod', 'node:nothing', '/etc/passwd', 'data:text/javascript,1', 'crypto2', '']) {
      expect(faultOf(`export { a as default } from ${JSON.stringify(name)}`)).toContain('bundle your dependencies');
      expect(faultOf(`export * from ${JSON.stringify(name)}; export default () => {}`)).toContain('bundle your');
    }
    const many = Array.from({ length: 9 }, (_, i) => `import "p${i}";`).join('\n');
    expect(faultOf(many)).toContain('"p4" (5:1) and 4 more, and only');
  });

  it('has no usable default export', () => {
    expect(faultOf('')).toContain('The module has no default export');
    expect(faultOf('export const a = () => {}')).toContain('The module has no default export');
    expect(faultOf('module.exports = () => {}')).toContain('The module is CommonJS');
    for (const value of ['1', '"x"', 'null', '[]', '{}', '{ run() {} }', 'true', '`x`', '/x/']) {
      expect(faultOf(`\nexport default ${value}`)).toContain('The default export at 2:1 is neither a function');
      expect(faultOf(`const d = ${value};\nexport { d as default }`)).toContain('The default export at 2:10');
    }
  });

  it('is nested too deeply for recursion', () => {
    for (const [open, close] of [
      '()',
      '[]',
      '{}',
      ['(()=>', ')'],
      ['-', ''],
      ['a=>', ''],
      ['if(1)', ''],
      ['`${', '}`'],
    ]) {
      const source = `${open.repeat(200_000)}1${close.repeat(200_000)}`;
      expect(faultOf(source)).toMatch(/nests its code too deeply|syntax error/);
    }
    expect(faultOf(`x = ${'('.repeat(500_000)}1${')'.repeat(500_000)}; export default () => {}`)).toContain(
      'too deeply',
    );
  });

  it('any text is accepted or refused with an InvalidModuleError', () => {
    const token = fc.constantFrom(
      ...[
        'export',
        'default',
        'import',
        '*',
        'as',
        'from',
        '"node:fs"',
        '"x"',
        '{',
        '}',
        '(',
        ')',
        '=>',
        'a',
        'b',
        ',',
      ],
      ...['function', 'class', 'let', '=', ';', '...', '`', '/', '!0', 'fetch', ':', '#p', 'await', '\n', 'stateful'],
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.array(token, { maxLength: 12 }).map((all) => all.join(' ')),
          fc.string(),
        ),
        (source) => {
          expect(typeof faultOf(source)).toBe('string');
        },
      ),
      { numRuns: randomRuns(5_000) },
    );
  });
});
