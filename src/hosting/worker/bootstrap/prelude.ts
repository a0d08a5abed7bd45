import { createRequire } from 'node:module';
import { format } from 'node:util';

/** CommonJS dependencies inside a bundle ask for Node's modules by `require`, which ES modules do not have. */
(globalThis as { require?: unknown }).require = createRequire('/');

/** Characters of one console line; workerd keeps 256 KB of a request. */
const LINE_CHARS_MAX = 65_536;

const LEVELS = ['debug', 'error', 'info', 'log', 'warn'] as const;

/**
 * A line is made where the values still are: what workerd hands on to a tail has lost maps, symbols and the stack of an
 * error, and the copy it prints reads differently. So both say the same, and one can be known by the other.
 */
for (const level of LEVELS) {
  const print = console[level].bind(console);
  console[level] = (...values: unknown[]) => {
    const line = format(...values);
    print(line.length > LINE_CHARS_MAX ? `${line.slice(0, LINE_CHARS_MAX)}…` : line);
  };
}
