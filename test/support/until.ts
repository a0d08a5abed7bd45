import { setTimeout as wait } from 'node:timers/promises';

const POLL_MS = 20;

/**
 * Asks again and again until the answer is truthy, and returns it. A question that throws is asked again.
 *
 * @param what finishes the sentence "It did not happen that …"
 */
export async function until<T>(
  ask: () => T | Promise<T>,
  what: string,
  timeoutMs = 15_000,
): Promise<NonNullable<Exclude<T, false>>> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    let last: unknown;
    try {
      const answer = await ask();
      if (answer) return answer as NonNullable<Exclude<T, false>>;
      last = answer;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline)
      throw new Error(`It did not happen that ${what} (${timeoutMs} ms); last: ${String(last)}`);
    await wait(POLL_MS);
  }
}
