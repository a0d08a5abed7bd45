/** Tool calls over REST: what passes, and what is refused. Failures that every door has are in `mcp/doors.e2e-spec.ts`. */
import { describe, expect } from '@jest/globals';
import { HttpAdapterHost } from '@nestjs/core';
import type { SlipwayAdapter } from '../../../src/platform/http/adapter.js';
import { testAccount, testApp } from '../../support/app.js';
import { times, toolCall, type Json } from '../../support/mcp/calls.js';
import { doorsOf, expectFailure } from '../../support/mcp/doors.js';
import { sendJson } from '../../support/special-upstreams/scripted-upstream.js';
import { textOf } from '../../support/upstream/upstream-clients.js';
import { RAW_TOOL_RESULT, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const notFound = expect.stringMatching(/^\{"error":"not_found","message":"Resource not found"[,}]/);

const app = testApp();
const owner = testAccount(app);
const { connected, scripted, rest: call, ask } = doorsOf(app, owner);

/** The `params` of each `tools/call` the upstream saw. */
function callsOf({ requests }: Upstream): { name: string; arguments: unknown }[] {
  return requests.map(({ body }) => body as Json).flatMap((body) => (body?.method === 'tools/call' ? body.params : []));
}

describe('success', () => {
  verifies('call:passes-arguments', 'the body reaches the tool as its arguments', async () => {
    const { upstream, path } = await connected();
    const args = { message: 'Grüße 🌊', nested: { list: [1, null, true] }, name: 'not the tool', arguments: {} };
    const answer = await call(path, 'echo', args);
    expect([answer.status, textOf(answer.body)]).toEqual([200, 'Grüße 🌊']);
    expect(callsOf(upstream)).toEqual([{ name: 'echo', arguments: args }]);
  });

  verifies('call:passes-arguments', 'arguments pass byte for byte, big numbers and blanks included', async () => {
    const { upstream, path } = await connected();
    const args = '{ "b":9007199254740993,\n\t"a":1.10, "\\u006d": 1E400, "b2":"\\/" }';
    expect((await call(path, 'echo', args)).status).toBe(200);
    expect(upstream.requests.find(({ raw }) => raw.includes('tools/call'))?.raw).toContain(`"arguments":${args}`);
  });

  verifies('call:passes-arguments', 'an empty body is no arguments, whatever its content type', async () => {
    const { upstream, path } = await connected();
    for (const body of [undefined, '', '  \n', '{}']) expect((await call(path, 'asks', body)).status).toBe(200);
    const headers = { 'content-type': 'text/plain' };
    expect((await call(path, 'echo', '{"message":"plain"}', { headers })).status).toBe(200);
    expect(callsOf(upstream).slice(0, 4)).toEqual(times(4, () => ({ name: 'asks', arguments: {} })));
  });

  verifies('call:passes-arguments', 'every spelling of a dotted name calls that tool', async () => {
    const { upstream, path } = await connected();
    for (const spelling of [
      'repo.issues.create',
      'repo/issues/create',
      'repo%2Fissues%2Fcreate',
      'repo.issues%2fcreate',
    ]) {
      const answer = await call(path, spelling, { title: spelling });
      expect(textOf(answer.body)).toBe(`Created issue: ${spelling}`);
    }
    expect(new Set(callsOf(upstream).map(({ name }) => name))).toEqual(new Set(['repo.issues.create']));
    const short = path.replace('/connect', '');
    expect(textOf((await call(short, 'repo/search', { query: 'q' })).body)).toContain('q-1');
  });

  verifies('call:passes-arguments', 'names with blanks, quotes and letters of any script are kept', async () => {
    const names = ['with space', 'ünï"cødé\\', 'a%2Fb', 'slash/name', '日本.語'];
    const { upstream, path } = await connected({ tools: names.map((name) => ({ name, inputSchema: {} })) });
    for (const name of names) expect((await call(path, encodeURIComponent(name), {})).status).toBe(200);
    expect(callsOf(upstream).map(({ name }) => name)).toEqual(names);
  });

  for (const options of [{}, { sse: true }, { sessions: true }, { sessions: true, sse: true }, { modernOnly: true }]) {
    verifies(
      ['call:result-unchanged', 'channel:sse'],
      `a result passes as it is, ${JSON.stringify(options)}`,
      async () => {
        const answer = await call((await connected(options)).path, 'raw', {});
        expect([answer.status, answer.text]).toEqual([200, RAW_TOOL_RESULT]);
        expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
        expect(answer.headers.get('content-length')).toBe(String(Buffer.byteLength(RAW_TOOL_RESULT)));
      },
    );
  }

  verifies(['call:result-unchanged', 'channel:sse'], 'a result of many bytes and lines keeps every one', async () => {
    const text = `${'ü🌊\\n'.repeat(200_000)}`;
    const rawToolResult = `{\n  "content" : [ {"type":"text","text":"${text}"} ],\n\n  "x": [\n] }`;
    for (const sse of [false, true]) {
      const { path } = await connected({ sse, rawToolResult });
      expect((await call(path, 'raw', {})).text === rawToolResult).toBe(true);
    }
  });

  verifies('call:result-unchanged', 'notifications and questions ahead of the result do not get into it', async () => {
    const { path } = await connected();
    expect(textOf((await call(path, 'progress', { steps: 3 })).body)).toBe('3 steps done');
    expect(JSON.parse(textOf((await call(path, 'asks', {})).body))).toMatchObject({ error: { code: -32601 } });
  });

  verifies('call:tool-failure', 'a tool that fails returns 200 with its result byte for byte', async () => {
    const rawToolResult = '{"isError" : true,"content":[],"code":9007199254740993}';
    const { path } = await connected({ rawToolResult });
    expect(await call(path, 'raw', {})).toMatchObject({ status: 200, text: rawToolResult });
    expect(await call(path, 'fail', {})).toMatchObject({ status: 200, body: { isError: true } });
    expect(await call(path, 'echo', { message: 5 })).toMatchObject({ status: 200, body: { isError: true } });
  });
});

describe('validation', () => {
  verifies('call:arguments-invalid', 'arguments that are no object are refused and reach no upstream', async () => {
    const { upstream, path } = await connected();
    const before = upstream.requests.length;
    for (const body of ['[]', '[{}]', 'null', 'true', '5', '"text"', '{', '{"a":}', '{}{}', '{"a":01}', "{'a':1}"]) {
      for (const tool of ['echo', 'repo/search']) {
        const answer = await call(path, tool, body);
        expect([body, answer.status]).toEqual([body, 400]);
        expectFailure(answer, 400, 'validation_error');
      }
    }
    expect(callsOf(upstream)).toEqual([]);
    expect(upstream.requests).toHaveLength(before);
  });

  verifies('call:unknown-tool', 'a missing tool returns 404 with every kind of upstream', async () => {
    for (const options of [{}, { sse: true }, { modernOnly: true }]) {
      const { path } = await connected(options);
      for (const missing of ['nothing', 'repo', 'repo/nothing', 'echo/deeper', 'Echo', '%00']) {
        const answer = await call(path, missing, {});
        expect([missing, answer.status, answer.text]).toEqual([missing, 404, notFound]);
      }
    }
  });

  /** A server with these tools, which answers every call, known or not, with an `isError` result. */
  const failing = '{"content":[],"isError":true}';
  const withTools = (tools: object[]) =>
    scripted(({ method }) => (method === 'tools/list' ? JSON.stringify({ tools, ttlMs: 0 }) : failing));

  verifies(['call:unknown-tool', 'error:hint'], 'is so by an isError result too; a hint costs no list', async () => {
    const { upstream, path } = await withTools([{ name: 'known', inputSchema: {} }]);
    const before = upstream.count('tools/list');
    const { status, text, headers } = await call(path, 'knwon', {});
    expect([status, text, headers.get('slipway-hint')]).toEqual([
      404,
      notFound,
      expect.stringContaining('Did you mean'),
    ]);
    expect(upstream.count('tools/list')).toBe(before + 1);
    expect(await call(path, 'known', {})).toMatchObject({ status: 200, text: failing });
  });

  verifies('error:hint', 'names of any characters arrive percent-encoded and cut', async () => {
    const [plain, long] = ['größe\r\nx: 100 %', '字'.repeat(60)];
    const tools = [plain, long].map((name) => ({ name, inputSchema: { type: 'object' } }));
    const { path } = await withTools(tools);
    const hintOf = async (tool: string) => {
      const { status, text, headers } = await call(path, encodeURIComponent(tool), {});
      expect([status, text]).toEqual([404, notFound]);
      return headers.get('slipway-hint') ?? '';
    };
    const missing = `The connection "${path.split('/').at(-1)}" has no such tool.`;
    expect(decodeURIComponent(await hintOf(`${plain}s`))).toBe(`${missing} Did you mean "${plain}"?`);
    const cut = await hintOf(`${long}s`);
    expect([cut.length > 500, cut.length <= 512]).toEqual([true, true]);
    expect(decodeURIComponent(cut)).toContain(`${missing} Did you mean "字`);
  });
});

describe('failures of the upstream', () => {
  verifies('call:upstream-rejects', 'a JSON-RPC error returns 422 with the message of the server', async () => {
    for (const options of [{}, { sse: true }, { modernOnly: true }]) {
      const answer = await call((await connected(options)).path, 'rpc_error', {});
      expectFailure(answer, 422, 'tool_error');
      expect(answer.body.message).toContain('The tool refused the arguments');
    }
  });

  verifies('call:upstream-rejects', 'an error without id or message returns 422 too', async () => {
    const errors = ['"id":null,"error":{"code":-32603,"message":"Broken"}', '"error":{"code":1}'];
    const { path } = await scripted(({ method }, res, nth) => {
      if (method === 'tools/list') return '{"tools":[{"name":"t","inputSchema":{}}]}';
      sendJson(res, `{"jsonrpc":"2.0",${errors[nth - 1]}}`);
    });
    for (const [i] of errors.entries()) {
      const answer = await call(path, 't', {});
      expectFailure(answer, 422, 'tool_error');
      if (i === 0) expect(answer.body.message).toContain('Broken');
    }
  });

  verifies(
    'call:upstream-rejects',
    'an error that asks its user to open pages has their links in the message',
    async () => {
      const elicitations = [{ mode: 'url', elicitationId: 'e', url: 'https://a.example/x?y=1', message: 'Visit' }];
      const error = JSON.stringify({ code: -32042, message: 'Open the page', data: { elicitations } });
      const { path } = await scripted(({ method, id }, res) => {
        if (method === 'tools/list') return '{"tools":[{"name":"t","inputSchema":{}}]}';
        sendJson(res, `{"jsonrpc":"2.0","id":${id},"error":${error}}`);
      });
      const answer = await call(path, 't', {});
      expectFailure(answer, 422, 'tool_error');
      expect(answer.body.message).toBe('Open the page. Open https://a.example/x?y=1 , then call again.');
    },
  );

  const nonsense: Record<string, string> = {
    'no JSON': 'Hello',
    'a cut JSON': '{"jsonrpc":"2.0","id":',
    'an array': '[]',
    null: 'null',
    'a number': '5',
    'no result': '{"jsonrpc":"2.0","id":ID}',
    'an error that is null': '{"jsonrpc":"2.0","id":ID,"error":null}',
    'an error of a plain HTTP API': '{"error":"forbidden"}',
    'another id': '{"jsonrpc":"2.0","id":999,"result":{}}',
    'a request': '{"jsonrpc":"2.0","id":ID,"method":"ping"}',
    nothing: '',
  };
  verifies(['call:upstream-down', 'call:no-retry'], 'a call that gets nonsense returns 502', async () => {
    let [text, type] = ['', ''];
    const { upstream, path } = await scripted(({ id, method }, res) => {
      if (method !== 'tools/call') return '{"tools":[{"name":"t","inputSchema":{}}]}';
      const json = text.replace('ID', String(id));
      res.writeHead(200, { 'content-type': type }).end(type === 'text/event-stream' ? `data: ${json}\n\n` : json);
    });
    let calls = 0;
    for (const [what, answer] of Object.entries(nonsense)) {
      for (type of ['application/json', 'text/event-stream', 'text/html', 'application/octet-stream']) {
        text = answer;
        expectFailure(await call(path, 't', {}), 502, 'upstream_error');
        expect([what, type, upstream.count('tools/call')]).toEqual([what, type, (calls += 1)]);
      }
    }
  });
});

verifies('stop:graceful', 'a call that the stop of the process interrupts answers an error with its id', async () => {
  const { upstream, path } = await connected();
  const leaving = await app.sibling();
  (leaving.get(HttpAdapterHost).httpAdapter as SlipwayAdapter).finishMs = 0;
  const running = [call(path, 'hold', {}, { on: leaving }), ask(path, toolCall(7, 'hold'), { on: leaving })];
  await upstream.waitFor((seen) => seen.count('tools/call') === 2);
  const closed = leaving.close();
  const [rest, mcp] = await Promise.all(running);
  const sentence = expect.stringMatching(/restarting.*unknown/);
  expect([rest.status, rest.body]).toEqual([503, { error: 'unavailable', message: sentence }]);
  expect(mcp.body).toMatchObject({ jsonrpc: '2.0', id: 7, error: { message: sentence } });
  upstream.release();
  await closed;
  // The connection is not to blame.
  expect((await app.as(owner).get(path)).body.status).toMatchObject({ state: 'connected' });
});
