/** Calls of one caller that may be asked at once, each in an upstream session of its own; beyond that nobody is asked. */
const LANES_MAX = 8;

/**
 * Numbers for calls that run at once, the smallest free one each. A client without sessions may stand for many people, and an
 * upstream session knows one: so no two calls that can be asked share one at the same time.
 */
export class SlotAllocator {
  private readonly taken = new Map<string, Set<number>>();

  /** @returns null when all are taken */
  enter(whom: string): { number: number; leave: () => void } | null {
    const taken = this.taken.get(whom) ?? new Set<number>();
    let number = 0;
    while (taken.has(number)) number += 1;
    if (number >= LANES_MAX) return null;
    taken.add(number);
    this.taken.set(whom, taken);
    const leave = () => {
      taken.delete(number);
      if (taken.size === 0) this.taken.delete(whom);
    };
    return { number, leave };
  }
}
