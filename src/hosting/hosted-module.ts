/**
 * Static check of an uploaded ES module, without running it: its form, its exports, whether it is stateful, and its
 * imports.
 *
 * A module of 10 MB takes seconds of CPU and up to a gigabyte of memory, so the publish pipeline calls it in a process
 * of its own (`module-check.process.ts`).
 *
 * Rejected (InvalidModuleError): syntax errors with their line, nesting too deep to parse, CommonJS, no default export
 * or one that is neither function nor object with `fetch`, and imports other than Node's built-ins and workerd's.
 */
import { getLineInfo } from 'acorn';
import { isBuiltin } from 'node:module';
import { quote, visible } from '../platform/text/quoted.js';
import { InvalidModuleError } from './hosting.errors.js';
import { readModule, type ModuleOutline, type Shape } from './module-outline.js';

export interface ModuleFacts {
  /**
   * `factory`: the default export is a function; `fetch`: an object with `fetch`; `unknown`: known only at run time.
   */
  form: 'factory' | 'fetch' | 'unknown';
  exports: string[];
  /** Value of the export `stateful`; null when absent or not a boolean literal. */
  stateful: boolean | null;
  /** Static imports without duplicates: built-ins of Node and of workerd only. */
  imports: string[];
}

/** Names that bundlers leave in place because workerd provides them. */
const RUNTIME_IMPORT = /^(?:cloudflare|workerd):|^workerd$/;

/** Acorn's message on stack overflow, which occurs at some 800 nested brackets or 4,000 chained operators. */
const STACK_FAULT = 'Not enough stack space to parse input';

const SHOWN_IMPORTS_MAX = 5;

export function checkModule(source: string, provided?: RegExp): ModuleFacts {
  const text = source.replace(/^\uFEFF/, '');
  const outline = parse(text);
  const isThere = (name: string) => isBuiltin(name) || RUNTIME_IMPORT.test(name) || provided?.test(name);
  const foreign = [...outline.imports].filter(([name]) => !isThere(name));
  if (foreign.length > 0) {
    const examples = foreign.slice(0, SHOWN_IMPORTS_MAX).map(([name, at]) => `${quote(name)} (${placeOf(text, at)})`);
    const more = foreign.length > SHOWN_IMPORTS_MAX ? ` and ${foreign.length - SHOWN_IMPORTS_MAX} more` : '';
    throw new InvalidModuleError(
      `The module imports ${examples.join(', ')}${more}, and only Node built-ins are there when it runs: ` +
        'bundle your dependencies into it, as `esbuild --bundle --format=esm --platform=node` does.',
    );
  }
  const stateful = outline.exports.get('stateful');
  const shape = stateful && resolve(outline, stateful);
  return {
    form: formOf(text, outline),
    exports: [...outline.exports.keys()],
    stateful: shape === 'true' ? true : shape === 'false' ? false : null,
    imports: [...outline.imports.keys()],
  };
}

function parse(text: string): ModuleOutline {
  try {
    return readModule(text);
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof RangeError)) throw error;
    const reason = error.message.replace(/ \(\d+:\d+\)$/, '');
    if (error instanceof RangeError || reason === STACK_FAULT) {
      throw new InvalidModuleError(
        'The module nests its code too deeply to be read: some generated expression is chained thousands of times.',
      );
    }
    const { pos = 0 } = error as SyntaxError & { pos?: number };
    throw new InvalidModuleError(`The module has a syntax error at ${placeOf(text, pos)}: ${visible(reason, 200)}.`);
  }
}

function placeOf(text: string, at: number): string {
  const { line, column } = getLineInfo(text, at);
  return `${line}:${column + 1}`;
}

function formOf(text: string, outline: ModuleOutline): ModuleFacts['form'] {
  const exported = outline.exports.get('default');
  if (exported === undefined) {
    throw new InvalidModuleError(
      /\bmodule\.exports\b|\bexports\.\w+\s*=/.test(text)
        ? 'The module is CommonJS: build it as an ES module (`esbuild --format=esm`) with a default export.'
        : 'The module has no default export: export a function that makes the MCP server, ' +
            '`export default function createServer({ config }) { … }`, or an object with `fetch`.',
    );
  }
  switch (resolve(outline, exported)) {
    case 'function':
      return 'factory';
    case 'fetch':
      return 'fetch';
    case 'unusable':
    case 'true':
    case 'false':
      throw new InvalidModuleError(
        `The default export at ${placeOf(text, exported.at)} is neither a function that makes the MCP server nor an ` +
          'object with `fetch`: export one of the two.',
      );
    default:
      return 'unknown';
  }
}

/** Follows `export { a as default }; const a = b;` to the value of `b`. A name assigned more than once is unknown. */
function resolve({ names }: ModuleOutline, { shape }: { shape: Shape }): Exclude<Shape, object> {
  let current = shape;
  for (let hop = 0; typeof current === 'object'; hop += 1) {
    const declared = names.get(current.name);
    if (declared === undefined || hop === 10) return 'unknown';
    current = declared;
  }
  return current;
}
