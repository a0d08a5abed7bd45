import { toNodeHandler } from '@modelcontextprotocol/node';
import { createServer as createMapServer } from '@modelcontextprotocol/server-map';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect } from '@jest/globals';
import { createServer as createHttpServer } from 'node:http';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { externalServer } from '../../support/releases/current-releases.js';
import { appsExtension, startApps } from '../../support/special-upstreams/apps-upstream.js';
import { startRich } from '../../support/special-upstreams/rich-upstream.js';
import { until } from '../../support/until.js';
import { closing, connectV1, textOf } from '../../support/upstream/upstream-clients.js';
import { listen, shut } from '../../support/upstream/upstream-net.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);

const PAGE = 'ui://weather/page.html';
const host = { extensions: appsExtension };

function connect(path: string, capabilities: object) {
  return connectV1(`${app.url}${path}`, capabilities, { headers: { authorization: `Bearer ${owner.key}` } });
}

type Client = Awaited<ReturnType<typeof connect>>;

/** Pages that listed tools name, by tool. */
async function pagesOf(client: Client): Promise<Record<string, string | undefined>> {
  const { tools } = await client.listTools();
  return Object.fromEntries(
    tools.map(({ name, _meta }) => {
      const ui = (_meta?.ui as { resourceUri: string } | undefined)?.resourceUri;
      return [name, ui ?? (_meta?.['openai/outputTemplate'] as string | undefined)];
    }),
  );
}

async function namespaceWith(connections: Record<string, string>): Promise<string> {
  const namespace = await createNamespace(app, owner);
  for (const [connectionId, mcpUrl] of Object.entries(connections)) {
    await createConnection(app, owner, { mcpUrl }, { namespace, connectionId });
  }
  return namespace;
}

/** A host at the endpoint of a namespace, once that knows this many pages. */
async function hostOf(namespace: string, pages: number): Promise<Client> {
  const client = await connect(`/connect/${namespace}/.mcp`, host);
  await until(
    async () => Object.values(await pagesOf(client)).filter(Boolean).length === pages,
    'the endpoint lists what is connected',
  );
  return client;
}

describe('extensions at the endpoints of a connection and of a server', () => {
  verifies('mcp:extensions', 'reach the server, whose capabilities reach the client', async () => {
    const capabilities = { experimental: { 'acme/x': { v: 1 } }, 'acme/unknown': { deep: [1] } };
    const { url, opened } = await startApps(PAGE, capabilities);
    const namespace = await namespaceWith({ apps: url });
    const server = await externalServer(app, owner, url);
    for (const path of [`/connect/${namespace}/apps/mcp`, `/run/${server.slug}`]) {
      opened.length = 0;
      const [first, second, plain] = [await connect(path, host), await connect(path, host), await connect(path, {})];
      for (const client of [first, second]) {
        expect(await pagesOf(client)).toEqual({ page: PAGE, widget: PAGE });
        expect(textOf(await client.callTool({ name: 'page' }))).toBe('page 0');
        expect((await client.readResource({ uri: PAGE })).contents).toMatchObject([{ uri: PAGE }]);
        expect(client.getServerCapabilities()).toMatchObject({
          extensions: appsExtension,
          experimental: { 'acme/x': { v: 1 } },
        });
      }
      expect(await pagesOf(plain)).toEqual({ text: undefined });
      // Both hosts share one session.
      expect(opened.filter((one) => one?.extensions)).toEqual([host]);
    }
  });

  verifies('mcp:extensions', 'open the session of a client that answers requests, with all its flags', async () => {
    const { url, opened } = await startApps(PAGE);
    const namespace = await namespaceWith({ apps: url });
    const capabilities = { ...host, roots: { listChanged: true }, experimental: { 'acme/y': {} } };
    const client = await connect(`/connect/${namespace}/apps/mcp`, capabilities);
    client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///a' }] }));
    expect(textOf(await client.callTool({ name: 'page' }))).toBe('page 1');
    expect(opened).toContainEqual(capabilities);
  });

  verifies('mcp:extensions', 'are left out above 1 KB, and from the eleventh kind on', async () => {
    const { url, opened } = await startApps(PAGE);
    const namespace = await namespaceWith({ apps: url });
    const path = `/connect/${namespace}/apps/mcp`;
    const large = await connect(path, { extensions: { ...appsExtension, 'acme/x': { text: 'x'.repeat(1_024) } } });
    expect(await pagesOf(large)).toEqual({ text: undefined });
    for (let kind = 1; kind <= 11; kind += 1) {
      const client = await connect(path, { extensions: { ...appsExtension, 'acme/x': { kind } } });
      expect(Object.keys(await pagesOf(client))).toEqual(kind <= 10 ? ['page', 'widget'] : ['text']);
    }
    expect(opened.filter((one) => one?.extensions)).toHaveLength(10);
  });
});

describe('pages of MCP Apps at the endpoint of a namespace', () => {
  verifies('union:apps', 'are read by the URI that a tool names, and the extension is declared', async () => {
    const [one, two] = [await startApps(PAGE), await startRich('')];
    const namespace = await namespaceWith({ apps: one.url, rich: closing(two).url });
    const client = await hostOf(namespace, 2);
    expect(client.getServerCapabilities()).toMatchObject({
      extensions: appsExtension,
      experimental: { 'acme/ping': {} },
    });
    expect(await pagesOf(client)).toMatchObject({ apps__page: PAGE, apps__widget: PAGE });
    const { contents } = await client.readResource({ uri: PAGE });
    expect(contents).toEqual([{ uri: PAGE, mimeType: 'text/html;profile=mcp-app', text: `${one.url} ${PAGE}` }]);
    // A process that has not listed the tools for this client yet.
    const other = await connect(`/connect/${namespace}/.mcp`, { extensions: { ...appsExtension, 'acme/x': {} } });
    expect((await other.readResource({ uri: PAGE })).contents).toEqual(contents);
    await expect(client.readResource({ uri: 'ui://weather/other.html' })).rejects.toThrow('Unknown resource');
  });

  verifies('union:apps', 'with one URI at several connections are listed under different ones', async () => {
    const [one, two] = [await startApps(PAGE), await startApps(PAGE)];
    const namespace = await namespaceWith({ one: one.url, two: two.url });
    const client = await hostOf(namespace, 4);
    const pages = await pagesOf(client);
    for (const [id, { url }] of Object.entries({ one, two })) {
      const uri = pages[`${id}__page`] as string;
      expect(uri).toMatch(/^ui:\/\//);
      expect(pages[`${id}__widget`]).toBe(uri);
      expect((await client.readResource({ uri })).contents).toMatchObject([{ uri, text: `${url} ${PAGE}` }]);
    }
    await expect(client.readResource({ uri: PAGE })).rejects.toThrow('Unknown resource');
  });

  verifies('union:apps', 'are read for a published server as at the server itself', async () => {
    const handler = createMcpHandler(() => createMapServer() as never, { legacy: 'stateless' });
    const toNode = toNodeHandler(handler);
    const server = createHttpServer((req, res) => void toNode(req, res));
    const url = `http://127.0.0.1:${await listen(server)}/mcp`;
    closing({ close: () => handler.close().then(() => shut(server)) });
    const uri = 'ui://cesium-map/mcp-app.html';
    const direct = await (await connectV1(url, host)).readResource({ uri });
    const namespace = await namespaceWith({ map: url, apps: (await startApps(PAGE)).url });
    const client = await hostOf(namespace, 3);
    expect(await pagesOf(client)).toMatchObject({ 'map__show-map': uri });
    expect((await client.readResource({ uri })).contents).toEqual(direct.contents);
    const own = await connect(`/connect/${namespace}/map/mcp`, host);
    expect((await own.readResource({ uri })).contents).toEqual(direct.contents);
  });
});
