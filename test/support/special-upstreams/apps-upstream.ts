import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  type ClientCapabilities,
} from '@modelcontextprotocol/sdk/types.js';
import { closing } from '../upstream/upstream-clients.js';
import { startSdkV1 } from './sdk-upstream.js';

/** Extension of MCP Apps, as hosts declare it. */
export const appsExtension = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } };

const inputSchema = { type: 'object' as const };

/** Starts a server of MCP Apps, closed when the test is over. It has `capabilities` besides tools and resources. */
export async function startApps(page: string, capabilities: object = {}) {
  const opened: (ClientCapabilities | undefined)[] = [];
  const make = () => {
    const made = new McpServer(
      { name: 'apps', version: '1' },
      { capabilities: { tools: {}, resources: {}, extensions: appsExtension, ...capabilities } },
    );
    const { server } = made;
    server.oninitialized = () => void opened.push(server.getClientCapabilities());
    // As servers of @modelcontextprotocol/ext-apps choose by `getUiCapability`.
    const hasPages = () => server.getClientCapabilities()?.extensions?.['io.modelcontextprotocol/ui'] !== undefined;
    server.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: hasPages()
        ? [
            { name: 'page', inputSchema, _meta: { ui: { resourceUri: page }, 'ui/resourceUri': page, own: 1 } },
            { name: 'widget', inputSchema, _meta: { 'openai/outputTemplate': page } },
          ]
        : [{ name: 'text', inputSchema }],
    }));
    server.setRequestHandler(CallToolRequestSchema, async ({ params: { name } }) => {
      const roots = name === 'page' && server.getClientCapabilities()?.roots ? await server.listRoots() : { roots: [] };
      return { content: [{ type: 'text', text: `${hasPages() ? 'page' : 'text'} ${roots.roots.length}` }] };
    });
    server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => ({
      contents: [{ uri, mimeType: 'text/html;profile=mcp-app', text: `${url} ${uri}` }],
    }));
    return made;
  };
  const { url } = closing(await startSdkV1({ stateful: true, json: false, make }));
  return { url, opened };
}
