/**
 * Limit of concurrent calls per caller that may receive upstream requests, each in an upstream session of its own;
 * further calls run without.
 */
const LANES_MAX = 8;

/**
 * Allocates one of 8 upstream sessions per caller, lowest free number first, so that two concurrent calls that may
 * receive upstream requests never share a session. A client without sessions may act for many people, and an upstream
 * session knows one.
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
