/**
 * One published MCP client against one address, in a process of its own: prints as JSON what it saw. scripts/compat.mjs gives
 * this text to Node on stdin in the folder where the packages are, which a program on stdin imports from.
 *
 *   node --input-type=module - <client> <url> [<key>] [<tool to call> <its arguments> <ms to listen>]
 */
import process from 'node:process';
import { setTimeout as wait } from 'node:timers/promises';

const [name, address = 'http://localhost', key = '', tool = 'echo', given = '{"message":"hi"}', listenMs = '0'] =
  process.argv.slice(2);
const url = new URL(address);
const headers = key === '' ? {} : { authorization: `Bearer ${key}` };
const callMaxMs = 20_000;
const info = { name: 'compat', version: '1' };
const saw = { connect: 'no' };

/** At the namespace endpoint a tool is named after its connection too. */
const isNamed = (wanted) => (each) => each.name === wanted || each.name.endsWith(`__${wanted}`);
const textOf = ({ content }) =>
  content
    ?.map((part) => part.text ?? part.type)
    .join(' ')
    .replace(/\s+/g, ' ');

/** A failed part is one result of several. */
async function part(label, work) {
  try {
    saw[label] = await work();
  } catch (error) {
    saw[label] = `fails: ${String(error.message).split('\n')[0]}`;
  }
}

/** The clients of the official SDK, of one shape since its first version. */
async function official(specifier, transportName, options) {
  const isSplit = specifier === '@modelcontextprotocol/client';
  const { Client } = await import(isSplit ? specifier : `${specifier}/client/index.js`);
  const file = transportName === 'SSEClientTransport' ? 'sse' : 'streamableHttp';
  const transports = await import(isSplit ? specifier : `${specifier}/client/${file}.js`);
  const { types = {} } = isSplit ? {} : { types: await import(`${specifier}/types.js`) };
  const canAnswer = isSplit || types.ElicitRequestSchema !== undefined;
  const client = new Client(info, { capabilities: canAnswer ? { elicitation: {} } : {}, ...options });
  const on = (schema, method, handler) => {
    if (isSplit) client.setNotificationHandler?.(method, handler);
    else if (schema) client.setNotificationHandler(schema, handler);
  };
  let logs = 0;
  let updates = 0;
  on(types.LoggingMessageNotificationSchema, 'notifications/message', () => void (logs += 1));
  on(types.ResourceUpdatedNotificationSchema, 'notifications/resources/updated', () => void (updates += 1));
  const answer = () => ({ action: 'accept', content: { name: 'compat' } });
  if (isSplit) client.setRequestHandler('elicitation/create', answer);
  else if (canAnswer) client.setRequestHandler(types.ElicitRequestSchema, answer);
  // SDK 1.8 sends the headers of `requestInit` with POST alone.
  const withHeaders = (to, init) => fetch(to, { ...init, headers: { ...headers, accept: 'text/event-stream' } });
  const eventSourceInit = specifier === 'sdk-1.8' ? { fetch: withHeaders } : undefined;
  await client.connect(new transports[transportName](url, { requestInit: { headers }, eventSourceInit }));
  saw.connect = 'yes';
  const { tools } = await client.listTools();
  saw.tools = tools.length;
  const call = (wanted, args, more = {}) => {
    const params = { name: tools.find(isNamed(wanted))?.name ?? wanted, arguments: args };
    const settings = { timeout: callMaxMs, ...more };
    return isSplit ? client.callTool(params, settings) : client.callTool(params, undefined, settings);
  };
  const has = client.getServerCapabilities() ?? {};
  if (Number(listenMs) > 0) {
    if (has.logging) await client.setLoggingLevel('debug').catch(() => undefined);
    if (has.resources?.subscribe) {
      const { resources } = await client.listResources();
      if (resources[0]) await client.subscribeResource({ uri: resources[0].uri });
    }
    await part('call', async () => textOf(await call(tool, JSON.parse(given)))?.slice(0, 40));
    await wait(Number(listenMs));
    Object.assign(saw, { logs, updates });
    return client.close();
  }
  await part('call', async () => textOf(await call(tool, JSON.parse(given))));
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

/** Libraries that show the tools of a server as functions. */
async function functions(list) {
  const { tools, call, close } = await list();
  Object.assign(saw, { connect: 'yes', tools: tools.length });
  await part('call', async () => call(tools.find(isNamed(tool))));
  await close();
}

const clients = {
  'sdk 1.8 (SSE)': () => official('sdk-1.8', 'SSEClientTransport'),
  'sdk 1.12': () => official('sdk-1.12', 'StreamableHTTPClientTransport'),
  'sdk 1.20': () => official('sdk-1.20', 'StreamableHTTPClientTransport'),
  'sdk 1.32': () => official('@modelcontextprotocol/sdk', 'StreamableHTTPClientTransport'),
  'sdk 1.32 (SSE)': () => official('@modelcontextprotocol/sdk', 'SSEClientTransport'),
  'client 2.4': () => official('@modelcontextprotocol/client', 'StreamableHTTPClientTransport'),
  'client 2.4 (auto)': () =>
    official('@modelcontextprotocol/client', 'StreamableHTTPClientTransport', { versionNegotiation: { mode: 'auto' } }),
  '@ai-sdk/mcp 1.0': () =>
    functions(async () => {
      const { createMCPClient } = await import('@ai-sdk/mcp');
      const client = await createMCPClient({ transport: { type: 'http', url: url.href, headers } });
      const tools = Object.entries(await client.tools()).map(([toolName, each]) => ({ ...each, name: toolName }));
      const call = async (each) => textOf(await each.execute(JSON.parse(given), { toolCallId: '1', messages: [] }));
      return { tools, call, close: () => client.close() };
    }),
  '@langchain/mcp-adapters 1.1': () =>
    functions(async () => {
      const { MultiServerMCPClient } = await import('@langchain/mcp-adapters');
      const client = new MultiServerMCPClient({ mcpServers: { it: { transport: 'http', url: url.href, headers } } });
      const call = async (each) => String(await each.invoke(JSON.parse(given)));
      return { tools: await client.getTools(), call, close: () => client.close() };
    }),
  'mcp-use 1.34': () =>
    functions(async () => {
      const { MCPClient } = await import('mcp-use');
      const client = MCPClient.fromDict({ mcpServers: { it: { url: url.href, headers } } });
      const session = await client.createSession('it');
      const call = async (each) => textOf(await session.callTool(each.name, JSON.parse(given)));
      return { tools: await session.listTools(), call, close: () => client.closeAllSessions() };
    }),
  '@openai/agents 0.20': () =>
    functions(async () => {
      const { MCPServerStreamableHttp } = await import('@openai/agents');
      const server = new MCPServerStreamableHttp({ url: url.href, name: 'it', requestInit: { headers } });
      await server.connect();
      const call = async (each) => textOf({ content: await server.callTool(each.name, JSON.parse(given)) });
      return { tools: await server.listTools(), call, close: () => server.close() };
    }),
};

if (name === '--list') {
  console.log(JSON.stringify(Object.keys(clients)));
} else {
  // Libraries write to stdout.
  const print = process.stdout.write.bind(process.stdout);
  console.log = console.info = () => undefined;
  try {
    await clients[name]();
  } catch (error) {
    saw.failed = String(error.message).split('\n')[0].slice(0, 200);
  }
  print(`\n${JSON.stringify(saw)}\n`, () => process.exit(0));
}
