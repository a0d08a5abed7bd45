/** Requests to MCP endpoints, from whole to nonsense. */
import fc, { type Arbitrary } from 'fast-check';
import { weighted } from './draw.js';
import { anyValue, brokenText, hugeValue, nearly, oddText, replaced } from './values.js';

const versions = fc.constantFrom(
  ...['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28', '1999-01-01', ''],
);
const METHODS = [
  ...['initialize', 'ping', 'tools/list', 'tools/call', 'tools/call', 'resources/list', 'resources/read'],
  ...['resources/templates/list', 'resources/subscribe', 'prompts/list', 'prompts/get', 'completion/complete'],
  ...['logging/setLevel', 'server/discover', 'tasks/get', 'tasks/list', 'sampling/createMessage', 'elicitation/create'],
  ...['roots/list', 'notifications/initialized', 'notifications/cancelled', 'notifications/progress'],
  ...['ai.smithery/events/list', 'rpc.discover', 'constructor', ''],
];
const ids = fc.constantFrom<unknown>(0, 1, -1, 1.5, 2 ** 53, 'a', '', 'é', null, true, [], {}, '1');
/** Tools of the upstream that answer at once, with and without the name of a connection. */
const tools = fc.constantFrom(
  ...['echo', 'repo.search', 'fail', 'rpc_error', 'asks', 'raw', 'none', 'plain.echo', 'mock.echo', 'constructor'],
);
const uri = fc.record({ uri: weighted([1, fc.constant('test://a')], [1, oddText]) });

/** Parameters by their method; the other methods have none. */
const PARAMS = new Map<string, Arbitrary<object>>([
  [
    'initialize',
    fc.record({
      protocolVersion: versions,
      capabilities: fc.constant({}),
      clientInfo: fc.constant({ name: 'fuzz', version: '1' }),
    }),
  ],
  [
    'tools/call',
    fc.record({ name: tools, arguments: weighted<unknown>([7, fc.constant({ message: 'hi' })], [3, anyValue]) }),
  ],
  ['resources/read', uri],
  ['resources/subscribe', uri],
  ['prompts/get', fc.constant({ name: 'greet', arguments: {} })],
  [
    'completion/complete',
    oddText.map((value) => ({ ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'a', value } })),
  ],
  ['notifications/cancelled', fc.record({ requestId: ids, reason: oddText })],
]);

const message: Arbitrary<Record<string, unknown>> = fc
  .constantFrom(...METHODS)
  .chain((method) =>
    fc.record(
      {
        jsonrpc: fc.constant('2.0'),
        ...(!method.startsWith('notifications/') && {
          id: weighted([3, fc.constantFrom<unknown>(1, 1, 'a')], [1, ids]),
        }),
        method: fc.constant(method),
        params: PARAMS.get(method) ?? fc.constant({}),
      },
      { noNullPrototype: true },
    ),
  );
const meta = fc
  .record({ progressToken: anyValue, 'io.modelcontextprotocol/protocolVersion': versions, odd: oddText })
  .map(({ odd, ...rest }) => ({ ...rest, [odd]: 1 }));
const withParam = (name: string, values: Arbitrary<unknown>) =>
  fc
    .tuple(message, values)
    .map(([whole, value]) => ({ ...whole, params: { ...(whole.params as object), [name]: value } }));

/** One JSON-RPC message, from whole to nonsense. */
export const rpcMessage: Arbitrary<unknown> = weighted<unknown>(
  [50, message],
  [35, message.chain((whole) => fc.oneof(replaced(whole, anyValue), nearly(whole)))],
  [10, withParam('_meta', weighted<unknown>([4, meta], [1, anyValue]))],
  [
    5,
    fc
      .tuple(ids, fc.constantFrom('result', 'error'), anyValue)
      .map(([id, outcome, value]) => ({ jsonrpc: '2.0', id, [outcome]: value })),
  ],
  [5, anyValue],
  [1, withParam('big', hugeValue)],
);

/** The body of a request to an MCP endpoint: a message, or something else. */
export const rpcBody: Arbitrary<{ text: string; request: unknown }> = weighted(
  [
    1,
    fc
      .constantFrom(0, 1, 3, 101)
      .chain((length) => fc.array(rpcMessage, { minLength: length, maxLength: length }))
      .map((request) => ({ text: JSON.stringify(request), request })),
  ],
  [8, rpcMessage.map((request) => ({ text: JSON.stringify(request), request }))],
  [1, rpcMessage.chain((request) => brokenText(JSON.stringify(request))).map((text) => ({ text, request: undefined }))],
);

const seldom = (percent: number, ...values: string[]) =>
  weighted([percent, fc.constantFrom<string | undefined>(...values)], [100 - percent, fc.constant(undefined)]);

/** Headers of an MCP client, some of them wrong; those without a value are not sent. */
export const rpcHeaders: Arbitrary<Record<string, string | undefined>> = fc.record({
  'content-type': seldom(3, 'text/plain', 'application/xml', '').map((type = 'application/json') => type),
  accept: fc.constantFrom(
    ...['application/json, text/event-stream', 'application/json, text/event-stream', 'application/json', '*/*'],
    ...['text/html', ''],
  ),
  'mcp-protocol-version': weighted([4, versions], [6, fc.constant(undefined)]),
  'mcp-session-id': seldom(10, 'x', '%00', 'a'.repeat(4_000), '00000000-0000-0000-0000-000000000000'),
  'mcp-method': seldom(10, ...METHODS),
  'mcp-name': weighted([1, tools], [9, fc.constant(undefined)]),
  origin: seldom(3, 'https://evil.example'),
  'last-event-id': seldom(5, '0', 'x', '%'),
});
