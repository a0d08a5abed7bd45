import { it } from '@jest/globals';
import { aloneIt, longIt } from './jest/globals.mjs';

/**
 * A test that proves the requirements with these ids; they stand behind its name in the report. Write the ids as
 * string literals: the gate in `requirements.spec.ts` reads them from the source text and refuses anything else.
 *
 * @param timeoutMs replaces the default timeout of the suite.
 */
export function verifies(
  id: string | readonly string[],
  name: string,
  fn: () => void | Promise<void>,
  timeoutMs?: number,
): void {
  it(nameOf(id, name), fn, timeoutMs);
}

function nameOf(id: string | readonly string[], name: string): string {
  return `${name} [${typeof id === 'string' ? id : id.join(', ')}]`;
}

/** The same for a test that only `npm run test:long` runs: it takes long, and its requirement has another test. */
export function longVerifies(...[id, name, fn, timeoutMs]: Parameters<typeof verifies>): void {
  longIt(nameOf(id, name), fn, timeoutMs);
}

/** The same for a test of what is promised in wall-clock time: it runs while no other test does. */
export function aloneVerifies(...[id, name, fn, timeoutMs]: Parameters<typeof verifies>): void {
  aloneIt(nameOf(id, name), fn, timeoutMs);
}
