import { LRUCache } from 'lru-cache';

/** Of each tool in each hour: so many answers, then one of so many, up to so many in all. */
export const FIRST_OF_HOUR = 20;
export const THEN_ONE_OF = 100;
export const OF_HOUR_MAX = 200;

/** Tools whose answers are counted; of one that was forgotten the first ones count again. */
const TOOLS_MAX = 5_000;

const HOUR_MS = 3_600_000;

/** Chooses which answers are looked at: enough to learn from, few enough to cost nothing. One for each process. */
export class Sampler {
  private readonly tools = new LRUCache<string, { hour: number; seen: number }>({ max: TOOLS_MAX });

  /** Counts an answer of this tool. @returns whether it is to be looked at */
  isWanted(tool: string, now = Date.now()): boolean {
    const hour = Math.floor(now / HOUR_MS);
    let count = this.tools.get(tool);
    if (!count) this.tools.set(tool, (count = { hour, seen: 0 }));
    if (count.hour !== hour) Object.assign(count, { hour, seen: 0 });
    count.seen += 1;
    const later = count.seen - FIRST_OF_HOUR;
    return later <= 0 || (later % THEN_ONE_OF === 0 && later / THEN_ONE_OF <= OF_HOUR_MAX - FIRST_OF_HOUR);
  }
}
