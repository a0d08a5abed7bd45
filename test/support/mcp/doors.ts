/**
 * The doors by which a caller reaches an upstream: tools over REST, the MCP endpoint of a connection, the run endpoint of a
 * server; and the form in which each reports a failure.
 */
import { expect } from '@jest/globals';
import type { TestAccount, TestApp } from '../app.js';
import { createConnection } from '../factories.js';
import { startScripted } from '../special-upstreams/scripted-upstream.js';
import { closing, start } from '../upstream/upstream-clients.js';
import type { UpstreamOptions } from '../upstream/upstream.js';
import { mcp, request, send, type Answer, type CallOptions } from './calls.js';

/** The call of a test: `on` is another process than the app. */
type DoorOptions = CallOptions & { on?: TestApp };

/** The doors of this app for this account. The upstreams that it starts end with the test. */
export function doorsOf(app: TestApp, owner: TestAccount) {
  const connect = async (mcpUrl: string, fields: object = {}): Promise<string> =>
    (await createConnection(app, owner, { mcpUrl, ...fields })).path;
  return {
    /** Connects an upstream; gives the path of the connection. */
    connect,
    /** A new upstream, and the path of a connection to it. */
    connected: async (options: UpstreamOptions = {}, fields: object = {}) => {
      const upstream = await start(options);
      return { upstream, path: await connect(upstream.url, fields) };
    },
    /** {@link startScripted}, and the path of a connection to it. */
    scripted: async (...parameters: Parameters<typeof startScripted>) => {
      const upstream = closing(await startScripted(...parameters));
      return { upstream, path: await connect(upstream.url) };
    },
    /** Calls a tool over REST. */
    rest: (path: string, tool: string, args?: string | object, { on = app, ...options }: DoorOptions = {}) =>
      send(on, owner, `${path}/.tools/${tool}`, args, options),
    /** Posts a message to the MCP endpoint at a path. */
    ask: (path: string, message: string | object, { on = app, ...options }: DoorOptions = {}) =>
      mcp(on, owner, path, message, options),
    /** Opens a session of 2025-11-25 there; gives the header of what is sent in it. */
    session: async (path: string, capabilities: object = {}): Promise<Record<string, string>> => {
      const clientInfo = { name: 'spec', version: '1' };
      const hello = request(0, 'initialize', { protocolVersion: '2025-11-25', capabilities, clientInfo });
      const { headers } = await mcp(app, owner, path, hello);
      return { 'mcp-session-id': headers.get('mcp-session-id') ?? '' };
    },
  };
}

/** Checks a failed tool call over REST: the code that clients match, a sentence, and the word not to repeat the call. */
export function expectFailure(answer: Answer, status: number, code: string): void {
  expect([answer.status, answer.body?.error, answer.text]).toEqual([status, code, expect.any(String)]);
  expect(answer.body).toEqual({ error: code, message: expect.stringMatching(/\w/) });
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(answer.headers.get('x-should-retry')).toBe('false');
}

/** Checks a JSON-RPC error with this status and id; gives its text for people. */
export function expectRpcError(answer: Answer, status: number, id: unknown, code?: number): string {
  const { body, headers } = answer;
  expect([answer.status, headers.get('content-type')]).toEqual([status, 'application/json; charset=utf-8']);
  expect(body).toEqual({
    jsonrpc: '2.0',
    id,
    error: expect.objectContaining({ code: code ?? expect.any(Number), message: expect.stringMatching(/\w/) }),
  });
  return body.error.message as string;
}
