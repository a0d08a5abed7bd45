import { ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll } from '@jest/globals';
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { externalServer } from '../../support/releases/current-releases.js';
import { startStdioBridge } from '../../support/upstream/stdio-bridge.js';
import { closing, connectV1, textOf } from '../../support/upstream/upstream-clients.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
let folder: string;

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'roots-')));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

async function folders(...names: string[]): Promise<string[]> {
  const paths = names.map((name) => join(folder, name));
  for (const path of paths) await mkdir(path, { recursive: true });
  return paths;
}

verifies(
  'mcp:server-requests',
  'the official filesystem server follows the roots of its client at every endpoint as directly',
  async () => {
    const [base = '', first = '', second = ''] = await folders('base', 'first', 'second');
    const main = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-filesystem/dist/index.js');
    const { url } = closing(await startStdioBridge([main, base]));
    const namespace = await createNamespace(app, owner);
    await createConnection(app, owner, { mcpUrl: url }, { namespace, connectionId: 'files' });
    const { slug } = await externalServer(app, owner, url);
    const tool = 'list_allowed_directories';
    const places: [string, string][] = [
      [url, tool],
      [`${app.url}/connect/${namespace}/files/mcp`, tool],
      [`${app.url}/run/${slug}`, tool],
      [`${app.url}/connect/${namespace}/.mcp`, `files.${tool}`],
    ];
    for (const [place, name] of places) {
      const client = await connectV1(
        place,
        { roots: { listChanged: true } },
        { headers: { authorization: `Bearer ${owner.key}` } },
      );
      let root = first;
      client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: pathToFileURL(root).href }] }));
      const shows = (path: string) =>
        until(
          async () => textOf(await client.callTool({ name })) === `Allowed directories:\n${path}`,
          `${place} shows ${path}`,
        );
      await shows(first);
      root = second;
      await client.sendRootsListChanged();
      await shows(second);
      await client.close();
    }
  },
);
