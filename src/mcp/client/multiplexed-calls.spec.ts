import { describe, expect, it } from '@jest/globals';
import { until } from '../../../test/support/until.js';
import { MultiplexedCalls, type Peer } from './multiplexed-calls.js';

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
