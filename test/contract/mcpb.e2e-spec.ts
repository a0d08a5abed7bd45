import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { testApp, type TestAccount } from '../support/app.js';
import { createServer } from '../support/factories.js';
import { bundledTools, packBundle, unpackBundle } from '../support/releases/mcpb.js';
import { published, releaseIn } from '../support/releases/releases.js';
import { pathOf } from '../support/database/server-rows.js';
import { longVerifies, verifies } from '../support/verifies.js';

const SLOW_MS = 300_000;

const app = testApp();
let owner: TestAccount;
let folder: string;
let bundle: Buffer;
let name: string;

/** Registry record of a server whose release is a bundle. */
interface Details {
  connections: { type: string; bundleUrl: string; runtime: string; configSchema: object }[];
  tools: { name: string; description: string }[];
}

beforeAll(async () => {
  [owner, folder, bundle] = await Promise.all([app.account(), mkdtemp(join(tmpdir(), 'slipway-mcpb-')), packBundle()]);
  name = await createServer(app, owner);
  const id = await published(app, owner, name, { type: 'stdio', runtime: 'node' }, { bundle });
  await releaseIn(app, owner, name, id, 'SUCCESS');
}, SLOW_MS);

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
}, SLOW_MS);

async function details(): Promise<Details> {
  const reader = await app.account();
  const { status, body } = await app.as(reader).get(pathOf(name));
  expect(status).toBe(200);
  return body as Details;
}

/** Published tools fetch an absolute URL without a key. */
async function bundleUrl(): Promise<string> {
  const { connections } = await details();
  expect(connections).toMatchObject([
    { type: 'stdio', runtime: 'node', configSchema: { properties: { key: { title: 'Key' } }, required: ['key'] } },
  ]);
  const [{ bundleUrl: url = '' } = {}] = connections;
  expect(url.replace(app.env.baseUrl, app.url)).toMatch(new RegExp(`^${app.url}/`));
  return url.replace(app.env.baseUrl, app.url);
}

describe('a bundle of the public MCPB tool', () => {
  verifies(
    'contract:bundle',
    'is downloaded byte for byte without a key, and not sent again for its ETag',
    async () => {
      const url = await bundleUrl();
      const download = await fetch(url);
      expect(download.status).toBe(200);
      expect(Buffer.from(await download.arrayBuffer()).equals(bundle)).toBe(true);

      const head = await fetch(url, { method: 'HEAD' });
      const etag = `"${createHash('sha256').update(bundle).digest('hex')}"`;
      expect([head.status, head.headers.get('etag')]).toEqual([200, etag]);
      expect(Date.parse(head.headers.get('last-modified') ?? '')).toBeLessThanOrEqual(Date.now());
      expect(head.headers.get('content-length')).toBe(String(bundle.length));
      expect(await (await fetch(url, { headers: { 'if-none-match': etag } })).text()).toBe('');

      const unsigned = await fetch(url.replace(/\?.*$/, ''));
      expect(unsigned.status).toBe(401);
      const forged = await fetch(
        url.replace(/signature=./, (start) => (start.endsWith('A') ? 'signature=B' : 'signature=A')),
      );
      expect(forged.status).toBe(403);
    },
  );

  longVerifies(
    'contract:bundle',
    'unpacks and runs, with the tools that the registry shows',
    async () => {
      const file = join(folder, 'downloaded.mcpb');
      const unpacked = join(folder, 'unpacked');
      await writeFile(file, Buffer.from(await (await fetch(await bundleUrl())).arrayBuffer()));
      await unpackBundle(file, unpacked);
      const manifest = JSON.parse(await readFile(join(unpacked, 'manifest.json'), 'utf8')) as {
        server: { mcp_config: { command: string; args: string[] } };
      };
      const { args } = manifest.server.mcp_config;
      const client = new Client({ name: 'contract', version: '1.0.0' });
      const filled = args.map((arg) => arg.replace('${__dirname}', unpacked));
      await client.connect(
        new StdioClientTransport({ command: process.execPath, args: filled, env: { WEATHER_KEY: 'k-1' } }),
      );
      try {
        const { tools } = await client.listTools();
        const shown = (await details()).tools;
        expect(shown.map((tool) => [tool.name, tool.description])).toEqual(
          tools.map((tool) => [tool.name, tool.description]),
        );
        expect(shown.map((tool) => tool.name)).toEqual(bundledTools.map((tool) => tool.name));
        expect(await client.callTool({ name: 'forecast', arguments: {} })).toMatchObject({
          content: [{ type: 'text', text: 'forecast with k-1' }],
        });
      } finally {
        await client.close();
      }
    },
    SLOW_MS,
  );
});
