import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { describe, expect } from '@jest/globals';
import { endAfterTest } from '../support/jest/leftovers.mjs';
import { until } from '../support/until.js';
import { verifies } from '../support/verifies.js';
import { Calls, kindNames, type Call } from './callers.mjs';
import { judge, type Fault, type Verdict } from './judge.mjs';

/** An answer of the service: a result, or an error with its text. */
type Answer = { text: string } | { error: string; status?: number } | 'cut' | 'nonsense';

/** How a service carries out one call. */
type Product = (token: string, execute: () => void) => Answer;

const done = (token: string): Answer => ({ text: `done ${token}` });

const sound: Product = (token, execute) => {
  execute();
  return done(token);
};

const broken: [string, Verdict, Product][] = [
  [
    'executes, and answers with an error that denies it',
    'unsaid',
    (_, execute) => {
      execute();
      return { error: 'The MCP server cannot be reached', status: 502 };
    },
  ],
  [
    'executes, and closes the connection',
    'unsaid',
    (_, execute) => {
      execute();
      return 'cut';
    },
  ],
  ['answers what it did not execute', 'notExecuted', done],
  [
    'repeats a call',
    'twice',
    (token, execute) => {
      execute();
      return sound(token, execute);
    },
  ],
  [
    "answers with another call's result",
    'wrong',
    (_, execute) => {
      execute();
      return done('of another');
    },
  ],
  ['answers 500', 'wrong', () => ({ error: 'Internal Server Error', status: 500 })],
  ['answers what is not JSON', 'wrong', () => 'nonsense'],
  ['closes the connection without a reason', 'unanswered', () => 'cut'],
];

/** A result or an error as the body of REST or of JSON-RPC. */
function bodyOf(answer: Exclude<Answer, string>, id: unknown): object {
  if ('text' in answer) {
    const result = { content: [{ type: 'text', text: answer.text }] };
    return id === undefined ? result : { jsonrpc: '2.0', id, result };
  }
  const error = { code: -32603, message: answer.error };
  return id === undefined ? { error: 'upstream_error', message: answer.error } : { jsonrpc: '2.0', id, error };
}

/** Calls a product by every kind of caller, until each kind has its answer. @returns the kinds with each verdict */
async function verdictsOn(product: Product): Promise<Partial<Record<Verdict, string[]>>> {
  const executions = new Map<string, number>();
  const serve = async (message: Message, response: ServerResponse) => {
    const { id, method } = message;
    if (method === 'initialize') {
      return void response.setHeader('mcp-session-id', 'a').end(JSON.stringify({ jsonrpc: '2.0', id, result: {} }));
    }
    const token = message.token ?? message.params?.arguments?.token ?? '';
    const answer = product(token, () => executions.set(token, (executions.get(token) ?? 0) + 1));
    if (answer === 'cut') return void response.destroy();
    if (answer === 'nonsense') return void response.end('<html>');
    response.statusCode = 'status' in answer ? (answer.status ?? 200) : 200;
    response.end(JSON.stringify(bodyOf(answer, id)));
  };
  const server = createServer((request, response) => {
    void json(request).then((message) => serve(message as Message, response));
  }).listen(0, '127.0.0.1');
  endAfterTest(() => server.close());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const calls = new Calls({ urls: [url], key: 'key' }, 1);
  const ended = () => new Set(calls.all.filter(({ outcome }) => outcome !== 'open').map(({ kind }) => kind));
  await until(() => ended().size === kindNames.length, 'every kind has an answer');
  await calls.end();
  const verdicts = Object.entries(judge(calls.all, [], executions)).filter(([, list]) => list.length > 0);
  return Object.fromEntries(verdicts.map(([name, list]) => [name, kindNames.filter((kind) => has(list, kind))]));
}

interface Message {
  id?: unknown;
  method?: string;
  token?: string;
  params?: { arguments?: { token?: string } };
}

const has = (calls: Call[], kind: string) => calls.some((call) => call.kind === kind);

describe('the judge of the chaos run', () => {
  verifies(
    'call:counted-in-chaos',
    'finds nothing in a sound service, nor in errors that say what is unknown',
    async () => {
      expect(await verdictsOn(sound)).toEqual({});
      const unknown = 'The connection broke; whether the call was carried out is unknown';
      const honest: Product = (_, execute) => {
        execute();
        return { error: unknown, status: 502 };
      };
      expect(await verdictsOn(honest)).toEqual({});
    },
  );

  for (const [name, verdict, product] of broken) {
    verifies('call:counted-in-chaos', `reports a service that ${name}, by every kind of caller`, async () => {
      expect(await verdictsOn(product)).toMatchObject({ [verdict]: kindNames });
    });
  }

  const call = { kind: 'REST', at: 0, token: 'a', startedAt: 100, endedAt: 200, outcome: 'lost', text: '' } as const;
  const fault = (name: string, part = 'api 1', [startedAt, overAt, readyAt] = [150, 160, 300]): Fault => ({
    ...{ part, fault: name, startedAt, overAt, readyAt },
  });
  /** The verdicts on one lost call. */
  const onLost = (faults: Fault[], executed: number, more: object = {}) =>
    Object.entries(judge([{ ...call, ...more }], faults, new Map([['a', executed]])))
      .filter(([, list]) => list.length > 0)
      .map(([verdict]) => verdict);

  verifies('call:counted-in-chaos', 'excuses a lost connection only by a failure of its own process and time', () => {
    expect(onLost([fault('kill')], 1)).toEqual([]);
    expect(onLost([fault('worker')], 1)).toEqual([]);
    expect(onLost([fault('kill')], 2)).toEqual(['twice']);
    expect(onLost([fault('kill', 'api 2')], 1)).toEqual(['unsaid']);
    expect(onLost([fault('kill', 'host')], 0)).toEqual(['unanswered']);
    expect(onLost([fault('kill', 'api 1', [0, 50, 90])], 0)).toEqual(['unanswered']);
    expect(onLost([fault('restart')], 0)).toEqual([]);
    expect(onLost([fault('restart')], 1)).toEqual(['unsaid']);
  });

  verifies('call:counted-in-chaos', 'reports a call that is never answered, whatever was disturbed meanwhile', () => {
    expect(onLost([fault('restart')], 0, { isHung: true })).toEqual(['unanswered']);
    expect(onLost([fault('pause')], 1, { isHung: true })).toEqual(['unsaid']);
  });
});
