#!/usr/bin/env node
// The fixture server of the 2025-11-25 conformance run, made with the v1 SDK: one session per client, and what it asks
// it asks with requests of its own.
//
//   node test/conformance/legacy-server.mjs --port 4101

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { localhostHostValidation } from '@modelcontextprotocol/node';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  CreateMessageResultSchema,
  ElicitResultSchema,
  ErrorCode,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListRootsResultSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { completion, contentAt, prompts, resources, resourceTemplates, tools } from './offer.mjs';

const { values: options } = parseArgs({ options: { port: { type: 'string', default: '4101' } } });

/** "Resource not found" of this era; the SDK has no name for it. */
const resourceNotFound = -32002;

const answerSchemas = {
  'elicitation/create': ElicitResultSchema,
  'sampling/createMessage': CreateMessageResultSchema,
  'roots/list': ListRootsResultSchema,
};

/** By session id. */
const sessions = new Map();

/** Sends every request of every round, one after the other, then finishes. */
async function converse({ rounds, finish }, args, { sendRequest }, capabilities) {
  const answers = {};
  for (const round of rounds) {
    for (const [key, request] of Object.entries(round({ args, capabilities }))) {
      answers[key] = await sendRequest(request, answerSchemas[request.method]);
    }
  }
  return finish(answers);
}

const listChanged = {
  tools: (server) => server.sendToolListChanged(),
  prompts: (server) => server.sendPromptListChanged(),
};

/** Functions that a running tool may use. */
function callOf(args, { sendNotification, closeSSEStream, _meta }) {
  const progressToken = _meta?.progressToken;
  return {
    args,
    progressToken,
    log: (level, data) => sendNotification({ method: 'notifications/message', params: { level, data } }),
    progress: async (progress, total) => {
      if (progressToken === undefined) return;
      await sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total } });
    },
    dropStream: () => closeSSEStream?.(),
    changed: (list) => Promise.all([...sessions.values()].map(({ server }) => listChanged[list](server))),
  };
}

function makeServer() {
  const { server } = new McpServer(
    { name: 'conformance-legacy', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        logging: {},
        completions: {},
      },
      enforceStrictCapabilities: true, // never ask a client for what it did not say it can do
    },
  );
  const known = (offered, name) => {
    const found = offered.find((each) => each.name === name);
    if (!found) throw new McpError(ErrorCode.InvalidParams, `There is no "${name}".`);
    return found;
  };
  const declared = () => server.getClientCapabilities() ?? {};

  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const tool = known(tools, params.name);
    const args = params.arguments ?? {};
    if (!tool.rounds) return tool.run(callOf(args, extra));
    try {
      return await converse(tool, args, extra, declared());
    } catch (error) {
      return { content: [{ type: 'text', text: `Asking failed: ${error.message}` }], isError: true };
    }
  });
  server.setRequestHandler(ListPromptsRequestSchema, () => ({
    prompts: prompts.map(({ name, description, arguments: list }) => ({ name, description, arguments: list })),
  }));
  server.setRequestHandler(GetPromptRequestSchema, async ({ params }, extra) => {
    const prompt = known(prompts, params.name);
    const args = params.arguments ?? {};
    return prompt.rounds ? converse(prompt, args, extra, declared()) : prompt.run(args);
  });
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates }));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => {
    const found = contentAt(uri);
    if (!found) throw new McpError(resourceNotFound, 'Resource not found', { uri });
    return found;
  });
  server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));
  server.setRequestHandler(CompleteRequestSchema, () => completion);
  return server;
}

/** Keeps the messages of one session, so that a client whose stream broke gets what it missed. */
function makeEventStore() {
  const events = [];
  return {
    storeEvent: async (stream, message) => {
      events.push({ stream, message });
      return String(events.length);
    },
    replayEventsAfter: async (lastEventId, { send }) => {
      const last = Number(lastEventId);
      const { stream } = events[last - 1];
      for (const [index, event] of events.entries()) {
        const isDue = index >= last && event.stream === stream && event.message.jsonrpc !== undefined;
        if (isDue) await send(String(index + 1), event.message);
      }
      return stream;
    },
  };
}

async function openSession() {
  const server = makeServer();
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    eventStore: makeEventStore(),
    retryInterval: 500,
    onsessioninitialized: (id) => void sessions.set(id, { server, transport }),
    onsessionclosed: (id) => void sessions.delete(id),
  });
  await server.connect(transport);
  return transport;
}

async function handle(request, response) {
  const id = request.headers['mcp-session-id'];
  const session = sessions.get(id);
  if (id !== undefined && !session) {
    const error = { code: -32001, message: 'Session not found' };
    response.writeHead(404, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', error, id: null }));
    return;
  }
  await (session?.transport ?? (await openSession())).handleRequest(request, response);
}

const isLocal = localhostHostValidation();
createServer((request, response) => {
  if (isLocal(request, response)) void handle(request, response);
}).listen(Number(options.port), '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${options.port}/mcp`));
