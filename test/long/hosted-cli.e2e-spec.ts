import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp, uniqueName } from '../support/app.js';
import { createConnection, createNamespace } from '../support/factories.js';
import { openCli, type PublishedCli } from '../support/releases/published-cli.js';
import { releaseIn } from '../support/releases/releases.js';
import { connectV1, textOf } from '../support/upstream/upstream-clients.js';
import { verifies } from '../support/verifies.js';

/** The tool builds twice, starts the module that it built, and polls every two seconds. */
const SLOW_MS = 300_000;

const SERVER = `
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';
export const configSchema = z.object({ city: z.string().default('Oslo') });
export default function createServer({ config }: { config: z.infer<typeof configSchema> }) {
  const server = new McpServer({ name: 'weather', version: '1.0.0' });
  server.registerTool('forecast', { description: 'Tells the weather', inputSchema: {} }, async () => {
    return { content: [{ type: 'text', text: 'Rain in ' + config.city }] };
  });
  return server.server;
}
export function createSandboxServer() { return createServer({ config: { city: 'nowhere' } }); }
`;

const app = testApp();
const owner = testAccount(app);
let namespace: string;
let cli: PublishedCli;

beforeAll(async () => {
  namespace = await createNamespace(app, owner);
  cli = await openCli('@smithery/cli 4.7.4', { url: app.url, key: owner.key });
  await mkdir(join(cli.folder, 'src'));
  await writeFile(join(cli.folder, 'src', 'index.ts'), SERVER);
  await writeFile(join(cli.folder, 'package.json'), '{"name":"weather","version":"1.0.0","type":"module"}');
  await symlink(fileURLToPath(new URL('../../node_modules', import.meta.url)), join(cli.folder, 'node_modules'));
}, SLOW_MS);
afterAll(async () => {
  await cli?.close();
}, SLOW_MS);

describe('@smithery/cli 4.7.4', () => {
  verifies(
    'hosted:published-cli',
    'builds a server, publishes it, and the official client calls it at both addresses',
    async () => {
      const name = `${namespace}/${uniqueName('weather')}`;
      const built = await cli.run('build', 'src/index.ts', '-o', 'built');
      expect(built).toMatchObject({ code: 0, output: expect.stringContaining('bundle created') });
      await app.as(owner).put(`/servers/${encodeURIComponent(name)}`, {});
      const sent = await cli.run('publish', '-n', name, '--from-build', 'built');
      expect({ code: sent.code, output: sent.output }).toMatchObject({ code: 0 });
      const release = await releaseIn(app, owner, name, 'latest', 'SUCCESS');
      const requestInit = { headers: { authorization: `Bearer ${owner.key}` } };
      const client = await connectV1(`${String(release.mcpUrl)}?city=Bergen`, {}, requestInit);
      expect(textOf(await client.callTool({ name: 'forecast', arguments: {} }))).toBe('Rain in Bergen');
      const { path } = await createConnection(app, owner, { server: name }, { namespace });
      const through = await connectV1(`${app.url}${path}/mcp`, {}, requestInit);
      expect(textOf(await through.callTool({ name: 'forecast', arguments: {} }))).toBe('Rain in Oslo');
    },
    SLOW_MS,
  );
});
