import { it } from '@jest/globals';

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
  const ids = typeof id === 'string' ? id : id.join(', ');
  it(`${name} [${ids}]`, fn, timeoutMs);
}
