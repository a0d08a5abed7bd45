import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { ranked } from './host-selector.js';

const named = (count: number) => Array.from({ length: count }, () => ({ id: randomUUID() }));
const owners = named(2_000).map(({ id }) => id);
const first = (owner: string, hosts: { id: string }[]) => ranked(owner, hosts)[0]?.id;

describe('the order of hosts', () => {
  it('is the same in every process, whatever the order of its list', () => {
    const hosts = named(5);
    for (const owner of owners.slice(0, 100)) {
      expect(ranked(owner, [...hosts].reverse())).toEqual(ranked(owner, hosts));
      expect(ranked(owner, hosts)).toHaveLength(5);
    }
    expect(ranked('any', [])).toEqual([]);
  });

  it('gives each host an equal share', () => {
    const hosts = named(4);
    const counts = new Map<string, number>();
    for (const owner of owners) {
      const chosen = first(owner, hosts) ?? '';
      counts.set(chosen, (counts.get(chosen) ?? 0) + 1);
    }
    // 500 each; the standard deviation is 19.
    for (const { id } of hosts) expect(Math.abs((counts.get(id) ?? 0) - 500)).toBeLessThan(120);
  });

  it('moves only the programs of a host that leaves', () => {
    const hosts = named(4);
    const [gone, ...rest] = hosts;
    for (const owner of owners) {
      const before = first(owner, hosts);
      if (before !== gone?.id) expect(first(owner, rest)).toBe(before);
      else expect(first(owner, rest)).toBe(ranked(owner, hosts)[1]?.id);
    }
  });
});
