import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { type LegacySession, type OpenSession, ProfileSlots, SessionSlot } from './session-slots.js';

afterEach(() => void jest.useRealTimers());

/** Slots whose sessions only record that they ended. */
function slots() {
  const ended: string[] = [];
  const open: OpenSession = async (profile) =>
    ({ close: async () => void ended.push(profile?.key ?? '') }) as Partial<LegacySession> as LegacySession;
  const handlers = () => undefined;
  const listening = () => Promise.reject(new Error('nobody listens'));
  const made = new ProfileSlots(
    (profile) => new SessionSlot(open, profile, handlers, listening, new URL('http://h/mcp')),
  );
  const use = (key: string, work = async () => undefined as unknown) =>
    made.use({ key, capabilities: { roots: {} } }, async (slot) => {
      await slot.get(1_000);
      await work();
    });
  return { made, ended, use };
}

describe('sessions of callers that answer requests of the server', () => {
  it('end after ten minutes without use', async () => {
    jest.useFakeTimers();
    const { made, ended, use } = slots();
    let finish: () => void = () => undefined;
    const busy = use('busy', () => new Promise<void>((resolve) => (finish = resolve)));
    await use('idle');
    await jest.advanceTimersByTimeAsync(9 * 60_000);
    expect(ended).toEqual([]);
    await jest.advanceTimersByTimeAsync(3 * 60_000);
    expect(ended).toEqual(['idle']);
    finish();
    await busy;
    await made.close();
    expect(ended).toEqual(['idle', 'busy']);
  });

  it('are at most a hundred: the least recently used idle one is closed, never one in use', async () => {
    const { made, ended, use } = slots();
    for (let i = 0; i < 100; i += 1) await use(`${i}`);
    await use('0');
    await use('new');
    expect(ended).toEqual(['1']);
    await made.close();

    const full = slots();
    let finish: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (finish = resolve));
    const running = Array.from({ length: 100 }, (_, i) => full.use(`${i}`, () => held));
    await expect(full.use('one more')).rejects.toThrow(/More than 100 clients/);
    finish();
    await Promise.all(running);
    await full.made.close();
  });
});
