import { setTimeout as wait } from 'node:timers/promises';

const POLL_MS_MIN = 20;

/** Each repetition waits a fifth longer, up to this: most repetitions are requests, which take CPU time from what they wait for. */
const POLL_MS_MAX = 100;

/** Much longer than anything takes: a machine that is busy with other things fails no test, and waiting costs nothing. */
const PATIENCE_MS = 60_000;

/**
 * Repeats a function until its result is truthy, and returns the result. A function that throws is repeated.
 *
 * @param what finishes the sentence "It did not happen that …"
 * @param timeoutMs only where it is part of what is promised. The attempt that begins after it decides: how long an attempt
 *   takes depends on the machine, and not on what is promised
 */
export async function until<T>(
  ask: () => T | Promise<T>,
  what: string,
  timeoutMs = PATIENCE_MS,
): Promise<NonNullable<Exclude<T, false>>> {
  const deadline = Date.now() + timeoutMs;
  for (let pollMs = POLL_MS_MIN; ; pollMs = Math.min(pollMs * 1.2, POLL_MS_MAX)) {
    let last: unknown;
    const isLast = Date.now() > deadline;
    try {
      const answer = await ask();
      if (answer) return answer as NonNullable<Exclude<T, false>>;
      last = answer;
    } catch (error) {
      last = error;
    }
    if (isLast) throw new Error(`It did not happen that ${what} (${timeoutMs} ms); last: ${String(last)}`);
    await wait(pollMs);
  }
}
