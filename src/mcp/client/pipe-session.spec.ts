import { describe, expect, it } from '@jest/globals';
import { until } from '../../../test/support/until.js';
import { type Pipe, PipeSession } from './pipe-session.js';

/** A pipe to a peer that never answers, and the responses that it receives. */
function silentPipe(): Pipe & { answers: string[] } {
  const nothing = () => undefined;
  const answers: string[] = [];
  let lastId = 0;
  return {
    host: 'silent',
    takeId: () => (lastId += 1),
    send: async () => undefined,
    notify: nothing,
    sendResponse: (text) => answers.push(text),
    toRejection: (message) => new Error(message),
    toClosedError: () => new Error('cut'),
    close: nothing,
    answers,
  };
}

/** Starts a call of this caller, who can answer requests, or of one who cannot. */
function begin(session: PipeSession, requests: string[], caller?: string, method = 'tools/call') {
  const responding = caller !== undefined && {
    profile: { key: caller, capabilities: { roots: {} } },
    onRequest: (method: string) => {
      requests.push(`${caller} ${method}`);
      return Promise.resolve({ result: '{}' });
    },
  };
  return session
    .request({ method, timeoutMs: 60_000, ...responding }, 60_000, false)
    .catch((error: Error) => error.message);
}

const ask = (session: PipeSession) =>
  session.receive({ id: 7, method: 'roots/list' }, '{"jsonrpc":"2.0","id":7,"method":"roots/list"}');

describe('a request of the peer that names no call', () => {
  it('goes to the only caller of calls during which servers ask', () => {
    const [session, requests] = [new PipeSession(silentPipe(), {}, {}), [] as string[]];
    void begin(session, requests, 'alice');
    void begin(session, requests, 'alice');
    void begin(session, requests, undefined, 'tools/list');
    ask(session);
    expect(requests).toEqual(['alice roots/list']);
    session.fail(new Error('over'));
  });

  it('goes to nobody when several callers could be meant, whatever their order', async () => {
    for (const callers of [
      ['alice', 'bob'],
      ['bob', 'alice', 'bob'],
      ['alice', undefined],
      [undefined, 'alice'],
    ]) {
      const pipe = silentPipe();
      const [session, requests] = [new PipeSession(pipe, {}, {}), [] as string[]];
      for (const caller of callers) void begin(session, requests, caller);
      ask(session);
      ask(new PipeSession(pipe, {}, {}));
      expect(requests).toEqual([]);
      await until(() => pipe.answers.length === 2, 'both are answered');
      expect(pipe.answers).toEqual(Array(2).fill(expect.stringMatching(/"id":7,"error":\{"code":-32601/)));
      session.fail(new Error('over'));
    }
  });
});

describe('a notification that names no call', () => {
  it('goes to the only running call, and to nobody while calls of several callers run', () => {
    const [session, heard] = [new PipeSession(silentPipe(), {}, {}), [] as string[]];
    const start = (name: string) =>
      session
        .request({ method: 'tools/call', timeoutMs: 60_000, onNotification: () => heard.push(name) }, 60_000, false)
        .catch(() => undefined);
    void start('first');
    session.receive({ method: 'notifications/message' }, '{}');
    void start('second');
    session.receive({ method: 'notifications/message' }, '{}');
    expect(heard).toEqual(['first']);
    session.fail(new Error('over'));
  });
});
