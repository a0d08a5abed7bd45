import { expect } from '@jest/globals';
import { verifies } from '../../../test/support/verifies.js';
import { UpstreamTimeoutError } from '../protocol/mcp-errors.js';
import { findEra } from './era-probe.js';
import type { HttpWire, WireCall, WireManner } from './http/http-wire.js';

verifies('channel:era', 'the first contact may take as long as opening a session', async () => {
  const waited: [string, number][] = [];
  const wire = {
    headers: {},
    target: { url: new URL('http://slow.test/mcp'), headers: {}, connectTimeoutMs: 30_000 },
    probe: ({ method }: WireCall, { timeoutMs }: WireManner) => {
      waited.push([method, timeoutMs]);
      return Promise.reject(new UpstreamTimeoutError('late', false));
    },
  } as unknown as HttpWire;
  await expect(findEra(wire)).rejects.toThrow('late');
  expect(waited).toEqual([['server/discover', 30_000]]);
});
