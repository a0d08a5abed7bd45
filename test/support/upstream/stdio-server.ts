/**
 * A server over stdio, as bundles bring one: `echo`, `spin` (loops), `die` (exits), `spawn` (leaves a child behind),
 * `hold` (never answers), `env` (its environment), `progress`. Its error stream logs its actions.
 */
export const stdioServer = `
import { createInterface } from 'node:readline';
import { spawn } from 'node:child_process';
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
const text = (value) => ({ content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }] });
const names = ['echo', 'spin', 'die', 'spawn', 'hold', 'env', 'progress', 'flood'];
globalThis.tools = {
  echo: ({ message }) => text(message),
  spin: () => { for (;;); },
  die: () => { console.error('cannot go on'); process.exit(3); },
  spawn: () => text(String(spawn('sleep', ['600'], { stdio: 'ignore' }).pid)),
  env: () => text({ env: process.env, argv: process.argv.slice(2), pid: process.pid, uid: process.getuid?.() }),
  flood: () => { for (let i = 0; i < 1000; i += 1) console.error('line ' + i); return text('done'); },
};
createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === 'initialize') {
    const { protocolVersion } = params;
    return say({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'stdio', version: '1' } } });
  }
  if (method === 'tools/list') {
    return say({ id, result: { tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })) } });
  }
  if (method !== 'tools/call') return say({ id, error: { code: -32601, message: 'Method not found' } });
  console.error('called ' + params.name);
  if (params.name === 'hold') return;
  if (params.name === 'progress') {
    const progressToken = params._meta?.progressToken;
    say({ method: 'notifications/progress', params: { progressToken, progress: 1, total: 2 } });
    return say({ id, result: text('half') });
  }
  say({ id, result: await globalThis.tools[params.name](params.arguments ?? {}) });
});
`;
