#!/usr/bin/env node
// `node bench/functions.mjs`: how many functions of the service one warm call runs, and of how many files; --list names
// them. Counted by V8's precise coverage. A function is listed if it runs in each of 20 calls, one after the other, so
// concurrent work (flushes, polls) is left out. `hosted` is a call through a connection to a hosted server of the registry.
//
//   node bench/functions.mjs [--only rest,mcp,run,hosted] [--list]

import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ask, echoModule, runBench, setUp } from './run.mjs';

const { values: options } = parseArgs({
  options: { only: { type: 'string', default: 'rest,mcp,run,hosted' }, list: { type: 'boolean', default: false } },
});
const warmCalls = 50;
const calls = 20;

async function call({ url, mode, server }) {
  const params = { name: 'echo', arguments: { message: 'functions' } };
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${server.key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-06-18',
    },
    body: JSON.stringify(mode === 'rest' ? params.arguments : message),
  });
  const text = await response.text();
  if (!response.ok || !text.includes('"functions"')) throw new Error(`${url}: ${response.status} ${text}`);
}

const keyOf = ({ file, at }) => `${file}:${at}`;

async function main() {
  const only = options.only.split(',');
  const nodeArgs = ['--import', fileURLToPath(new URL('./inside.mjs', import.meta.url))];
  // REST is always set up: its server is the one that the hosted program is published to.
  const targets = await setUp((name) => name === 'rest' || only.includes(name), { nodeArgs });
  const { server } = targets[0];
  if (only.includes('hosted')) {
    const mcpUrl = await server.publish('bench/hosted', { type: 'hosted' }, echoModule('bench'));
    await server.connect('bench', 'hosted', mcpUrl);
    const url = `${server.url}/connect/bench/hosted/mcp`;
    targets.push({ name: 'hosted', label: 'hosted MCP', server, url, mode: 'mcp' });
  }
  for (const target of targets.filter(({ name }) => only.includes(name))) {
    for (let turn = 0; turn < warmCalls; turn += 1) await call(target);
    let ran;
    for (let turn = 0; turn < calls; turn += 1) {
      await ask(server.child, 'functions');
      await call(target);
      const now = await ask(server.child, 'functions');
      const keys = new Set(now.map(keyOf));
      ran = (ran ?? now).filter((one) => keys.has(keyOf(one)));
    }
    const files = [...new Set(ran.map(({ file }) => file))].sort();
    console.log(`${target.label}: ${ran.length} functions of ${files.length} files`);
    if (!options.list) continue;
    for (const file of files) {
      const names = ran.filter((one) => one.file === file).map(({ name }) => name || '(anonymous)');
      console.log(`  ${file}: ${names.join(', ')}`);
    }
  }
}

await runBench(main);
