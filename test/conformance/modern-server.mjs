#!/usr/bin/env node
// The fixture server of the 2026-07-28 conformance run, made with the v2 SDK: no sessions, and what it asks it asks by
// answering `input_required`. It refuses `initialize`.
//
//   node test/conformance/modern-server.mjs --port 4102

import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { localhostHostValidation, toNodeHandler } from '@modelcontextprotocol/node';
import {
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  inputRequired,
  McpServer,
  ResourceNotFoundError,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
import { completion, contentAt, prompts, resources, resourceTemplates, tools } from './offer.mjs';

const { values: options } = parseArgs({ options: { port: { type: 'string', default: '4102' } } });

/** The SDK refuses a state that did not come from here with -32602, before a tool sees it. */
const states = createRequestStateCodec({ key: randomBytes(32) });

/**
 * The next round's requests, or the end. Without a state a caller may answer the only round at once; with one, the
 * state says which round the answers belong to, and answers that are missing are asked for again.
 */
async function converse({ rounds, finish, hasState }, args, { mcpReq }) {
  const capabilities = mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
  const state = mcpReq.requestState();
  const answers = { ...state?.answers };
  let round = state?.round ?? 0;
  const asked = rounds[round]({ args, capabilities });
  const given = hasState && state === undefined ? {} : (mcpReq.inputResponses ?? {});
  const missing = Object.keys(asked).filter((key) => given[key] === undefined);
  if (missing.length === 0) {
    for (const key of Object.keys(asked)) answers[key] = given[key];
    round += 1;
    if (round === rounds.length) return finish(answers);
  }
  const inputRequests = rounds[round]({ args, capabilities });
  return inputRequired(
    hasState ? { inputRequests, requestState: await states.mint({ round, answers }) } : { inputRequests },
  );
}

/** Functions that a running tool may use. */
function callOf(args, { mcpReq }) {
  const progressToken = mcpReq._meta?.progressToken;
  return {
    args,
    progressToken,
    log: (level, data) => mcpReq.log(level, data),
    progress: async (progress, total) => {
      if (progressToken === undefined) return;
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total } });
    },
    dropStream: () => {}, // no stream of this era can be resumed
    changed: async (list) => (list === 'tools' ? handler.notify.toolsChanged() : handler.notify.promptsChanged()),
  };
}

function addTools(server) {
  for (const tool of tools) {
    const { name, description } = tool;
    const inputSchema = fromJsonSchema(tool.inputSchema);
    server.registerTool(name, { description, inputSchema }, (args, context) =>
      tool.rounds ? converse(tool, args, context) : tool.run(callOf(args, context)),
    );
  }
}

function addPrompts(server) {
  for (const prompt of prompts) {
    const { name, description, arguments: list } = prompt;
    const answer = (args, context) => (prompt.rounds ? converse(prompt, args, context) : prompt.run(args));
    if (!list) {
      server.registerPrompt(name, { description }, (context) => answer({}, context));
      continue;
    }
    const properties = Object.fromEntries(
      list.map((each) => [each.name, { type: 'string', description: each.description }]),
    );
    const argsSchema = fromJsonSchema({ type: 'object', properties, required: Object.keys(properties) });
    server.registerPrompt(name, { description, argsSchema }, answer);
  }
}

function addResources(server) {
  const read = ({ href }) => {
    const found = contentAt(href);
    if (!found) throw new ResourceNotFoundError(href);
    return found;
  };
  for (const { uri, name, ...config } of resources) server.registerResource(name, uri, config, read);
  for (const { uriTemplate, name, ...config } of resourceTemplates) {
    server.registerResource(name, new ResourceTemplate(uriTemplate, { list: undefined }), config, read);
  }
}

function makeServer() {
  const server = new McpServer(
    { name: 'conformance-modern', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        logging: {},
        completions: {},
      },
      requestState: { verify: states.verify },
    },
  );
  addTools(server);
  addPrompts(server);
  addResources(server);
  server.server.setRequestHandler('completion/complete', () => completion);
  return server;
}

const handler = createMcpHandler(makeServer, { legacy: 'reject' });
const toNode = toNodeHandler(handler);
const isLocal = localhostHostValidation();
createServer((request, response) => {
  if (isLocal(request, response)) void toNode(request, response);
}).listen(Number(options.port), '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${options.port}/mcp`));
