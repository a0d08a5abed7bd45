import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { Channel, McpReply } from '../protocol/channel.js';
import { HandlePool } from './handle-pool.js';
import { UpstreamHandle } from './upstream-handle.js';

/** A channel whose only request ends on demand. */
class HeldChannel implements Channel {
  isClosed = false;
  answer: () => void = () => undefined;

  open(): never {
    throw new Error('not used');
  }

  listen(): never {
    throw new Error('not used');
  }

  async release(): Promise<void> {}

  request(): Promise<McpReply> {
    return new Promise((resolve) => {
      this.answer = () => resolve({ text: '{}', id: null, result: null, error: null, era: 'legacy' });
    });
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }
}

class HeldLink extends UpstreamHandle {
  constructor(readonly held = new HeldChannel()) {
    super(held, { failed: (_method, error) => error });
  }

  call(): Promise<McpReply> {
    return this.request({ method: 'tools/call', timeoutMs: 1_000 });
  }
}

function pool(max = 10): { links: HandlePool<HeldLink>; put: (key: string, account?: string) => HeldLink } {
  const links = new HandlePool<HeldLink>('spec', max);
  return {
    links,
    put: (key, account = key) => {
      const link = new HeldLink();
      links.put(key, link, account);
      return link;
    },
  };
}

describe('HandlePool', () => {
  afterEach(() => void jest.useRealTimers());

  it('an account with a quarter of the handles evicts its own and no others', async () => {
    const { links, put } = pool(12);
    const others = ['a', 'b'].map((key) => put(key));
    const own = ['1', '2', '3'].map((key) => put(key, 'busy'));
    links.get('1');
    for (let i = 4; i < 100; i += 1) put(`${i}`, 'busy');
    await Promise.resolve();
    expect([...others, ...own].map(({ held }) => held.isClosed)).toEqual([false, false, true, true, true]);
    expect(links.size).toBe(5);
    expect(['97', '98', '99'].every((key) => links.get(key))).toBe(true);
    // A dropped handle frees its place.
    links.drop('98');
    put('100', 'busy');
    expect(['97', '99', '100'].every((key) => links.get(key))).toBe(true);
    await links.close();
  });

  it('stores a handle among 40,000 others in less than 50 µs', async () => {
    const links = new HandlePool<HeldLink>('spec', 160_000);
    const link = new HeldLink();
    for (let i = 0; i < 40_000; i += 1) links.put(`${i}`, link, 'busy');
    const times = Array.from({ length: 20 }, (_, i) => {
      const began = performance.now();
      links.put(`new ${i}`, link, 'busy');
      return performance.now() - began;
    });
    expect(Math.min(...times)).toBeLessThan(0.05);
    await links.close();
  });

  it('evicts the least recently used handle above its limit', async () => {
    const { links, put } = pool(3);
    const [a, b, c] = ['a', 'b', 'c'].map((key) => put(key));
    expect(links.get('a')).toBe(a);
    const d = put('d');
    await Promise.resolve();
    expect([a, b, c, d].map(({ held }) => held.isClosed)).toEqual([false, true, false, false]);
    expect(['a', 'b', 'c', 'd'].map((key) => links.get(key))).toEqual([a, undefined, c, d]);
    for (let i = 0; i < 1_000; i += 1) put(`${i}`);
    await Promise.resolve();
    expect([a, c, d].every(({ held }) => held.isClosed)).toBe(true);
    await links.close();
  });

  it('closes evicted and replaced handles after their last call', async () => {
    const { links, put } = pool();
    const [dropped, replaced] = [put('dropped'), put('replaced')];
    const calls = [dropped.call(), replaced.call()];
    links.drop('dropped');
    const next = put('replaced');
    await Promise.resolve();
    expect(links.get('dropped')).toBeUndefined();
    expect(links.get('replaced')).toBe(next);
    expect([dropped.held.isClosed, replaced.held.isClosed]).toEqual([false, false]);
    dropped.held.answer();
    replaced.held.answer();
    await Promise.all(calls);
    await Promise.resolve();
    expect([dropped.held.isClosed, replaced.held.isClosed, next.held.isClosed]).toEqual([true, true, false]);
    await links.close();
    expect(next.held.isClosed).toBe(true);
  });

  it('closes handles unused for ten minutes, unless a call runs on them', async () => {
    jest.useFakeTimers();
    const { links, put } = pool();
    const [idle, busy] = [put('idle'), put('busy')];
    const call = busy.call();
    await jest.advanceTimersByTimeAsync(9 * 60_000);
    expect(idle.held.isClosed).toBe(false);
    const fresh = put('fresh');
    await jest.advanceTimersByTimeAsync(3 * 60_000);
    expect([idle, busy, fresh].map(({ held }) => held.isClosed)).toEqual([true, false, false]);
    expect(links.get('idle')).toBeUndefined();
    busy.held.answer();
    await call;
    await links.close();
  });

  it.each([
    ['an hour', 'dropped', false, 3_600_000],
    ['a minute', 'deleted', true, 60_000],
  ])('a call that does not end holds open for %s at most what was %s', async (_time, _what, forGood, ms) => {
    jest.useFakeTimers();
    const { links, put } = pool();
    const link = put('a');
    void link.call();
    links.dropWhere((one) => one === link, forGood);
    await jest.advanceTimersByTimeAsync(ms - 1_000);
    expect(link.held.isClosed).toBe(false);
    await jest.advanceTimersByTimeAsync(2_000);
    expect(link.held.isClosed).toBe(true);
    await links.close();
  });
});
