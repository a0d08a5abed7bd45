import { describe, expect } from '@jest/globals';
import { classifyInboundRequest } from '@modelcontextprotocol/server';
import fc from 'fast-check';
import { classify, shapeFault, type McpRequestHeaders } from '../../src/mcp/server/classify.js';
import { verifies } from '../support/verifies.js';
import { randomRuns } from '../support/random-runs.js';

const prefix = 'io.modelcontextprotocol/';

const version = fc.constantFrom('2026-07-28', '2025-11-25', '2025-03-26', '2099-01-01', '1999-01-01');
const method = fc.constantFrom(
  'initialize',
  'tools/call',
  'tools/list',
  'server/discover',
  'notifications/initialized',
  'ping',
);

const meta = fc.record(
  {
    [`${prefix}protocolVersion`]: fc.oneof(version, fc.constantFrom(5, null)),
    [`${prefix}clientCapabilities`]: fc.constantFrom<unknown>({}, { elicitation: {} }, { roots: 1 }, [], 'x', null),
    [`${prefix}clientInfo`]: fc.constantFrom<unknown>({ name: 'a', version: '1' }, { name: 'a' }, 'a'),
    [`${prefix}logLevel`]: fc.constantFrom<unknown>('info', 'loud', 7),
    progressToken: fc.constantFrom<unknown>(1, 'a'),
  },
  { requiredKeys: [] },
);

const params = fc.option(
  fc.record({ name: fc.constantFrom('echo', 'ünï'), protocolVersion: version, _meta: meta }, { requiredKeys: [] }),
  { nil: undefined, freq: 8 },
);

const message = fc.oneof(
  { weight: 8, arbitrary: fc.record({ jsonrpc: fc.constant('2.0'), id: fc.constantFrom(1, 'a'), method, params }) },
  { weight: 3, arbitrary: fc.record({ jsonrpc: fc.constant('2.0'), method, params }) },
  { weight: 1, arbitrary: fc.constant({ jsonrpc: '2.0', id: 1, result: {} }) },
);

const headers = fc.record(
  {
    version: fc.oneof(
      version,
      version.map((text) => ` ${text}\t`),
    ),
    method,
  },
  { requiredKeys: [] },
);

/** Classification of a message by the official server, in our words. */
function oracle(body: object, { version: protocolVersionHeader, method: mcpMethodHeader }: McpRequestHeaders): string {
  const outcome = classifyInboundRequest({ httpMethod: 'POST', body, protocolVersionHeader, mcpMethodHeader });
  return outcome.kind === 'reject' ? `${outcome.httpStatus} ${outcome.code}` : outcome.kind;
}

/** Refusals of the official server after its classification: unknown revisions and missing headers. */
const later = new Set(['legacy 400 -32022', 'modern 400 -32022', 'modern 400 -32020']);

describe('classification of what clients send', () => {
  verifies('mcp:eras', 'agrees with the official server on every message and header', () => {
    fc.assert(
      fc.property(message, headers, (body, headerValues) => {
        // As it arrives: without members that are undefined.
        const text = JSON.parse(JSON.stringify(body)) as Record<string, unknown>;
        expect(shapeFault(text)).toBeNull();
        const ours = classify(text, headerValues);
        const expected = oracle(text, headerValues);
        const got = ours.era ?? `${ours.fault.status} ${ours.fault.code}`;
        if (!later.has(`${expected} ${got}`)) expect(got).toBe(expected);
      }),
      { numRuns: randomRuns(3_000) },
    );
  });

  verifies('mcp:eras', 'accepts of a modern request exactly what the revision allows', () => {
    const _meta = { [`${prefix}protocolVersion`]: '2026-07-28', [`${prefix}clientCapabilities`]: { roots: {} } };
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'ünï', _meta } };
    const name = `=?base64?${Buffer.from('ünï').toString('base64')}?=`;
    const full = { version: '2026-07-28', method: 'tools/call', name };
    const envelope = { capabilities: { roots: {} }, logLevel: null };
    expect(classify(body, full)).toEqual({ era: 'modern', envelope });
    const broken: [Partial<typeof full>, number][] = [
      [{ version: undefined }, -32020],
      [{ method: undefined }, -32020],
      [{ name: undefined }, -32020],
      [{ name: 'other' }, -32020],
      [{ name: '=?base64?w7xuw6?=' }, -32020],
      [{ name: '=?base64?/w==?=' }, -32020],
      [{ version: '2025-11-25' }, -32020],
      [{ method: 'tools/list' }, -32020],
    ];
    for (const [changed, code] of broken) {
      expect(classify(body, { ...full, ...changed })).toMatchObject({ era: null, fault: { status: 400, code } });
    }
  });
});
