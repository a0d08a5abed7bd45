/** What programs of bundles get and write, from reports about MCP hubs. One app and one bundle. */
import { beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { ask } from '../../support/mcp/mcp-calls.js';
import { send } from '../../support/mcp/calls.js';
import { bundleOf } from '../../support/releases/bundles.js';
import { published, releaseIn } from '../../support/releases/releases.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

/** Returns the line of its call, and writes the lines that it is told before. */
const PROGRAM = `
let text = '';
process.stdin.setEncoding('utf8').on('data', (chunk) => {
  text += chunk;
  for (let at; (at = text.indexOf('\\n')) >= 0; text = text.slice(at + 1)) {
    const line = text.slice(0, at);
    const { id, method, params } = JSON.parse(line);
    const answer = (result) => process.stdout.write('{"jsonrpc":"2.0","id":' + id + ',"result":' + result + '}\\n');
    if (method === 'initialize') answer('{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"d","version":"1"}}');
    else if (method === 'tools/list') answer('{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}');
    else if (method === 'tools/call') {
      for (const other of params.arguments.lines ?? []) process.stdout.write(other.replaceAll('ID', id) + '\\n');
      answer('{"content":[{"type":"text","text":' + JSON.stringify(line) + '}],"structuredContent":' + (params.arguments.json ?? '{}') + '}');
    } else if (id !== undefined) answer('{}');
  }
});`;

const app = testApp({ RUNTIME_BUNDLES: 'isolated' });
const owner = testAccount(app);
let server: string;
let path: string;

beforeAll(async () => {
  server = await createServer(app, owner);
  const file = await bundleOf({ tools: [], user_config: {} }, { 'server/index.js': PROGRAM });
  const id = await published(app, owner, server, { type: 'stdio', runtime: 'node' }, { bundle: file });
  await releaseIn(app, owner, server, id, 'SUCCESS');
  const namespace = await createNamespace(app, owner);
  ({ path } = await createConnection(app, owner, { server }, { namespace }));
});

describe('the numbers of a call', () => {
  verifies('wire:bundle-digits', 'reach a program and its caller with all digits', async () => {
    const numbers = [
      ...['9007199254740993', '-9007199254740993', '18446744073709551615', '1917043659912705296'],
      ...['0.1000000000000000055511151231257827', '1e400', '1E2', '-0', '1.0', '123456789012345678901234567890'],
    ];
    const list = `[${numbers.join(', ')}, "9007199254740993", "a \\" 1e400", 1, 2.5]`;
    const json = `{"list":${list},"id":9007199254740993,"deep":{"9007199254740993":[[9007199254740993]]}}`;
    const params = `{"name":"echo","arguments":{"list":${list},"json":${JSON.stringify(json)}}}`;
    const run = `/run/${server.replace('/', '--')}`;
    const accept = 'application/json, text/event-stream';
    for (const door of [run, `${path}/mcp`]) {
      const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`;
      const { text: answer } = await send(app, owner, door, text, { headers: { accept } });
      expect(answer).toContain(JSON.stringify(numbers.join(',')).slice(1, -1));
      expect(answer.replaceAll(', ', ',')).toContain(`"structuredContent":${json.replaceAll(', ', ',')}`);
    }
  });
});

describe('a line that is not a message', () => {
  verifies('wire:bundle-lines', 'is in the log of the server, and fails no call', async () => {
    const lines = [
      ...['{"level":"error","error":"LINE1"}', '{"id":ID,"msg":"LINE2"}', '{"id":"ID","result":"LINE3"}'],
      ...['["LINE4"]', '[{"level":"LINE5"}]', '"LINE6"', '{"method":"GET","path":"/LINE7"}', 'LINE8'],
      ...['{"error":{"code":1,"message":"LINE9"}}', `{"x":"LINE10","y":${'['.repeat(150)}${']'.repeat(150)}}`, '17'],
    ];
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { lines } } };
    const { body } = await ask(`${app.url}${path}/mcp`, call, { authorization: `Bearer ${owner.key}` });
    expect(body).toMatchObject({ result: { structuredContent: {} } });
    const logOf = async () =>
      JSON.stringify((await app.as(owner).get(`/servers/${encodeURIComponent(server)}/logs?limit=100`)).body);
    for (let n = 1; n <= 10; n += 1)
      await until(async () => (await logOf()).includes(`LINE${n}`), `line ${n} is in the log`);
  });
});
