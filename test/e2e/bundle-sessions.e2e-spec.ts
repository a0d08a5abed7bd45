import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Agent, fetch as fetchBy } from 'undici';
import { BundleServer } from '../../src/hosting/bundle/bundle-server.js';
import { ProgramBusyError } from '../../src/hosting/hosting.errors.js';
import { times } from '../support/calls.js';
import { stdioServer } from '../support/stdio-server.js';
import { until } from '../support/until.js';

let folder: string;
let script: string;
let server: BundleServer | undefined;
let agent: Agent | undefined;
let places: number;
let told: string[];
const clients: Client[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'slipway-sessions-'));
  script = join(folder, 'server.mjs');
  await writeFile(script, stdioServer);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

beforeEach(async () => {
  places = 0;
  told = [];
  await start();
});

afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await server?.close(true);
  await agent?.destroy();
});

async function start({ idleMs = 60_000, cpuMs = 2_000, placesMax = 50 } = {}): Promise<void> {
  await server?.close(true);
  await agent?.destroy();
  server = new BundleServer({
    command: () => ({ file: process.execPath, args: [script], options: { cwd: folder, env: {} } }),
    limits: { cpuMs },
    idleMs,
    place: () => {
      if (places >= placesMax) throw new ProgramBusyError('full');
      places += 1;
      return () => (places -= 1);
    },
    ears: {
      onLine: (_id, { message }) => told.push(message),
      onFailure: (_id, outcome, message) => told.push(`${outcome}: ${message}`),
    },
  });
  const socketPath = join(folder, `${Math.random().toString(36).slice(2)}.sock`);
  await server.listen(socketPath);
  agent = new Agent({ connect: { socketPath } });
}

const send = ((url: string | URL, init?: RequestInit) =>
  fetchBy(url, { ...(init as object), dispatcher: agent })) as unknown as typeof fetch;

async function connect(): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  clients.push(client);
  await client.connect(new StreamableHTTPClientTransport(new URL('http://bundle/mcp'), { fetch: send }));
  return client;
}

/** The text a tool answers. */
async function call(client: Client, name: string, args: object = {}): Promise<string> {
  const { content } = (await client.callTool({ name, arguments: { ...args } })) as { content: { text: string }[] };
  return content[0].text;
}

const pidOf = async (client: Client) => (JSON.parse(await call(client, 'env')) as { pid: number }).pid;

function isAlive(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

describe('a session of a bundle', () => {
  it('is one process of its own, which an official client talks to', async () => {
    const [one, other] = await Promise.all([connect(), connect()]);
    expect(await call(one, 'echo', { message: 'hi' })).toBe('hi');
    const pids = await Promise.all([pidOf(one), pidOf(other)]);
    expect(new Set(pids).size).toBe(2);
    expect(pids.every(isAlive)).toBe(true);
    const progress: number[] = [];
    await one.callTool({ name: 'progress' }, undefined, { onprogress: (told) => progress.push(told.progress) });
    expect(progress).toEqual([1]);
    await Promise.all([one.close(), other.close()]);
  });

  it('ends with its DELETE, and with it what it started itself', async () => {
    const client = await connect();
    const [pid, child] = [await pidOf(client), Number(await call(client, 'spawn'))];
    await (client.transport as StreamableHTTPClientTransport).terminateSession();
    await until(() => !isAlive(pid) && !isAlive(child), 'both are gone');
    await until(() => server?.size === 0 && places === 0, 'its place is free');
  });

  it('tells whoever waits why it ended, and is forgotten', async () => {
    const client = await connect();
    await expect(call(client, 'die')).rejects.toThrow(/ended before it answered.*exit code 3.*cannot go on/);
    await expect(call(client, 'echo')).rejects.toThrow(/Session not found/);
    expect(told).toContain('cannot go on');
  });

  it('is ended when a call takes more CPU time than it may, and its neighbour is not', async () => {
    await start({ cpuMs: 300 });
    const [looping, neighbour] = await Promise.all([connect(), connect()]);
    const loop = expect(call(looping, 'spin')).rejects.toThrow(/more than 300 ms of CPU time/);
    expect(await call(neighbour, 'echo', { message: 'here' })).toBe('here');
    await loop;
    expect(await call(neighbour, 'echo', { message: 'still here' })).toBe('still here');
    expect(told.some((line) => line.startsWith('exceededCpu'))).toBe(true);
  });

  it('ends when nobody uses it, also while its client holds a stream open', async () => {
    await start({ idleMs: 300 });
    const client = await connect();
    const pid = await pidOf(client);
    await until(() => !isAlive(pid), 'it is ended');
    await until(() => places === 0, 'its place is free');
  });

  it('is refused where there is no place, and nothing is started', async () => {
    await start({ placesMax: 1 });
    const client = await connect();
    await expect(connect()).rejects.toThrow(/full/);
    expect(server?.size).toBe(1);
    await client.close();
  });

  it('is refused in words when the message is none, or comes without a session', async () => {
    const post = (body: string, headers = {}) =>
      send('http://bundle/', { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } });
    expect((await post('{"broken')).status).toBe(400);
    expect((await post('{"jsonrpc":"2.0","id":1,"method":"tools/list"}')).status).toBe(400);
    expect((await post('{}', { 'mcp-session-id': 'forged' })).status).toBe(404);
    expect((await send('http://bundle/', { method: 'GET' })).status).toBe(405);
  });
});

it('leaves no process behind when clients come and vanish', async () => {
  await start({ idleMs: 400 });
  const pids: number[] = [];
  await Promise.all(
    times(4, async () => {
      for (let turn = 0; turn < 6; turn += 1) {
        const client = await connect();
        pids.push(await pidOf(client));
        // In the middle of a call, without a word.
        client.callTool({ name: 'hold' }, undefined, { signal: AbortSignal.timeout(50) }).catch(() => undefined);
        if (turn % 2 === 0) await client.close();
      }
    }),
  );
  await agent?.destroy();
  await server?.close(false);
  expect(new Set(pids).size).toBe(24);
  expect(pids.filter(isAlive)).toEqual([]);
  expect(places).toBe(0);
});
