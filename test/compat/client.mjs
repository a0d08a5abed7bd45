/**
 * One published MCP client against one address, in a process of its own: prints as JSON what it saw, and the whole answers.
 * scripts/compat.mjs gives this text to Node on stdin in the folder where the packages are, which a program on stdin imports
 * from.
 *
 *   node --input-type=module - <client> <JSON: url, key, tool, input, listenMs, roots>
 */
import process from 'node:process';
import { setTimeout as wait } from 'node:timers/promises';

const [name, options = '{}'] = process.argv.slice(2);
const {
  url: address = 'http://localhost',
  key = '',
  tool = 'echo',
  input = { message: 'hi' },
  listenMs = 0,
  roots = [],
} = JSON.parse(options);
const url = new URL(address);
const headers = key === '' ? {} : { authorization: `Bearer ${key}` };
const callMaxMs = 20_000;
const info = { name: 'compat', version: '1' };
const saw = { connect: 'no' };
/** The whole answers of each part of `saw`. */
const answers = {};
/** Answers, and what the server asked, since the last part ended. */
let heard = [];

/** At the namespace endpoint a tool is named after its connection too. */
const isNamed = (wanted) => (each) => each.name === wanted || each.name.endsWith(`__${wanted}`);
const textOf = ({ content }) =>
  content
    ?.map((part) => part.text ?? part.type)
    .join(' ')
    .replace(/\s+/g, ' ');

/** Keeps what `work` tells and what is heard meanwhile. A failed part is one result of several. */
async function part(label, work) {
  heard = [];
  try {
    saw[label] = await work();
  } catch (error) {
    saw[label] = `fails: ${String(error.message).split('\n')[0]}`;
  }
  if (saw[label] !== undefined) answers[label] = heard;
  heard = [];
}

/** Keeps answers and questions as they come, since the SDK drops members that it does not know. */
function listenTo(transport) {
  const { onmessage } = transport;
  transport.onmessage = (message, extra) => {
    const { id, method, params, result, error } = message;
    if (method === undefined) heard.push(result ?? error);
    // A server asks for roots when it likes.
    else if (id !== undefined && method !== 'roots/list') heard.push({ method, params });
    onmessage(message, extra);
  };
}

/** The clients of the official SDK, of one shape since its first version. */
async function official(specifier, transportName, options, more) {
  const isSplit = specifier === '@modelcontextprotocol/client';
  const { Client } = await import(isSplit ? specifier : `${specifier}/client/index.js`);
  const file = transportName === 'SSEClientTransport' ? 'sse' : 'streamableHttp';
  const transports = await import(isSplit ? specifier : `${specifier}/client/${file}.js`);
  const { types = {} } = isSplit ? {} : { types: await import(`${specifier}/types.js`) };
  const canAnswer = isSplit || types.ElicitRequestSchema !== undefined;
  const client = new Client(info, { capabilities: canAnswer ? { elicitation: {} } : {}, ...options });
  const isAsked = canAnswer && options?.capabilities === undefined;
  const on = (schema, method, handler) => {
    if (isSplit) client.setNotificationHandler?.(method, handler);
    else if (schema) client.setNotificationHandler(schema, handler);
  };
  const logs = [];
  const updates = [];
  on(types.LoggingMessageNotificationSchema, 'notifications/message', ({ params }) => void logs.push(params));
  on(
    types.ResourceUpdatedNotificationSchema,
    'notifications/resources/updated',
    ({ params }) => void updates.push(params),
  );
  const answer = () => ({ action: 'accept', content: { name: 'compat' } });
  if (isSplit) client.setRequestHandler('elicitation/create', answer);
  else if (isAsked) client.setRequestHandler(types.ElicitRequestSchema, answer);
  // SDK 1.8 sends the headers of `requestInit` with POST alone.
  const withHeaders = (to, init) => fetch(to, { ...init, headers: { ...headers, accept: 'text/event-stream' } });
  const eventSourceInit = specifier === 'sdk-1.8' ? { fetch: withHeaders } : undefined;
  const transport = new transports[transportName](url, { requestInit: { headers }, eventSourceInit });
  await client.connect(transport);
  saw.connect = 'yes';
  answers.initialize = {
    era: client.getProtocolEra?.(),
    info: client.getServerVersion(),
    instructions: client.getInstructions?.(),
  };
  listenTo(transport);
  let tools = [];
  await part('tools', async () => {
    ({ tools } = await client.listTools());
    return tools.length;
  });
  const call = (wanted, args, more = {}) => {
    const params = { name: tools.find(isNamed(wanted))?.name ?? wanted, arguments: args };
    const settings = { timeout: callMaxMs, ...more };
    return isSplit ? client.callTool(params, settings) : client.callTool(params, undefined, settings);
  };
  if (more) {
    await more({ client, types, tools, call });
    return client.close();
  }
  const has = client.getServerCapabilities() ?? {};
  if (listenMs > 0) {
    if (has.logging) await client.setLoggingLevel('debug').catch(() => undefined);
    if (has.resources?.subscribe) {
      const { resources } = await client.listResources();
      if (resources[0]) await client.subscribeResource({ uri: resources[0].uri });
    }
    await part('call', async () => textOf(await call(tool, input))?.slice(0, 40));
    await wait(listenMs);
    Object.assign(saw, { logs: logs.length, updates: updates.length });
    Object.assign(answers, { logs, updates });
    return client.close();
  }
  await part('call', async () => textOf(await call(tool, input)));
  // An empty list is as good as none: a namespace offers all lists, since its connections come and go.
  if (has.resources) await part('resources', async () => (await client.listResources()).resources.length || undefined);
  if (has.prompts) await part('prompts', async () => (await client.listPrompts()).prompts.length || undefined);
  if (tools.some(isNamed('trigger-long-running-operation'))) {
    let progress = 0;
    const onprogress = () => void (progress += 1);
    await part('progress', async () => {
      await call('trigger-long-running-operation', { duration: 0.3, steps: 3 }, { onprogress });
      // How many arrive before the answer varies from run to run.
      return progress > 0;
    });
  }
  if (tools.some(isNamed('trigger-elicitation-request'))) {
    await part('elicitation', async () => /provided/.test(textOf(await call('trigger-elicitation-request', {}))));
  }
  await client.close();
}

/** Follows one root, then another one. Until the server has asked for the roots, its tools have others. */
async function followRoots({ client, types, call }) {
  let root;
  client.setRequestHandler(types.ListRootsRequestSchema, () => ({ roots: [{ uri: root }] }));
  for (const [index, uri] of roots.entries()) {
    root = uri;
    await client.sendRootsListChanged();
    const until = Date.now() + callMaxMs;
    const isFollowed = async () => textOf(await call(tool, input)).endsWith(` ${new URL(uri).pathname}`);
    while (!(await isFollowed()) && Date.now() < until) await wait(100);
    await part(`root ${index + 1}`, async () => isFollowed());
  }
}

/** Reads the page of each tool that has one, as a host of MCP Apps. */
async function readPages({ client, tools, call }) {
  await part('call', async () => textOf(await call(tool, input)));
  await part('pages', async () => {
    const uris = tools.flatMap(({ _meta }) => _meta?.ui?.resourceUri ?? []);
    for (const uri of uris) await client.readResource({ uri });
    return uris.length;
  });
}

/** Calls a tool and asks for a task, which the server need not know. */
async function callWithTask({ client, types, tools }) {
  const params = { name: tools.find(isNamed(tool))?.name, arguments: input, task: { ttl: 60_000 } };
  await part('call', async () =>
    textOf(await client.request({ method: 'tools/call', params }, types.CallToolResultSchema)),
  );
}

/** Counts the list changes that follow a call. */
async function hearChanges({ client, call }) {
  const changes = [];
  const changed = new Promise((resolve) => {
    client.setNotificationHandler('notifications/tools/list_changed', ({ method }) => {
      changes.push(method);
      resolve();
    });
  });
  await part('listen', async () => (await client.listen({ toolsListChanged: true })).honoredFilter.toolsListChanged);
  await part('call', async () => textOf(await call(tool, input)));
  await Promise.race([changed, wait(callMaxMs)]);
  Object.assign(saw, { changes: changes.length });
  Object.assign(answers, { changes });
}

/** Libraries that show the tools of a server as functions. */
async function functions(list) {
  const { tools, call, close } = await list();
  Object.assign(saw, { connect: 'yes', tools: tools.length });
  answers.tools = tools.map(({ name: toolName, description, inputSchema, schema, outputSchema, annotations }) => ({
    ...{ name: toolName, description, inputSchema, schema, outputSchema, annotations },
  }));
  await part('call', async () => {
    const result = await call(tools.find(isNamed(tool)));
    heard.push(result);
    return typeof result === 'string' ? result : textOf(result);
  });
  await close();
}

const clients = {
  'sdk 1.8 (SSE)': () => official('sdk-1.8', 'SSEClientTransport'),
  'sdk 1.12': () => official('sdk-1.12', 'StreamableHTTPClientTransport'),
  'sdk 1.20': () => official('sdk-1.20', 'StreamableHTTPClientTransport'),
  'sdk 1.32': () => official('@modelcontextprotocol/sdk', 'StreamableHTTPClientTransport'),
  'sdk 1.32 (SSE)': () => official('@modelcontextprotocol/sdk', 'SSEClientTransport'),
  'sdk 1.32 (no capabilities)': () =>
    official('@modelcontextprotocol/sdk', 'StreamableHTTPClientTransport', { capabilities: {} }),
  'sdk 1.32 (roots)': () =>
    official(
      '@modelcontextprotocol/sdk',
      'StreamableHTTPClientTransport',
      { capabilities: { roots: { listChanged: true } } },
      followRoots,
    ),
  'sdk 1.32 (Apps)': () =>
    official(
      '@modelcontextprotocol/sdk',
      'StreamableHTTPClientTransport',
      { capabilities: { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } } },
      readPages,
    ),
  'sdk 1.32 (task)': () =>
    official('@modelcontextprotocol/sdk', 'StreamableHTTPClientTransport', { capabilities: {} }, callWithTask),
  'client 2.4': () => official('@modelcontextprotocol/client', 'StreamableHTTPClientTransport'),
  'client 2.4 (auto)': () =>
    official('@modelcontextprotocol/client', 'StreamableHTTPClientTransport', { versionNegotiation: { mode: 'auto' } }),
  'client 2.4 (2026-07-28)': () =>
    official(
      '@modelcontextprotocol/client',
      'StreamableHTTPClientTransport',
      { versionNegotiation: { mode: { pin: '2026-07-28' } } },
      hearChanges,
    ),
  '@ai-sdk/mcp 1.0': () =>
    functions(async () => {
      const { createMCPClient } = await import('@ai-sdk/mcp');
      const client = await createMCPClient({ transport: { type: 'http', url: url.href, headers } });
      const tools = Object.entries(await client.tools()).map(([toolName, each]) => ({ ...each, name: toolName }));
      const call = (each) => each.execute(input, { toolCallId: '1', messages: [] });
      return { tools, call, close: () => client.close() };
    }),
  '@langchain/mcp-adapters 1.1': () =>
    functions(async () => {
      const { MultiServerMCPClient } = await import('@langchain/mcp-adapters');
      const client = new MultiServerMCPClient({ mcpServers: { it: { transport: 'http', url: url.href, headers } } });
      const call = async (each) => String(await each.invoke(input));
      return { tools: await client.getTools(), call, close: () => client.close() };
    }),
  'mcp-use 1.34': () =>
    functions(async () => {
      const { MCPClient } = await import('mcp-use');
      const client = MCPClient.fromDict({ mcpServers: { it: { url: url.href, headers } } });
      const session = await client.createSession('it');
      const call = (each) => session.callTool(each.name, input);
      return { tools: await session.listTools(), call, close: () => client.closeAllSessions() };
    }),
  '@openai/agents 0.20': () =>
    functions(async () => {
      const { MCPServerStreamableHttp } = await import('@openai/agents');
      const server = new MCPServerStreamableHttp({ url: url.href, name: 'it', requestInit: { headers } });
      await server.connect();
      const call = async (each) => ({ content: await server.callTool(each.name, input) });
      return { tools: await server.listTools(), call, close: () => server.close() };
    }),
};

/** Clients for the servers of one feature. */
const special = [
  'sdk 1.32 (no capabilities)',
  'sdk 1.32 (roots)',
  'sdk 1.32 (Apps)',
  'sdk 1.32 (task)',
  'client 2.4 (2026-07-28)',
];

if (name === '--list') {
  console.log(JSON.stringify(Object.keys(clients).filter((each) => !special.includes(each))));
} else {
  // Libraries write to stdout.
  const print = process.stdout.write.bind(process.stdout);
  console.log = console.info = () => undefined;
  try {
    await clients[name]();
  } catch (error) {
    saw.failed = String(error.message).split('\n')[0].slice(0, 200);
  }
  print(`\n${JSON.stringify({ saw, answers })}\n`, () => process.exit(0));
}
