import { describe, expect } from '@jest/globals';
import type { ClientAnswer, McpCall } from '../../../src/mcp/protocol/channel.js';
import { ask, askModern, modern, post } from '../../support/mcp/mcp-calls.js';
import { startMcpEndpoint } from '../../support/mcp/mcp-endpoint.js';
import { ScriptedChannel, type ScriptedAnswer } from '../../support/mcp/scripted-channel.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const able = {
  capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {}, extensions: { 'a.b/c': {} } },
};
const yes = { action: 'accept', content: { a: 1 } };

type Asks = (method: string, params?: object) => Promise<ClientAnswer | undefined>;

/** A legacy server that does what `script` says, with a way to ask. */
function legacyOf(script: (asks: Asks, call: McpCall) => ScriptedAnswer | Promise<ScriptedAnswer>): ScriptedChannel {
  return new ScriptedChannel('legacy', (call) => {
    const asks: Asks = async (method, params) => call.onRequest?.(method, params && JSON.stringify(params));
    return script(asks, call);
  });
}

const call = (url: string, given: object = {}, options: Parameters<typeof askModern>[3] = able) =>
  askModern(url, 'tools/call', { name: 'x', arguments: { n: 1 }, ...given }, options);

describe('a call whose legacy upstream asks a client of 2026-07-28', () => {
  verifies(['mcp:input', 'mcp:parked'], 'returns the requests, and continues with the replies', async () => {
    const channel = legacyOf(async (asks, { onNotification, params }) => {
      const { progressToken } = JSON.parse(params ?? '')._meta ?? {};
      const tell = (progress: number) => {
        const method = 'notifications/progress';
        onNotification?.(JSON.stringify({ method, params: { progressToken, progress } }), method);
      };
      tell(1);
      const page = { mode: 'url', elicitationId: 'e', url: 'https://a.example/x', message: 'Visit' };
      const first = await Promise.all([asks('elicitation/create', page), asks('roots/list')]);
      tell(2);
      const second = await asks('sampling/createMessage', { messages: [] });
      return { content: [], said: [...first, second] };
    });
    const { url } = await startMcpEndpoint(channel);
    const one = await call(url, {}, { ...able, id: 'a', meta: { progressToken: 'mine' } });
    expect(one.events.map(({ params }) => params)).toEqual([{ progressToken: 'mine', progress: 1 }]);
    expect(one.body).toEqual({
      jsonrpc: '2.0',
      id: 'a',
      result: {
        resultType: 'input_required',
        inputRequests: {
          'question-1': {
            method: 'elicitation/create',
            params: { mode: 'url', url: 'https://a.example/x', message: 'Visit' },
          },
          'question-2': { method: 'roots/list' },
        },
        requestState: expect.any(String),
      },
    });
    const { requestState } = one.body.result;
    const partly = { requestState, inputResponses: { 'question-1': { action: 'accept' }, 'question-9': {} } };
    const rest = await call(url, partly, { ...able, id: 'b' });
    expect(Object.keys(rest.body.result.inputRequests)).toEqual(['question-2']);
    expect(rest.body.result.requestState).not.toBe(requestState);
    const both = { requestState: rest.body.result.requestState, inputResponses: { 'question-2': { roots: [] } } };
    const two = await call(url, both, { ...able, id: 'c', meta: { progressToken: 7 } });
    expect(two.events.map(({ params }) => params)).toEqual([{ progressToken: 7, progress: 2 }]);
    expect(two.body.result.inputRequests).toEqual({
      'question-3': { method: 'sampling/createMessage', params: { messages: [] } },
    });
    const last = await call(url, { requestState, inputResponses: { 'question-3': { role: 'assistant' } } });
    expect(last.body.result).toEqual({
      resultType: 'complete',
      content: [],
      said: [{ result: '{"action":"accept"}' }, { result: '{"roots":[]}' }, { result: '{"role":"assistant"}' }],
    });
    expect(channel.calls).toHaveLength(1);
    expect(channel.calls[0]?.params).not.toContain('io.modelcontextprotocol');
  });

  verifies('mcp:parked', 'is not continued by anybody else, with another request, or by two concurrently', async () => {
    const channel = legacyOf(async (asks) => {
      await asks('elicitation/create', { message: '?' });
      await new Promise(() => undefined);
      return {};
    });
    const { url } = await startMcpEndpoint(channel);
    const { requestState } = (await call(url)).body.result;
    const back = { requestState, inputResponses: { 'question-1': yes } };
    const { body, headers } = modern('tools/call', { name: 'x', arguments: { n: 1 }, ...back }, able);
    const lost = {
      resultType: 'complete',
      isError: true,
      content: [{ type: 'text', text: expect.stringMatching(/no longer waiting/) }],
    };
    for (const refused of [
      await ask(url, body, { ...headers, authorization: 'Bearer two' }),
      await ask(url.replace('/mcp', '/other'), body, headers),
      await call(url, { ...back, requestState: `${requestState.slice(0, -2)}AA` }),
      await call(url, { ...back, requestState: 'sw1.pending.' }),
    ]) {
      expect([refused.status, refused.body.error.code]).toEqual([200, -32602]);
      expect(refused.body.error.message).toMatch(/requestState was changed, or was given to another/);
    }
    const other = await call(url, { ...back, arguments: { n: 2 } });
    expect(other.body.error).toMatchObject({ code: -32602, message: expect.stringMatching(/another request/) });
    expect(channel.calls).toHaveLength(1);
    const leaving = new AbortController();
    const gone = expect(post(url, body, headers, leaving.signal)).rejects.toThrow();
    await until(async () => {
      const { error } = (await call(url, { requestState })).body;
      return error?.message.includes('waits for this call already');
    }, 'the first one waits');
    leaving.abort();
    await gone;
    await until(() => channel.running === 0, 'the call is cancelled');
    expect((await call(url, back)).body.result).toEqual(lost);
  });

  verifies(['mcp:parked', 'mcp:vanish'], 'ends when its client leaves, and when the process ends', async () => {
    const answers: unknown[] = [];
    const channel = legacyOf(async (asks) => {
      answers.push(await asks('elicitation/create', { message: '?' }));
      return { content: [] };
    });
    const { url, stop } = await startMcpEndpoint(channel);
    const { requestState } = (await call(url)).body.result;
    stop();
    await until(() => channel.running === 0, 'the call is over');
    expect(answers).toEqual([{ error: expect.objectContaining({ message: 'The client has disconnected' }) }]);
    const { result } = (await call(url, { requestState, inputResponses: {} })).body;
    expect(result.content[0].text).toMatch(/restarted/);
  });

  verifies('mcp:parked', 'asks only what its client declared, for a limited number of concurrent calls', async () => {
    const answers: unknown[] = [];
    const channel = legacyOf(async (asks) => {
      answers.push(await asks('sampling/createMessage', {}));
      return { content: [] };
    });
    const { url } = await startMcpEndpoint(channel);
    const forms = { capabilities: { elicitation: {} } };
    expect((await call(url, {}, forms)).body.result.resultType).toBe('complete');
    expect(answers).toEqual([
      { error: { code: -32601, message: 'This client does not answer sampling/createMessage' } },
    ]);
    const [{ profile } = {}] = channel.calls;
    expect(profile).toMatchObject({ capabilities: { elicitation: {} }, mayShare: true });
    await call(url, {}, { capabilities: { extensions: {} } });
    expect(channel.calls.at(-1)?.onRequest).toBeUndefined();
    const parked = await Promise.all(Array.from({ length: 12 }, () => call(url)));
    expect(parked.filter(({ body }) => body.result.resultType === 'input_required')).toHaveLength(8);
    const own = channel.calls.slice(-12).filter(({ profile }) => !profile?.isShared);
    const keys = new Set(own.map(({ profile }) => profile?.key));
    expect(keys.size).toBe(8);
    for (const { body } of parked) {
      const { requestState, resultType } = body.result;
      if (resultType !== 'input_required') continue;
      await call(url, { requestState, inputResponses: { 'question-1': { role: 'assistant' } } });
    }
    expect((await call(url)).body.result.resultType).toBe('input_required');
    expect(keys).toContain(channel.calls.at(-1)?.profile?.key);
  });

  verifies('mcp:parked', 'buffers 4 MB of messages of its server until the client sends its replies', async () => {
    const big = 'x'.repeat(3_000_000);
    let refused: unknown;
    const channel = legacyOf(async (asks) => {
      void asks('elicitation/create', { message: big });
      refused = await asks('elicitation/create', { message: big });
      return { content: [{ type: 'text', text: big + big }] };
    });
    const { url } = await startMcpEndpoint(channel);
    const { inputRequests, requestState } = (await call(url)).body.result;
    expect(Object.keys(inputRequests)).toEqual(['question-1']);
    expect(refused).toEqual({ error: { code: -32601, message: expect.stringMatching(/exceed 4 MB/) } });
    await until(() => channel.running === 0, 'the server has answered');
    const { error } = (await call(url, { requestState, inputResponses: {} })).body;
    expect(error.message).toMatch(/more than the 4 MB that are stored/);
  });
});
