import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Env } from '../../../config/env.js';
import type { InternalClient } from '../../../platform/internal-http/internal-client.js';
import { Vault } from '../../../platform/vault/vault.js';
import { verifies } from '../../../../test/support/verifies.js';
import { McpSessionNotFoundError } from '../mcp-server.errors.js';
import { ResumableStreams, type StreamReader } from './resumable-streams.js';

const KEPT_MS = 5 * 60_000;
const MB = 1024 * 1024;
const CALLER = 'alice target';
const session = {
  key: 'session',
  version: '2025-11-25',
  capabilities: [],
  client: null,
  passed: {},
  shared: undefined,
  expiresAt: Infinity,
};

let streams: ResumableStreams;

beforeEach(() => {
  jest.useFakeTimers();
  const vault = new Vault([{ id: 'k1', secret: Buffer.alloc(32, 7) }]);
  streams = new ResumableStreams(vault, { internalUrl: null } as unknown as Env, {} as InternalClient);
});

afterEach(() => {
  streams.close();
  jest.useRealTimers();
});

/** A client and what it was sent. */
function client() {
  const frames: string[] = [];
  const reader: StreamReader = {
    open: () => undefined,
    write: (frame) => void frames.push(frame),
    end: (last) => void (last !== undefined && frames.push(last)),
  };
  return { reader, frames };
}

/** A stream of a call, with its client and a function that is called when nobody can read it any more. */
function openCall(account = 'alice') {
  const { reader, frames } = client();
  const stream = streams.open(session, CALLER, account, reader);
  const cancel = jest.fn();
  stream.whenUnread(cancel);
  const [, id] = /^id: (\S+)/.exec(frames[0]) ?? [];
  return { stream, reader, frames, cancel, id };
}

const resume = async (eventId: string) => {
  const { reader, frames } = client();
  await streams.resume(eventId, session, CALLER, reader, () => undefined);
  return { reader, frames };
};

describe('the call of a stream whose client left', () => {
  it('is cancelled 5 minutes later, and cannot be resumed then', async () => {
    const { stream, reader, cancel, id } = openCall();
    stream.detach(reader);
    await jest.advanceTimersByTimeAsync(KEPT_MS - 1);
    expect(cancel).not.toHaveBeenCalled();
    await jest.advanceTimersByTimeAsync(1);
    expect(cancel).toHaveBeenCalledTimes(1);
    await expect(resume(id)).rejects.toThrow(McpSessionNotFoundError);
  });

  it('goes on for a client that resumed it, which has 5 minutes of its own after it left', async () => {
    const { stream, reader, cancel, id } = openCall();
    stream.detach(reader);
    stream.send('data: missed\n\n');
    await jest.advanceTimersByTimeAsync(KEPT_MS - 1);
    const again = await resume(id);
    expect(again.frames).toEqual([expect.stringContaining('data: missed')]);
    await jest.advanceTimersByTimeAsync(2 * KEPT_MS);
    expect(cancel).not.toHaveBeenCalled();
    stream.detach(again.reader);
    await jest.advanceTimersByTimeAsync(KEPT_MS);
    expect(cancel).toHaveBeenCalledTimes(1);
  });
});

describe('streams of more than 32 MB of one account', () => {
  it('lose the oldest one, whose call is cancelled if its client has left', async () => {
    const [left, read, ...others] = Array.from({ length: 34 }, () => openCall());
    left.stream.detach(left.reader);
    const almost = 'x'.repeat(MB - 2 * 1024);
    const half = almost.slice(MB / 2);
    // 31 MB and a half, with 1 KB for each stream.
    for (const { stream } of [left, read, ...others.slice(0, 29)]) stream.send(almost);
    others[29].stream.send(half);
    expect(left.cancel).not.toHaveBeenCalled();

    others[30].stream.send(almost);
    expect(left.cancel).toHaveBeenCalledTimes(1);
    await expect(resume(left.id)).rejects.toThrow(McpSessionNotFoundError);
    expect((await resume(read.id)).frames.length).toBe(1);
    read.stream.detach(read.reader);
  });

  it('leave a client that still reads its events, without ids, and cancel its call when it leaves', () => {
    const [first, ...others] = Array.from({ length: 33 }, () => openCall());
    for (const { stream } of [first, ...others]) stream.send('x'.repeat(MB - 10));
    first.stream.send('data: later\n\n');
    expect(first.frames.at(-1)).toBe('data: later\n\n');
    expect(first.cancel).not.toHaveBeenCalled();
    first.stream.detach(first.reader);
    expect(first.cancel).toHaveBeenCalledTimes(1);
    expect(others.every(({ cancel }) => cancel.mock.calls.length === 0)).toBe(true);
  });

  verifies('limits:account-share', 'leave the streams and calls of another account as they are', async () => {
    const other = openCall('bob');
    other.stream.detach(other.reader);
    other.stream.send('data: missed\n\n');
    const own = Array.from({ length: 200 }, () => openCall('alice'));
    for (const { stream } of own) stream.send('x'.repeat(MB));
    expect(other.cancel).not.toHaveBeenCalled();
    expect((await resume(other.id)).frames).toEqual([expect.stringContaining('data: missed')]);
    await expect(resume(own[0].id)).rejects.toThrow(McpSessionNotFoundError);
    expect((await resume(own[199].id)).frames.length).toBe(1);
  });
});

describe('streams of more than 128 MB of all accounts', () => {
  verifies('limits:account-share', 'cost the largest account its oldest stream', async () => {
    const small = openCall('small');
    small.stream.detach(small.reader);
    const accounts = ['a', 'b', 'c', 'd', 'e'].map((account) =>
      Array.from({ length: account === 'c' ? 31 : 25 }, () => openCall(account)),
    );
    for (const { stream } of accounts.flat()) stream.send('x'.repeat(MB - 2 * 1024));
    const dropped = await Promise.all(
      [[small], ...accounts].map(async (calls) => {
        const tries = await Promise.allSettled(calls.map(({ id }) => resume(id)));
        return tries.filter(({ status }) => status === 'rejected').length;
      }),
    );
    expect(dropped.map((count) => count > 0)).toEqual([false, false, false, true, false, false]);
  });
});
