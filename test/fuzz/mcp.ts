import type { Random } from './random.js';
import { anyValue, hugeValue, oddText } from './values.js';

const VERSIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28', '1999-01-01', ''];

const METHODS = [
  'initialize',
  'ping',
  'tools/list',
  'tools/call',
  'tools/call',
  'resources/list',
  'resources/read',
  'resources/templates/list',
  'resources/subscribe',
  'prompts/list',
  'prompts/get',
  'completion/complete',
  'logging/setLevel',
  'server/discover',
  'tasks/get',
  'tasks/list',
  'sampling/createMessage',
  'elicitation/create',
  'roots/list',
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'ai.smithery/events/list',
  'rpc.discover',
  'constructor',
  '',
];

const IDS: readonly unknown[] = [0, 1, -1, 1.5, 2 ** 53, 'a', '', 'é', null, true, [], {}, '1'];

/** Tools of the upstream that answer at once, with and without the name of a connection. */
const TOOLS = [
  'echo',
  'repo.search',
  'fail',
  'rpc_error',
  'asks',
  'raw',
  'none',
  'plain.echo',
  'mock.echo',
  'constructor',
];

function params(random: Random, method: string): unknown {
  switch (method) {
    case 'initialize':
      return { protocolVersion: random.pick(VERSIONS), capabilities: {}, clientInfo: { name: 'fuzz', version: '1' } };
    case 'tools/call':
      return { name: random.pick(TOOLS), arguments: random.chance(0.7) ? { message: 'hi' } : anyValue(random) };
    case 'resources/read':
    case 'resources/subscribe':
      return { uri: random.pick(['test://a', oddText(random)]) };
    case 'prompts/get':
      return { name: 'greet', arguments: {} };
    case 'completion/complete':
      return { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'a', value: oddText(random) } };
    case 'notifications/cancelled':
      return { requestId: random.pick(IDS), reason: oddText(random) };
    default:
      return {};
  }
}

/** One JSON-RPC message, from whole to nonsense. */
export function rpcMessage(random: Random): unknown {
  const method = random.pick(METHODS);
  const message: Record<string, unknown> = {
    jsonrpc: '2.0',
    id: random.pick([1, 1, 'a', random.pick(IDS)]),
    method,
    params: params(random, method),
  };
  if (method.startsWith('notifications/') || random.chance(0.05)) delete message.id;
  switch (random.int(0, 9)) {
    case 0:
      message[random.pick(['jsonrpc', 'id', 'method', 'params'])] = anyValue(random);
      return message;
    case 1:
      delete message[random.pick(['jsonrpc', 'method', 'params'])];
      return message;
    case 2: {
      const _meta = {
        progressToken: anyValue(random),
        'io.modelcontextprotocol/protocolVersion': random.pick(VERSIONS),
        [oddText(random)]: 1,
      };
      message.params = { ...(message.params as object), _meta: random.chance(0.8) ? _meta : anyValue(random) };
      return message;
    }
    case 3: {
      const answer = { jsonrpc: '2.0', id: random.pick(IDS), [random.pick(['result', 'error'])]: anyValue(random) };
      return random.chance(0.5) ? answer : anyValue(random);
    }
    case 4:
      message.params = random.chance(0.1)
        ? { ...(message.params as object), big: hugeValue(random) }
        : anyValue(random);
      return message;
    default:
      return message;
  }
}

/** The body of a request to an MCP endpoint: a message, or something else. */
export function rpcBody(random: Random): { text: string; request: unknown } {
  if (random.chance(0.1)) {
    const batch = Array.from({ length: random.pick([0, 1, 3, 101]) }, () => rpcMessage(random));
    return { text: JSON.stringify(batch), request: batch };
  }
  const request = rpcMessage(random);
  const text = JSON.stringify(request) ?? '';
  if (!random.chance(0.1)) return { text, request };
  const at = random.int(0, text.length);
  return {
    text: random.chance(0.5) ? text.slice(0, at) : `${text.slice(0, at)}${oddText(random)}${text.slice(at)}`,
    request: undefined,
  };
}

/** Headers of an MCP client, some of them wrong. */
export function rpcHeaders(random: Random): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: random.pick([
      'application/json, text/event-stream',
      'application/json, text/event-stream',
      'application/json',
      '*/*',
      'text/html',
      '',
    ]),
  };
  if (random.chance(0.4)) headers['mcp-protocol-version'] = random.pick(VERSIONS);
  if (random.chance(0.1))
    headers['mcp-session-id'] = random.pick(['x', '%00', 'a'.repeat(4_000), '00000000-0000-0000-0000-000000000000']);
  if (random.chance(0.1)) headers['mcp-method'] = random.pick(METHODS);
  if (random.chance(0.1)) headers['mcp-name'] = random.pick(TOOLS);
  if (random.chance(0.03)) headers.origin = 'https://evil.example';
  if (random.chance(0.03)) headers['content-type'] = random.pick(['text/plain', 'application/xml', '']);
  if (random.chance(0.05)) headers['last-event-id'] = random.pick(['0', 'x', '%']);
  return headers;
}
