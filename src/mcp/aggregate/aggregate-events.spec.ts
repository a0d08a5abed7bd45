import { afterEach, beforeEach, expect, jest } from '@jest/globals';
import { ScriptedChannel } from '../../../test/support/mcp/scripted-channel.js';
import { verifies } from '../../../test/support/verifies.js';
import type { UpstreamHandle } from '../client/upstream-handle.js';
import { MemberEvents } from './aggregate-events.js';
import type { AggregateSource } from './member-requests.js';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const UPDATED = 'notifications/resources/updated';

/** A listener of one resource of the connection `docs`, whose upstream may be unavailable. */
async function listening() {
  const channel = new ScriptedChannel('legacy', () => ({}));
  const upstream = { channel, isAway: false };
  const source = {
    handle: () => (upstream.isAway ? Promise.reject(new Error('away')) : Promise.resolve(channel as unknown)),
    faultOf: (_id: string, error: unknown) => {
      throw error;
    },
  } as unknown as AggregateSource & { handle(): Promise<UpstreamHandle> };
  const heard: string[] = [];
  const onNotification = (text: string) => heard.push((JSON.parse(text) as { params: { uri: string } }).params.uri);
  const events = new MemberEvents(source, onNotification, {});
  const uris = await events.follow('docs', ['a://1']);
  const end = () => {
    const [stream] = channel.listeners;
    channel.listeners.clear();
    stream?.listener.onEnd(null);
  };
  return { upstream, heard, uris, close: () => events.close(), end };
}

verifies(
  'union:list-changed',
  'a stream of a connection that ends is listened to again, and its resources count as updated',
  async () => {
    const { upstream, heard, uris, end } = await listening();
    upstream.channel.tell(UPDATED, { uri: 'a://1' });
    expect([uris, heard]).toEqual([['connection://docs/a://1'], ['connection://docs/a://1']]);
    end();
    upstream.isAway = true;
    await jest.advanceTimersByTimeAsync(60_000);
    expect([upstream.channel.listeners.size, heard.length]).toEqual([0, 1]);
    upstream.isAway = false;
    await jest.advanceTimersByTimeAsync(30_000);
    expect(heard).toEqual(Array(2).fill('connection://docs/a://1'));
    upstream.channel.tell(UPDATED, { uri: 'a://1' });
    expect(heard).toHaveLength(3);
  },
);

verifies('union:list-changed', 'nobody listens again for a listener that left', async () => {
  const { upstream, heard, close, end } = await listening();
  end();
  await close();
  await jest.advanceTimersByTimeAsync(60_000);
  expect([upstream.channel.listeners.size, heard.length]).toEqual([0, 0]);
});
