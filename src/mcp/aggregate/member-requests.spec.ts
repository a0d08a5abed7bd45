import { afterEach, beforeEach, describe, expect, jest } from '@jest/globals';
import { ScriptedChannel } from '../../../test/support/mcp/scripted-channel.js';
import { verifies } from '../../../test/support/verifies.js';
import { UpstreamHandle } from '../client/upstream-handle.js';
import { mcpLists } from '../protocol/list-pages.js';
import { MemberRequests, type AggregateMember, type AggregateSource } from './member-requests.js';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const member: AggregateMember = { connectionId: 'docs', seq: '1', state: 'connected', fault: null };

/** A connection whose server answers each list as `answer` says at that moment. */
function asking() {
  const server = { answer: (): Promise<object> | object => tools('old') };
  const channel = new ScriptedChannel('legacy', () => server.answer());
  const handle = new UpstreamHandle(channel, { failed: (_method, error) => error });
  const source = {
    handle: () => Promise.resolve(handle),
    faultOf: (connectionId: string, error: Error) => ({ connectionId, state: 'error', message: error.message }),
  } as unknown as AggregateSource;
  let changes = 0;
  const requests = new MemberRequests(source, () => (changes += 1));
  /** The names listed, or the message of the failure, with the milliseconds that it took. */
  const list = async (timeoutMs = 50_000) => {
    const startedAt = Date.now();
    const gathering = requests.gather([member], mcpLists.tools, { itemsMax: 100, timeoutMs }).then(([one]) => {
      const seen = one && 'items' in one ? one.items.map(({ name }) => name) : one?.fault.message;
      return [seen, Date.now() - startedAt];
    });
    await jest.advanceTimersByTimeAsync(5_000);
    return gathering;
  };
  return { server, channel, list, changes: () => changes };
}

const tools = (...names: string[]) => ({ tools: names.map((name) => ({ name })) });
const after = (ms: number, answer: () => object) => () =>
  new Promise<object>((resolve) => setTimeout(() => resolve(answer()), ms));

/** Longer than a list counts as fresh. */
const STALE_MS = 31_000;

describe('a slow connection', () => {
  verifies('union:slow-member', 'is listed as last known, and its new list announced when it is there', async () => {
    const { server, channel, list, changes } = asking();
    expect(await list()).toEqual([['old'], 0]);
    await jest.advanceTimersByTimeAsync(STALE_MS);
    server.answer = after(4_000, () => tools('new'));
    expect([await list(), changes()]).toEqual([[['old'], 500], 1]);
    expect([await list(), channel.calls.length]).toEqual([[['new'], 0], 2]);
  });

  verifies(
    'union:slow-member',
    'is awaited for 5 s while it is unknown, and listed as soon as it responds',
    async () => {
      const { server, list, changes } = asking();
      server.answer = after(8_000, () => tools('first'));
      expect(await list()).toEqual([expect.stringMatching(/in time/), 5_000]);
      await jest.advanceTimersByTimeAsync(3_000);
      expect([changes(), await list()]).toEqual([1, [['first'], 0]]);
    },
  );

  verifies('union:slow-member', 'is reported as failed without a wait once it has failed', async () => {
    const { server, list } = asking();
    await list();
    await jest.advanceTimersByTimeAsync(STALE_MS);
    server.answer = after(3_000, () => ({ error: { code: 1, message: 'away' } }));
    expect(await list()).toEqual([['old'], 500]);
    expect(await list()).toEqual([expect.stringMatching(/away/), 0]);
    await jest.advanceTimersByTimeAsync(10_000);
    expect(await list()).toEqual([expect.stringMatching(/away/), 500]);
    server.answer = () => tools('back');
    await jest.advanceTimersByTimeAsync(10_000);
    expect(await list()).toEqual([['back'], 0]);
  });
});
