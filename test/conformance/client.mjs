#!/usr/bin/env node
// The client that the suite starts for each of its client scenarios: makes Slipway the client of the server at the address,
// and makes the calls of the scenario there. It also acts as the person with a browser in scenarios with authorization.
//
//   MCP_CONFORMANCE_SCENARIO=tools_call node test/conformance/client.mjs http://localhost:4200/mcp
//
// SLIPWAY_URL is where Slipway is, SLIPWAY_KEY a key of it, SLIPWAY_PUBLIC_URL how it calls itself.

import { randomUUID } from 'node:crypto';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const {
  SLIPWAY_URL: slipwayUrl,
  SLIPWAY_KEY: key,
  SLIPWAY_PUBLIC_URL: publicUrl,
  MCP_CONFORMANCE_SCENARIO: scenario,
  MCP_CONFORMANCE_PROTOCOL_VERSION: protocolVersion,
  MCP_CONFORMANCE_CONTEXT: contextText = '{}',
} = process.env;
const serverUrl = process.argv.at(-1);
const context = JSON.parse(contextText);
const address = `${slipwayUrl}/connect/conformance/${randomUUID()}`;
const authorization = `Bearer ${key}`;
const clientInfo = { name: 'conformance-client', version: '1.0.0' };

/** Authorizations of the person in one scenario: more than the suite allows a client to request. */
const authorizationsMax = 5;
const redirectsMax = 10;

// ---- Slipway's REST interface.

async function rest(method, path = '', body) {
  const headers = { authorization, ...(body && { 'content-type': 'application/json' }) };
  const response = await fetch(`${address}${path}`, { method, headers, body: body && JSON.stringify(body) });
  const answer = await response.json();
  console.log(method, path, response.status, JSON.stringify(answer));
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}

const listTools = async () => (await rest('GET', '/.tools')).tools;
const callTool = (name, args = {}) => rest('POST', `/.tools/${encodeURIComponent(name)}`, args);

// ---- A browser: it follows redirects and keeps cookies.

const cookies = new Map();

/** @param form what a form holds that is sent; without it none is */
async function visit(method, url, form) {
  const real = url.startsWith(publicUrl) ? url.replace(publicUrl, slipwayUrl) : url;
  const jar = cookies.get(new URL(real).origin) ?? new Map();
  cookies.set(new URL(real).origin, jar);
  const headers = { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') };
  const body = form && new URLSearchParams(form);
  const response = await fetch(real, { method, headers, body, redirect: 'manual' });
  for (const line of response.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
    jar.set(name, value);
  }
  console.log(method, url, response.status);
  const location = response.headers.get('location');
  return { url, status: response.status, text: await response.text(), next: location && new URL(location, url).href };
}

async function follow(shown) {
  let last = shown;
  for (let count = 0; last.next && count < redirectsMax; count += 1) last = await visit('GET', last.next);
  return last;
}

const unescaped = (html) => html.replaceAll('&amp;', '&');

/** The fields of a client registered by hand, for a page that asks for one; undefined for other pages. */
function clientFor({ text }) {
  const [, issuer] = /name="client\.issuer" value="([^"]*)"/.exec(text) ?? [];
  if (issuer === undefined) return undefined;
  const { client_id: id = '', client_secret: secret = '' } = context;
  return { 'client.issuer': unescaped(issuer), 'client.id': id, 'client.secret': secret };
}

/** Opens the setup page and sends its form, which leads to the authorization server and from there back to us. */
async function authorize(setupUrl) {
  const page = await follow(await visit('GET', setupUrl));
  const [form] = /<form method="post"[^>]*>/.exec(page.text) ?? [];
  if (!form) throw new Error(`The page to authorize has no button (${page.status}): ${page.text.slice(-1000)}`);
  const action = unescaped(/action="([^"]*)"/.exec(form)?.[1] ?? '');
  const [, token = ''] = /name="form-token" value="([^"]*)"/.exec(page.text) ?? [];
  const fields = { 'form-token': token, ...clientFor(page) };
  const end = await follow(await visit('POST', new URL(action, page.url).href, fields));
  if (end.status !== 200) throw new Error(`Authorizing ended with ${end.status}: ${end.text.slice(-1000)}`);
}

/** Does something, and when Slipway says that a person must authorize it, lets the person do so and does it again. */
async function withPerson(action) {
  for (let count = 0; ; count += 1) {
    const { status } = await rest('GET');
    if (status.state === 'auth_required' && status.setupUrl && count < authorizationsMax) {
      await authorize(status.setupUrl);
      continue;
    }
    try {
      return await action();
    } catch (error) {
      const { status: after } = await rest('GET');
      if (after.state !== 'auth_required' || !after.setupUrl || count >= authorizationsMax) throw error;
    }
  }
}

// ---- The connection's MCP endpoint, with the official clients.

const accepted = { action: 'accept', content: { confirmed: true } };

/** The v1 client; like the suite's own it leaves the form empty, and its SDK fills in the defaults. */
async function connectLegacy() {
  const client = new LegacyClient(clientInfo, { capabilities: { elicitation: { form: { applyDefaults: true } } } });
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: {} }));
  const requestInit = { headers: { authorization } };
  await client.connect(new LegacyTransport(new URL(`${address}/mcp`), { requestInit }));
  return client;
}

/** The v2 client, at 2026-07-28 and nothing else. `onQuestion` runs before a question is answered. */
async function connectModern(onQuestion = async () => {}) {
  const client = new ModernClient(clientInfo, {
    capabilities: { elicitation: {} },
    versionNegotiation: { mode: { pin: '2026-07-28' } },
  });
  client.setRequestHandler('elicitation/create', async () => {
    await onQuestion(client);
    return accepted;
  });
  const requestInit = { headers: { authorization } };
  await client.connect(new ModernTransport(new URL(`${address}/mcp`), { requestInit }));
  return client;
}

// ---- What the scenarios want.

async function callFirstTool() {
  const [tool] = await listTools();
  if (tool) await callTool(tool.name, { a: 2, b: 3 });
}

async function answerQuestionWithDefaults() {
  const client = await connectLegacy();
  await client.listTools();
  await client.callTool({ name: 'test_client_elicitation_defaults', arguments: {} });
  await client.close();
}

async function callEveryMethod() {
  const client = await connectModern();
  for (const { name } of (await client.listTools()).tools) await client.callTool({ name, arguments: {} });
  for (const { uri } of (await client.listResources()).resources) await client.readResource({ uri });
  for (const { name } of (await client.listPrompts()).prompts) await client.getPrompt({ name });
  await client.close();
}

/** Over REST, so that no SDK in front of Slipway does its work. */
async function callToolsOfContext() {
  await listTools();
  for (const { name, arguments: args } of context.toolCalls) await callTool(name, args);
}

async function callWhateverIsListed() {
  for (const { name, inputSchema } of await listTools()) {
    const args = Object.fromEntries(Object.keys(inputSchema.properties).map((property) => [property, 'x']));
    await callTool(name, args);
  }
}

/** Calls another tool while a question is open: nothing of the question may reach it. */
async function answerQuestions() {
  let isFirst = true;
  const client = await connectModern(async (asked) => {
    if (isFirst) await asked.callTool({ name: 'test_mrtr_unrelated', arguments: {} });
    isFirst = false;
  });
  await client.listTools();
  for (const name of ['test_mrtr_echo_state', 'test_mrtr_no_state', 'test_mrtr_no_result_type']) {
    await client.callTool({ name, arguments: {} });
  }
  await client.close();
}

async function echoSchema() {
  const { inputSchema } = (await listTools()).find(({ name }) => name === 'json_schema_2020_12_tool');
  await callTool('json_schema_echo', { schema: inputSchema });
}

async function authorizeAndCall() {
  await withPerson(listTools);
  await withPerson(() => callTool('test-tool'));
}

const actions = {
  initialize: listTools,
  tools_call: callFirstTool,
  'sse-retry': () => callTool('test_reconnection'),
  'elicitation-sep1034-client-defaults': answerQuestionWithDefaults,
  'request-metadata': listTools,
  'sep-2322-client-request-state': answerQuestions,
  'http-standard-headers': callEveryMethod,
  'http-custom-headers': callToolsOfContext,
  'http-invalid-tool-headers': callWhateverIsListed,
  'json-schema-ref-no-deref': listTools,
  'json-schema-2020-12-preservation': echoSchema,
};

const action = actions[scenario] ?? (scenario.startsWith('auth/') ? authorizeAndCall : undefined);
if (!action) throw new Error(`Nothing is written for the scenario ${scenario} (${protocolVersion}).`);
await rest('PUT', '', { mcpUrl: serverUrl });
await action();
await fetch(address, { method: 'DELETE', headers: { authorization } });
