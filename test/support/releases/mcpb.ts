import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const program = fileURLToPath(new URL('../../../node_modules/@anthropic-ai/mcpb/dist/cli/cli.js', import.meta.url));
const run = promisify(execFile);

/** The tools of {@link serverSource}, as its manifest names them. */
export const bundledTools = [
  { name: 'forecast', description: 'Tells the weather of a place.' },
  { name: 'alerts', description: 'Lists warnings.' },
];

/** A server over stdio, written by hand: a bundle brings everything it needs. */
const serverSource = `
import { createInterface } from 'node:readline';
const tools = ${JSON.stringify(bundledTools)}.map((tool) => ({ ...tool, inputSchema: { type: 'object' } }));
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'bundled-weather', version: '1.2.0' },
  }),
  'tools/list': () => ({ tools }),
  'tools/call': ({ name }) => ({ content: [{ type: 'text', text: name + ' with ' + process.env.WEATHER_KEY }] }),
};
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  const body = answer ? { result: answer(params) } : { error: { code: -32601, message: 'Method not found' } };
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...body }) + '\\n');
});
`;

const manifest = {
  manifest_version: '0.3',
  name: 'bundled-weather',
  version: '1.2.0',
  description: 'Forecasts for any place.',
  author: { name: 'Acme' },
  server: {
    type: 'node',
    entry_point: 'server/index.mjs',
    mcp_config: {
      command: 'node',
      args: ['${__dirname}/server/index.mjs'],
      env: { WEATHER_KEY: '${user_config.key}' },
    },
  },
  tools: bundledTools,
  user_config: { key: { type: 'string', title: 'Key', description: 'Of the weather service.', required: true } },
};

/** A bundle of a small server, made by `mcpb pack`. */
export async function packBundle(): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'slipway-mcpb-'));
  try {
    const files = { 'manifest.json': JSON.stringify(manifest, null, 2), 'server/index.mjs': serverSource };
    for (const [path, content] of Object.entries(files)) {
      const file = join(folder, 'source', path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, content);
    }
    const packed = join(folder, 'weather.mcpb');
    await run(process.execPath, [program, 'pack', join(folder, 'source'), packed]);
    return await readFile(packed);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** `mcpb unpack` into a folder that it makes. */
export async function unpackBundle(file: string, folder: string): Promise<void> {
  await run(process.execPath, [program, 'unpack', file, folder]);
}
