import { expect, it } from '@jest/globals';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SCAN_HEADER } from '../../hosting.types.js';
import type { ObjectNamespace } from './user-module.js';
import { open } from './wrapper.js';

it.each([
  ['database or disk is full: SQLITE_FULL', {}, 507, /no space left for the values of this session/],
  ['internal error; reference = 3ou3nv9d', {}, 507, /file of this session cannot be opened: the disk/],
  ['anything else', {}, 500, /^Internal error$/],
  ['anything else', { [SCAN_HEADER]: '1' }, 500, /anything else/],
])('a session that fails with "%s" returns a readable message', async (thrown, headers, status, words) => {
  const module = { default: () => new McpServer({ name: 'test', version: '1' }).server, stateful: true };
  const fetch = () => Promise.reject(new Error(thrown));
  const sessions = { newUniqueId: () => ({}), get: () => ({ fetch }) } as unknown as ObjectNamespace;
  const request = new Request('http://x/', { method: 'POST', headers, body: '{}' });
  const told: Promise<unknown>[] = [];
  const context = { waitUntil: (promise: Promise<unknown>) => void told.push(promise) };
  const answer = await open(module, null).worker.fetch(request, { MCP_SESSION: sessions }, context);
  expect(answer.status).toBe(status);
  expect(((await answer.json()) as { error: { message: string } }).error.message).toMatch(words);
  const reported = await told[0]?.catch((error: Error) => error.cause ?? error);
  expect(String(reported)).toContain(thrown);
});
