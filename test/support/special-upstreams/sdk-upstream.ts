import { McpServer as McpServerV1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, fromJsonSchema, McpServer as McpServerV2 } from '@modelcontextprotocol/server';
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen, shut } from '../upstream/upstream-net.js';

/** A running server made with an official SDK. */
export interface SdkUpstream {
  /** The MCP endpoint, `http://127.0.0.1:<port>/mcp`. */
  url: string;
  /** Stops the server at once, with every open stream. */
  close(): Promise<void>;
}

const serverInfo = { name: 'sdk-upstream', version: '1.0.0' };
const description = 'Gives the message back unchanged.';
const inputSchema = {
  type: 'object' as const,
  properties: { message: { type: 'string' as const } },
  required: ['message'],
};

/**
 * A server made with the v1 SDK (1.32), with one tool `echo {message}`. `stateful` mints sessions and answers 404 to
 * unknown ones; otherwise every request gets a server of its own. `json` answers JSON instead of the SDK's event stream.
 */
export async function startSdkV1({
  stateful,
  json,
  make = echoServerV1,
}: {
  stateful: boolean;
  json: boolean;
  /** Makes the server of each session, instead of the one with `echo`. */
  make?: () => McpServerV1;
}): Promise<SdkUpstream> {
  const sessions = new Map<string, StreamableHTTPServerTransport>();

  async function connect(): Promise<StreamableHTTPServerTransport> {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: stateful ? () => randomUUID() : undefined,
      enableJsonResponse: json,
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    await make().connect(transport);
    return transport;
  }

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const id = req.headers['mcp-session-id'];
    const existing = typeof id === 'string' ? sessions.get(id) : undefined;
    if (stateful && typeof id === 'string' && !existing) {
      const error = { code: -32001, message: 'Session not found' };
      res.writeHead(404, { 'content-type': 'application/json' });
      res.end(JSON.stringify({ jsonrpc: '2.0', error, id: null }));
      return;
    }
    const transport = existing ?? (await connect());
    if (!stateful) res.on('close', () => void transport.close());
    await transport.handleRequest(req, res);
  }

  const server = createServer((req, res) => void handle(req, res));
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    close: async () => {
      await Promise.all([...sessions.values()].map((transport) => transport.close()));
      await shut(server);
    },
  };
}

/** An upstream server over HTTP+SSE. */
export interface SdkSseUpstream extends SdkUpstream {
  /** How many streams are open. */
  streams(): number;
  /** Cuts every stream, as a restart does. */
  cut(): void;
}

/** A server made with the v1 SDK over HTTP+SSE (2024-11-05), at `/mcp`, with the address for messages beside it. */
export async function startSdkSse(make: () => McpServerV1 = echoServerV1): Promise<SdkSseUpstream> {
  const transports = new Map<string, { transport: SSEServerTransport; res: ServerResponse }>();
  const server = createServer((req, res) => {
    void (async () => {
      const url = new URL(req.url ?? '', 'http://127.0.0.1');
      if (req.method === 'GET' && url.pathname === '/mcp') {
        const transport = new SSEServerTransport('/messages', res);
        transports.set(transport.sessionId, { transport, res });
        res.on('close', () => transports.delete(transport.sessionId));
        await make().connect(transport);
        return;
      }
      const existing = transports.get(url.searchParams.get('sessionId') ?? '');
      if (req.method === 'POST' && url.pathname === '/messages' && existing) {
        await existing.transport.handlePostMessage(req, res);
      } else res.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Cannot do that</h1>');
    })();
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    streams: () => transports.size,
    cut: () => [...transports.values()].forEach(({ res }) => res.destroy()),
    close: () => shut(server),
  };
}

/** The v1 tool is wired below `registerTool`, which wants zod: a package this project does not depend on itself. */
function echoServerV1(): McpServerV1 {
  const server = new McpServerV1(serverInfo, { capabilities: { tools: {} } });
  server.server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [{ name: 'echo', description, inputSchema }],
  }));
  server.server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
    content: [{ type: 'text', text: String(params.arguments?.['message']) }],
  }));
  return server;
}

/**
 * A server made with the v2 SDK (2.4), with one tool `echo {message}`. It supports 2026-07-28; `stateless` serves
 * `initialize` clients too, `reject` answers them 400 with -32022.
 */
export async function startSdkV2({
  legacy,
}: {
  legacy: 'stateless' | 'reject';
}): Promise<SdkUpstream & { toolsChanged(): void }> {
  const handler = createMcpHandler(
    () => {
      const server = new McpServerV2(serverInfo, { capabilities: { tools: { listChanged: true } } });
      const schema = fromJsonSchema<{ message: string }>(inputSchema);
      server.registerTool('echo', { description, inputSchema: schema }, ({ message }) => ({
        content: [{ type: 'text', text: message }],
      }));
      return server;
    },
    { legacy },
  );
  const toNode = toNodeHandler(handler);
  const server = createServer((req, res) => void toNode(req, res));
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    toolsChanged: () => handler.notify.toolsChanged(),
    close: async () => {
      await handler.close();
      await shut(server);
    },
  };
}
