/**
 * A server of 2025-11-25 by the official SDK, as a program: `node notification-server.mjs <port>`. Each session has a resource
 * to subscribe to. `POST /tell` sends every session that its tools changed, and an update to those that subscribed.
 * `GET /levels` answers the log levels that were set, one for each session that has one.
 */
import { randomUUID } from 'node:crypto';
import process from 'node:process';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  SetLevelRequestSchema,
  SubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import express from 'express';

const sessions = new Map();

async function open() {
  const session = { uris: new Set(), level: null };
  const capabilities = { tools: { listChanged: true }, resources: { subscribe: true }, logging: {} };
  session.server = new Server({ name: 'telling', version: '1.0.0' }, { capabilities });
  session.server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [] }));
  session.server.setRequestHandler(CallToolRequestSchema, () => ({ content: [] }));
  session.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    session.uris.add(params.uri);
    return {};
  });
  session.server.setRequestHandler(SetLevelRequestSchema, ({ params }) => {
    session.level = params.level;
    return {};
  });
  session.transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id) => void sessions.set(id, session),
  });
  await session.server.connect(session.transport);
  return session;
}

const app = express();
app.use(express.json());
app.post('/tell', async (_, response) => {
  for (const { server, uris } of sessions.values()) {
    await server.sendToolListChanged();
    for (const uri of uris) await server.sendResourceUpdated({ uri });
  }
  response.json(sessions.size);
});
app.get('/levels', (_, response) => {
  response.json([...sessions.values()].flatMap(({ level }) => level ?? []));
});
app.all('/mcp', async (request, response) => {
  const id = request.headers['mcp-session-id'];
  const session = id === undefined ? await open() : sessions.get(id);
  if (session) return session.transport.handleRequest(request, response, request.body);
  response.status(404).json({ jsonrpc: '2.0', error: { code: -32001, message: 'Session not found' }, id: null });
});
app.listen(Number(process.argv[2]), '127.0.0.1', () => console.log('listens'));
