import { describe, expect, it } from '@jest/globals';
import { UplinkCalls, type FramePort } from './uplink-calls.js';

/** A tunnel whose peer never answers. */
function silentPort(bufferedBytes = 0): FramePort {
  const nothing = () => undefined;
  return { ready: Promise.resolve(), send: nothing, bufferedBytes, refuse: nothing, close: nothing };
}

/** Starts a call of this caller, who can be asked, or of one who cannot. */
function begin(calls: UplinkCalls, asked: string[], caller?: string): void {
  const whom = caller !== undefined && {
    profile: { key: caller, capabilities: { roots: {} } },
    onRequest: (method: string) => {
      asked.push(`${caller} ${method}`);
      return Promise.resolve({ result: '{}' });
    },
  };
  calls.run({ method: 'tools/call', timeoutMs: 60_000, ...whom }).catch(() => undefined);
}

describe('a question that names no call', () => {
  it('is for the only caller who can be asked, beside those who cannot', async () => {
    const [calls, asked] = [new UplinkCalls(silentPort()), [] as string[]];
    begin(calls, asked, 'alice');
    begin(calls, asked, 'alice');
    begin(calls, asked);
    await calls.askable?.ask('roots/list', undefined);
    expect(asked).toEqual(['alice roots/list']);
    calls.end(() => new Error('over'));
  });

  it('is for nobody when several callers could be meant, in whatever order they came', () => {
    for (const callers of [
      ['alice', 'bob'],
      ['bob', 'alice', 'bob'],
    ]) {
      const calls = new UplinkCalls(silentPort());
      for (const caller of callers) begin(calls, [], caller);
      expect(calls.askable).toBeNull();
      calls.end(() => new Error('over'));
      expect(calls.askable).toBeNull();
    }
  });
});

describe('a tunnel whose peer does not read', () => {
  it('takes no call beyond 4 MB that wait', async () => {
    const call = { method: 'ping', timeoutMs: 60_000 };
    const bound = 4 * 1024 * 1024;
    await expect(new UplinkCalls(silentPort(bound + 1)).run(call)).rejects.toThrow('does not read');
    const calls = new UplinkCalls(silentPort(bound));
    const running = calls.run(call);
    calls.end(() => new Error('sent'));
    await expect(running).rejects.toThrow('sent');
  });
});
