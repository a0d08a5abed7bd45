import { describe, expect, it } from '@jest/globals';
import { until } from '../../../test/support/until.js';
import { MultiplexedCalls, type Peer } from './multiplexed-calls.js';
import { UplinkChannel, type FramePort } from './uplink/uplink-channel.js';

/** A peer that never answers, and the answers that it receives. */
function silentPeer(): Peer & { answers: string[] } {
  const nothing = () => undefined;
  const answers: string[] = [];
  let lastId = 0;
  return {
    host: 'silent',
    takeId: () => (lastId += 1),
    sendRequest: nothing,
    notify: nothing,
    answer: (text) => answers.push(text),
    answers,
  };
}

/** Starts a call of this caller, who can answer requests, or of one who cannot. */
function begin(calls: MultiplexedCalls, requests: string[], caller?: string, method = 'tools/call') {
  const responding = caller !== undefined && {
    profile: { key: caller, capabilities: { roots: {} } },
    onRequest: (method: string) => {
      requests.push(`${caller} ${method}`);
      return Promise.resolve({ result: '{}' });
    },
  };
  return calls.run({ method, timeoutMs: 60_000, ...responding }).catch((error: Error) => error.message);
}

const rootsRequest = '{"jsonrpc":"2.0","id":7,"method":"roots/list"}';

describe('a request of the peer that names no call', () => {
  it('goes to the only caller of calls during which servers ask', () => {
    const [calls, requests] = [new MultiplexedCalls(silentPeer()), [] as string[]];
    void begin(calls, requests, 'alice');
    void begin(calls, requests, 'alice');
    void begin(calls, requests, undefined, 'tools/list');
    calls.requested(rootsRequest, 'roots/list');
    expect(requests).toEqual(['alice roots/list']);
    calls.end(() => new Error('over'));
  });

  it('goes to nobody when several callers could be meant, whatever their order', async () => {
    for (const callers of [
      ['alice', 'bob'],
      ['bob', 'alice', 'bob'],
      ['alice', undefined],
      [undefined, 'alice'],
    ]) {
      const peer = silentPeer();
      const [calls, requests] = [new MultiplexedCalls(peer), [] as string[]];
      for (const caller of callers) void begin(calls, requests, caller);
      calls.requested(rootsRequest, 'roots/list');
      calls.end(() => new Error('over'));
      calls.requested(rootsRequest, 'roots/list');
      expect(requests).toEqual([]);
      await until(() => peer.answers.length === 2, 'both are answered');
      expect(peer.answers).toEqual(Array(2).fill(expect.stringMatching(/"id":7,"error":\{"code":-32601/)));
    }
  });

  it('fails its call beyond 100 of them, but no other call and no ping', async () => {
    const peer = silentPeer();
    const [calls, requests] = [new MultiplexedCalls(peer), [] as string[]];
    const other = begin(calls, requests, undefined, 'tools/list');
    const flooded = begin(calls, requests, 'alice');
    for (let count = 0; count < 101; count += 1) calls.requested('{"jsonrpc":"2.0","id":1,"method":"ping"}', 'ping');
    expect([peer.answers.length, calls.size]).toEqual([101, 2]);
    for (let count = 0; count < 101; count += 1) calls.requested(rootsRequest, 'roots/list');
    expect(await flooded).toBe('silent asked its client more than 100 things during one call.');
    expect([requests.length, calls.size]).toEqual([100, 1]);
    calls.end(() => new Error('over'));
    expect(await other).toBe('over');
  });
});

describe('a notification that names no call', () => {
  it('goes to the only running call, and to nobody while calls of several callers run', () => {
    const [calls, heard] = [new MultiplexedCalls(silentPeer()), [] as string[]];
    const start = (name: string) =>
      calls
        .run({ method: 'tools/call', timeoutMs: 60_000, onNotification: () => heard.push(name) })
        .catch(() => undefined);
    void start('first');
    calls.notified('{}', 'notifications/message');
    void start('second');
    calls.notified('{}', 'notifications/message');
    expect(heard).toEqual(['first']);
    calls.end(() => new Error('over'));
  });
});

describe('a tunnel whose peer does not read', () => {
  it('accepts no call while 4 MB wait', async () => {
    const call = { method: 'ping', timeoutMs: 60_000 };
    const bound = 4 * 1024 * 1024;
    const nothing = () => undefined;
    const channelWith = (bufferedBytes: number) => {
      const port: FramePort = {
        ready: Promise.resolve(),
        send: nothing,
        bufferedBytes,
        refuse: nothing,
        close: nothing,
      };
      return new UplinkChannel(port, 60_000);
    };
    await expect(channelWith(bound + 1).request(call)).rejects.toThrow('does not read');
    const channel = channelWith(bound);
    const running = channel.request(call);
    await Promise.resolve();
    channel.end();
    await expect(running).rejects.toThrow('local server');
  });
});
