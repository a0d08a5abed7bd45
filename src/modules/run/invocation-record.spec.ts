import { describe, expect, it } from '@jest/globals';
import { errorReply, resultReply } from '../../mcp/protocol/messages.js';
import * as upstream from '../../mcp/protocol/mcp-errors.js';
import { ForbiddenError } from '../../platform/errors/domain-error.js';
import type { McpReply } from '../../mcp/protocol/channel.js';
import { verifies } from '../../../test/support/verifies.js';
import { InvocationRecord } from './invocation-record.js';

const SERVER = { serverId: '00000000-0000-4000-8000-000000000001', releaseId: null };

/** The log entry of a call of a tool with this response. */
function recorded(reply: McpReply, { keepsPayload = false, method = 'tools/call' } = {}) {
  const record = new InvocationRecord(null, { keepsPayload });
  record.received(method, { name: 'forecast', arguments: {} });
  record.recordReply(reply);
  return { ...record.finish(SERVER, '/run/acme--weather', { method: 'POST', status: 200 }), output: record.output };
}

const failed = (text: string, more: object = {}) =>
  resultReply(JSON.stringify({ content: [{ type: 'text', text }], ...more, isError: true }));

describe('the record of a call that returned an error', () => {
  verifies('runtime-log:answered-errors', 'has 200 characters of its text, without what looks like a secret', () => {
    const secret = `sk-${'a1B2'.repeat(10)}`;
    const text = `The key ${secret} is not valid. ${'x '.repeat(200)}`;
    for (const [reply, outcome, start] of [
      [failed(text), 'toolError', 'The key [redacted] is not valid. x'],
      [errorReply(-32602, text), 'rpcError', '-32602: The key [redacted] is not valid. x'],
    ] as const) {
      const short = recorded(reply);
      expect([short.outcome, short.exceptions[0].message.length, short.output]).toEqual([outcome, 200, null]);
      expect(short.exceptions[0].message.startsWith(start)).toBe(true);
      const whole = recorded(reply, { keepsPayload: true });
      expect(whole.exceptions[0].message.length).toBeGreaterThan(400);
      expect(JSON.stringify(whole)).not.toContain(secret);
    }
  });

  it('is not parsed when it is long', () => {
    const { exceptions } = recorded(failed('x'.repeat(70_000)));
    expect(exceptions[0].message).toMatch(/^\[result of 70\d\d\d characters\]$/);
  });

  it('survives content of another form', () => {
    for (const content of [undefined, 'text', [1, null, { type: 'image' }]]) {
      const { outcome, exceptions } = recorded(resultReply(JSON.stringify({ content, isError: true })));
      expect([outcome, exceptions]).toMatchObject(['toolError', [{ name: 'ToolError', message: '' }]]);
    }
  });

  it('is no error where a result only contains the words, or no tool was called', () => {
    const said = resultReply(JSON.stringify({ content: [{ type: 'text', text: 'x', isError: true }], isError: false }));
    expect(recorded(said)).toMatchObject({ outcome: 'ok', exceptions: [], output: { tool: 'forecast' } });
    expect(recorded(failed('x'), { method: 'prompts/get' })).toMatchObject({ outcome: 'ok', exceptions: [] });
  });
});

it('a call that failed is canceled by its caller, denied here, or an exception, also where the server wants authorization', () => {
  const outcomeOf = (error: Error) => {
    const record = new InvocationRecord(null);
    record.failed(error);
    return record.finish(SERVER, '/', { method: 'POST', status: 200 }).outcome;
  };
  const failures = [
    new upstream.CallerLeftError(),
    new ForbiddenError('x'),
    new upstream.UpstreamError('x'),
    new upstream.UpstreamAuthRequiredError('x'),
    new Error('x'),
  ];
  expect(failures.map(outcomeOf)).toEqual(['canceled', 'denied', 'exception', 'exception', 'exception']);
});
