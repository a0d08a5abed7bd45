import { createContext, Script } from 'node:vm';

const scope: { work?: () => unknown } = {};
const context = createContext(scope);
const start = new Script('work()');

/**
 * Runs synchronous work whose length somebody else decides, and gives it up after `ms`: nobody else is served meanwhile. Work
 * that is given up runs no `finally` of its own. The watch over it costs about 80 µs. Not to be
 * nested: of two watches that end together, the inner one calls off the outer one's end, and the work goes on for ever.
 *
 * @returns null when it took too long
 */
export function inTime<T>(ms: number, work: () => T): { value: T } | null {
  scope.work = work;
  try {
    return { value: start.runInContext(context, { timeout: ms }) as T };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return null;
    throw error;
  } finally {
    scope.work = undefined;
  }
}
