import { buffer } from 'node:stream/consumers';
import { ZipFile } from 'yazl';

/** A zip with these files; what is in a folder `bin` may be executed. */
export async function zipOf(files: Record<string, string | Buffer>): Promise<Buffer> {
  const zip = new ZipFile();
  for (const [path, content] of Object.entries(files)) {
    zip.addBuffer(Buffer.from(content), path, /(^|\/)bin\//.test(path) ? { mode: 0o100755 } : {});
  }
  zip.end();
  return buffer(zip.outputStream);
}

export const manifest = {
  manifest_version: '0.3',
  name: 'weather',
  version: '2.1.0',
  display_name: 'Weather',
  description: 'Forecasts for tomorrow.',
  author: { name: 'Acme' },
  server: {
    type: 'node',
    entry_point: 'server/index.js',
    mcp_config: { command: 'node', args: ['${__dirname}/server/index.js'], env: { KEY: '${user_config.key}' } },
  },
  tools: [{ name: 'forecast', description: 'Tells the weather.' }],
  user_config: { key: { type: 'string', title: 'Key', description: 'From your account.', required: true } },
};

/** An MCPB bundle as `mcpb pack` makes it, with changes to its manifest. */
export function bundleOf(changes: object = {}, files: Record<string, string | Buffer> = {}): Promise<Buffer> {
  return zipOf({
    'manifest.json': JSON.stringify({ ...manifest, ...changes }),
    'server/index.js': 'console.log("hello");\n',
    ...files,
  });
}
