/**
 * Module hooks with which Node loads the TypeScript of this repository: `./x.js` means `./x.ts` where that exists, swc
 * writes the decorators and their metadata, and `@jest/globals` is globals.mjs.
 *
 * Compiled text is cached by content below node_modules/.cache.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { transformSync, version } from '@swc/core';

const globals = new URL('./globals.mjs', import.meta.url).href;
const cache = fileURLToPath(new URL('../../../node_modules/.cache/slipway-test-modules/', import.meta.url));
const options = {
  swcrc: false,
  configFile: false,
  module: { type: 'es6' },
  sourceMaps: 'inline',
  jsc: {
    target: 'es2022',
    parser: { syntax: 'typescript', decorators: true },
    keepClassNames: true,
    transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
  },
};
const settings = `${version} ${JSON.stringify(options)}`;
mkdirSync(cache, { recursive: true });

export async function resolve(specifier, context, next) {
  if (specifier === '@jest/globals') return { url: globals, format: 'module', shortCircuit: true };
  if (/^\.{1,2}\/.*\.js$/.test(specifier) && context.parentURL && isTypeScript(context.parentURL)) {
    const url = new URL(specifier.replace(/js$/, 'ts'), context.parentURL);
    if (existsSync(url)) return { url: url.href, format: 'module', shortCircuit: true };
  }
  // The service in the process of a test renders its API documents itself.
  return next(specifier, { ...context, conditions: [...context.conditions, 'api-docs'] });
}

export async function load(url, context, next) {
  if (!isTypeScript(url)) return next(url, context);
  return { format: 'module', source: compiled(fileURLToPath(url)), shortCircuit: true };
}

function isTypeScript(url) {
  return url.startsWith('file:') && /\.ts(\?|$)/.test(url) && !url.includes('/node_modules/');
}

function compiled(file) {
  const source = readFileSync(file, 'utf8');
  const key = createHash('sha256').update(`${settings}\0${file}\0${source}`).digest('hex');
  const path = join(cache, `${key}.js`);
  try {
    return readFileSync(path, 'utf8');
  } catch {
    const { code } = transformSync(source, { ...options, filename: file });
    // Other workers compile the same file at the same time.
    writeFileSync(`${path}.${process.pid}`, code);
    renameSync(`${path}.${process.pid}`, path);
    return code;
  }
}
