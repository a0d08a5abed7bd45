import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { CONFIG_HEADER } from './requests.js';
import type { ObjectStorage, Session } from './user-module.js';
import { McpSessionObject } from './session-object.js';

const DAY_MS = 86_400_000;

/** In-memory subset of a Durable Object's storage. */
class Store implements ObjectStorage {
  readonly values = new Map<string, unknown>();
  alarm: number | null = null;
  get = <T>(key: string) => Promise.resolve(this.values.get(key) as T | undefined);
  put = (key: string, value: unknown) => Promise.resolve(void this.values.set(key, value));
  delete = (key: string) => Promise.resolve(this.values.delete(key));
  deleteAll = () => Promise.resolve(this.values.clear());
  list = ({ prefix }: { prefix: string }) =>
    Promise.resolve(new Map([...this.values].filter(([key]) => key.startsWith(prefix))));
  getAlarm = () => Promise.resolve(this.alarm);
  setAlarm = (at: number) => Promise.resolve(void (this.alarm = at));
  deleteAlarm = () => Promise.resolve(void (this.alarm = null));
}

let store: Store;
let session: Session | undefined;

/** The session's object in a newly started process. */
function objectOn(storage: Store, ready: () => Promise<void> = () => Promise.resolve()): McpSessionObject {
  const waitUntil = (told: Promise<unknown>) => void told.catch(() => undefined);
  const state = { id: { toString: () => 'f'.repeat(64) }, storage, waitUntil };
  return new McpSessionObject(state, {}, async (context) => {
    session = context.session;
    await ready();
    return new McpServer({ name: 'test', version: '1' }).server;
  });
}

function post(method: string, headers: Record<string, string>, params: object = {}): Request {
  return new Request('http://x/', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
}

const CLIENT = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
const open = (object: McpSessionObject) => object.fetch(post('initialize', { [CONFIG_HEADER]: 'null' }, CLIENT));
const ping = (object: McpSessionObject) => object.fetch(post('ping', { 'mcp-session-id': 'f'.repeat(64) }));

beforeEach(() => {
  jest.useFakeTimers({
    now: 0,
    doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'setTimeout', 'clearTimeout'],
  });
  store = new Store();
});
afterEach(() => void jest.useRealTimers());

describe('an unused session', () => {
  it('is deleted after a day when it stored nothing, and after seven when it did', async () => {
    const object = objectOn(store);
    expect((await open(object)).status).toBe(200);
    expect(store.alarm).toBe(DAY_MS);
    await session?.set('word', 'mine');
    expect(store.alarm).toBe(7 * DAY_MS);
    await object.alarm();
    expect([store.values.size, store.alarm]).toEqual([0, null]);
    expect((await ping(object)).status).toBe(404);
  });

  it('is kept longer by each use, at most once an hour, also in a new process', async () => {
    const object = objectOn(store);
    await open(object);
    jest.setSystemTime(DAY_MS / 48);
    await ping(object);
    expect(store.alarm).toBe(DAY_MS);
    jest.setSystemTime(DAY_MS / 2);
    await ping(object);
    expect(store.alarm).toBe(1.5 * DAY_MS);
    await session?.set('word', 'mine');
    jest.setSystemTime(DAY_MS);
    await ping(objectOn(store));
    expect(store.alarm).toBe(8 * DAY_MS);
  });
});

describe('a session whose server cannot be created', () => {
  it('times out with 404, and can be tried again', async () => {
    await open(objectOn(store));
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
    let tries = 0;
    const object = objectOn(store, () => ((tries += 1) === 1 ? new Promise(() => undefined) : Promise.resolve()));
    const stuck = ping(object);
    await jest.advanceTimersByTimeAsync(10_000);
    expect((await stuck).status).toBe(404);
    expect((await ping(object)).status).toBe(200);
    expect(tries).toBe(2);
  });
});
