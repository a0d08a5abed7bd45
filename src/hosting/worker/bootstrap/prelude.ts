import { createRequire } from 'node:module';
import { format } from 'node:util';

/** CommonJS dependencies inside a bundle load Node's modules by `require`, which ES modules do not have. */
(globalThis as { require?: unknown }).require = createRequire('/');

const LINE_CHARS_MAX = 65_536;

const LEVELS = ['debug', 'error', 'info', 'log', 'warn'] as const;

/**
 * workerd's tail loses maps, symbols and the stack of an error, and its printed copy is formatted differently, so lines
 * are formatted where the values still exist. Both copies are then identical and can be matched.
 */
for (const level of LEVELS) {
  const print = console[level].bind(console);
  console[level] = (...values: unknown[]) => {
    const line = format(...values);
    print(line.length > LINE_CHARS_MAX ? `${line.slice(0, LINE_CHARS_MAX)}…` : line);
  };
}
