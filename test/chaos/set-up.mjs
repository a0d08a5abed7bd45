/** What is called in a deployment: a namespace with hosted modules and connections of every kind. */
import { Blob } from 'node:buffer';
import { build } from 'esbuild';
import { root } from '../../scripts/lib.mjs';
import { until } from './deployment.mjs';

/** A module whose tool executes its token at the ledger, which no fault touches. */
async function moduleOf(ledgerUrl, isStateful) {
  const source = `import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
    import { z } from 'zod';
    export const stateful = ${isStateful};
    export default () => {
      const server = new McpServer({ name: 'chaos', version: '1.0.0' });
      const inputSchema = { token: z.string(), ms: z.number() };
      server.registerTool('act', { description: 'Executes a token', inputSchema }, async ({ token, ms }) => {
        const executed = await fetch('${ledgerUrl}/' + token, { method: 'POST' }).then(({ ok }) => ok, () => false);
        if (!executed) return { isError: true, content: [{ type: 'text', text: 'The call may have been carried out' }] };
        await new Promise((resolve) => setTimeout(resolve, ms));
        return { content: [{ type: 'text', text: 'done ' + token }] };
      });
      return server.server;
    };`;
  const { outputFiles } = await build({
    stdin: { contents: source, loader: 'js', resolveDir: root },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'esnext',
    conditions: ['workerd', 'worker', 'browser'],
    logLevel: 'silent',
  });
  return outputFiles[0].text;
}

async function api(deployment, method, path, body, at = 0) {
  const isForm = body instanceof FormData;
  const response = await fetch(`${deployment.urls[at]}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${deployment.key}`,
      ...(body && !isForm && { 'content-type': 'application/json' }),
    },
    body: isForm ? body : body && JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 300)}`);
  return text === '' ? undefined : JSON.parse(text);
}

/** Publishes a release of a server. @returns its id */
export async function publish(deployment, server, payload, module, at) {
  const form = new FormData();
  form.set('payload', JSON.stringify(payload));
  if (module) form.set('module', new Blob([module]), 'module.js');
  return (await api(deployment, 'PUT', `/servers/chaos/${server}/releases`, form, at)).deploymentId;
}

/** Publishes the hosted modules and makes the connections that the callers use. */
export async function setUp(deployment) {
  await api(deployment, 'PUT', '/namespaces/chaos');
  const publishModule = async (name, isStateful) => {
    await api(deployment, 'PUT', `/servers/chaos/${name}`);
    const module = await moduleOf(deployment.ledgerUrl, isStateful);
    let status = 'FAILURE';
    // A busy machine may exceed a time limit.
    await until(async () => {
      if (status.startsWith('FAILURE')) await publish(deployment, name, { type: 'hosted' }, module);
      ({ status } = await api(deployment, 'GET', `/servers/chaos/${name}/releases/latest`));
      return status === 'SUCCESS';
    }, `${name} is published`);
  };
  const connect = (id, body) => api(deployment, 'PUT', `/connect/chaos/${id}`, body);
  await Promise.all([
    publishModule('plain', false).then(() => connect('hosted', { server: 'chaos/plain' })),
    publishModule('stateful', true),
    ...Object.entries(deployment.upstreamUrl).map(([id, mcpUrl]) => connect(id, { mcpUrl })),
    connect('local', { transport: 'uplink' }),
    api(deployment, 'PUT', '/servers/chaos/released'),
  ]);
}
