import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { isAlive, pidOf, startBundle, textOf, type TestBundle } from '../../support/hosting/bundle-server.js';
import { times } from '../../support/mcp/calls.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

/** Longer than a busy machine leaves between two messages of a client. */
const IDLE_MS = 2_000;

let bundle: TestBundle;

beforeEach(async () => {
  bundle = await startBundle();
});

afterEach(() => bundle.close());

/** Another one in its place. */
async function restart(options: Parameters<typeof startBundle>[0]): Promise<void> {
  await bundle.close();
  bundle = await startBundle(options);
}

const end = ({ transport }: Client) => (transport as StreamableHTTPClientTransport).terminateSession();

describe('a session of a bundle', () => {
  verifies('bundle:session', 'is one process of its own, which an official client talks to', async () => {
    const [one, other] = await Promise.all([bundle.connect(), bundle.connect()]);
    expect(await textOf(one, 'echo', { message: 'hi' })).toBe('hi');
    const pids = await Promise.all([pidOf(one), pidOf(other)]);
    expect(new Set(pids).size).toBe(2);
    expect(pids.every(isAlive)).toBe(true);
    const heard: number[] = [];
    await one.callTool({ name: 'progress' }, undefined, { onprogress: ({ progress }) => heard.push(progress) });
    expect(heard).toEqual([1]);
  });

  verifies('bundle:session', 'ends with its DELETE, together with its child processes', async () => {
    const client = await bundle.connect();
    const [pid, child] = [await pidOf(client), Number(await textOf(client, 'spawn'))];
    await end(client);
    await until(() => !isAlive(pid) && !isAlive(child), 'both are gone');
    await until(() => bundle.server.size === 0 && bundle.places() === 0, 'its place is free');
  });

  verifies('bundle:session', 'fails its waiting calls with the reason of its end, and is removed', async () => {
    const client = await bundle.connect();
    await expect(textOf(client, 'die')).rejects.toThrow(/ended before it answered\. .*exit code 3\.$/);
    await expect(textOf(client, 'echo')).rejects.toThrow(/Session not found/);
    expect(bundle.told).toContain('cannot go on');
  });

  verifies(
    'bundle:limits',
    'is closed when a call takes more CPU time than allowed, and its neighbour is not',
    async () => {
      await restart({ cpuMs: 1_000 });
      const [looping, neighbour] = await Promise.all([bundle.connect(), bundle.connect()]);
      const loop = expect(textOf(looping, 'spin')).rejects.toThrow(/more than 1000 ms of CPU time/);
      expect(await textOf(neighbour, 'echo', { message: 'here' })).toBe('here');
      await loop;
      expect(await textOf(neighbour, 'echo', { message: 'still here' })).toBe('still here');
      expect(bundle.told.some((line) => line.startsWith('exceededCpu'))).toBe(true);
    },
  );

  verifies('bundle:session', 'ends without requests, also while its client has an open stream', async () => {
    await restart({ idleMs: IDLE_MS });
    const pid = await pidOf(await bundle.connect());
    await until(() => !isAlive(pid), 'it is ended');
    await until(() => bundle.places() === 0, 'its place is free');
  });

  verifies(
    'bundle:session',
    'ends without requests, also with an unanswered call whose caller disconnected',
    async () => {
      await restart({ idleMs: IDLE_MS });
      const client = await bundle.connect();
      const pid = await pidOf(client);
      const leaving = new AbortController();
      const call = expect(client.callTool({ name: 'hold' }, undefined, { signal: leaving.signal })).rejects.toThrow();
      await until(() => bundle.told.includes('called hold'), 'it is called');
      leaving.abort();
      await call;
      await until(() => !isAlive(pid), 'it is ended');
    },
  );

  verifies('bundle:session', 'is refused where there is no place, and nothing is started', async () => {
    await restart({ placesMax: 1 });
    await bundle.connect();
    await expect(bundle.connect()).rejects.toThrow(/full/);
    expect(bundle.server.size).toBe(1);
  });

  it('frees its slot when its arguments are invalid for a process', async () => {
    await restart({ placesMax: 1 });
    const open = (query: string) =>
      bundle.fetch(`http://bundle/${query}`, {
        method: 'POST',
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {} }),
        headers: { 'content-type': 'application/json' },
      });
    expect((await open('?argument=%00')).status).toBe(500);
    expect(bundle.places()).toBe(0);
    await bundle.connect();
  });
});

verifies('bundle:session', 'leaves no process behind when clients connect and disconnect', async () => {
  await restart({ idleMs: IDLE_MS });
  const pids: number[] = [];
  await Promise.all(
    times(4, async () => {
      for (let turn = 0; turn < 6; turn += 1) {
        const client = await bundle.connect();
        pids.push(await pidOf(client));
        // In the middle of a call, without a word.
        client.callTool({ name: 'hold' }, undefined, { signal: AbortSignal.timeout(50) }).catch(() => undefined);
        if (turn % 2 === 0) await client.close();
      }
    }),
  );
  await bundle.vanish();
  await bundle.server.close(false);
  expect(new Set(pids).size).toBe(24);
  expect(pids.filter(isAlive)).toEqual([]);
  expect(bundle.places()).toBe(0);
});
