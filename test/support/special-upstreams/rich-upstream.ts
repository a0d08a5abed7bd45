import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  CallToolRequestSchema,
  ErrorCode,
  GetPromptRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { startSdkV1, type SdkUpstream } from './sdk-upstream.js';

const LINK = 'demo://linked';
const EMBEDDED = 'demo://embedded';
const inputSchema = { type: 'object' as const };

/**
 * A v1 server with instructions, whose results name resources, whose tool `ask` is listed only to clients that it can ask,
 * whose tool `links` logs on two levels and reports an update, and that knows a method of its own, `acme/ping`.
 */
export function startRich(instructions: string): Promise<SdkUpstream> {
  return startSdkV1({ stateful: true, json: false, make: () => make(instructions) });
}

function make(instructions: string): McpServer {
  const made = new McpServer(
    { name: 'rich', version: '1' },
    {
      instructions,
      capabilities: { tools: {}, resources: {}, prompts: {}, logging: {}, experimental: { 'acme/ping': { v: 1 } } },
    },
  );
  const { server } = made;
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: ['links', ...(server.getClientCapabilities()?.elicitation ? ['ask'] : [])].map((name) => ({
      name,
      inputSchema,
    })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async (_request, { sendNotification }) => {
    for (const level of ['info', 'error'] as const) {
      await sendNotification({ method: 'notifications/message', params: { level, data: `${level}: called` } });
    }
    await sendNotification({ method: 'notifications/resources/updated', params: { uri: LINK } });
    return {
      content: [
        { type: 'resource_link', uri: LINK, name: 'linked' },
        { type: 'resource', resource: { uri: EMBEDDED, text: 'the embedded one' } },
      ],
    };
  });
  server.setRequestHandler(GetPromptRequestSchema, () => ({
    messages: [{ role: 'user', content: { type: 'resource', resource: { uri: EMBEDDED, text: 'the embedded one' } } }],
  }));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => ({ contents: [{ uri, text: uri }] }));
  server.fallbackRequestHandler = ({ method }) => {
    if (method !== 'acme/ping') throw new McpError(ErrorCode.MethodNotFound, 'Method not found');
    return Promise.resolve({ pong: true });
  };
  return made;
}
