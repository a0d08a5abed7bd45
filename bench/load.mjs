#!/usr/bin/env node
// The load: N callers, each waiting for its answer before the next call (closed loop), in a process of its own.
// Every call sends a token of its own and its answer must bring that token back; anything else counts as failed.
// Prints one line of JSON. Loopback only; bounded by --calls and --max-seconds.
//
//   node bench/load.mjs --url http://127.0.0.1:3901/mcp --mode mcp --concurrency 16 --calls 3000
//   node bench/load.mjs --url http://127.0.0.1:3000/connect/demo/echo/.tools/echo --mode rest --header "Authorization: Bearer $KEY"

import { Agent, request as httpRequest } from 'node:http';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: {
    url: { type: 'string' },
    mode: { type: 'string', default: 'mcp' },
    era: { type: 'string', default: 'legacy' },
    session: { type: 'boolean', default: false },
    concurrency: { type: 'string', default: '16' },
    calls: { type: 'string', default: '3000' },
    warmup: { type: 'string', default: '200' },
    header: { type: 'string', multiple: true, default: [] },
    'max-seconds': { type: 'string', default: '60' },
    'timeout-ms': { type: 'string', default: '30000' },
  },
});

function stop(message) {
  console.error(message);
  process.exit(2);
}

function whole(name, lowest, highest) {
  const value = Number(options[name]);
  if (Number.isInteger(value) && value >= lowest && value <= highest) return value;
  return stop(`--${name} must be a whole number from ${lowest} to ${highest}`);
}

const url = URL.canParse(options.url ?? '') ? new URL(options.url) : stop('--url is missing or no URL');
if (url.protocol !== 'http:' || !['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname)) {
  stop('--url must be http:// on loopback');
}
if (!['mcp', 'rest'].includes(options.mode)) stop('--mode is mcp or rest');
if (!['legacy', 'modern'].includes(options.era)) stop('--era is legacy or modern');
const isMcp = options.mode === 'mcp';
const isModern = options.era === 'modern';
const concurrency = whole('concurrency', 1, 1000);
const calls = whole('calls', 1, 1_000_000);
const warmup = whole('warmup', 0, 100_000);
const maxMs = whole('max-seconds', 1, 600) * 1000;
const timeoutMs = whole('timeout-ms', 1, 600_000);

const headers = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  ...(isMcp && { 'mcp-protocol-version': isModern ? '2026-07-28' : '2025-06-18' }),
  ...(isMcp && isModern && { 'mcp-method': 'tools/call', 'mcp-name': 'echo' }),
};
for (const line of options.header) {
  const [, name, value] = /^([^:]+):\s*(.*)$/.exec(line) ?? stop(`--header must be "Name: value": ${line}`);
  headers[name.toLowerCase()] = value;
}

const agent = new Agent({ keepAlive: true, maxSockets: concurrency, maxFreeSockets: concurrency });

function post(text, sessionHeaders) {
  return new Promise((resolve, reject) => {
    const body = Buffer.from(text);
    const sent = { ...headers, ...sessionHeaders, 'content-length': body.length };
    const request = httpRequest(url, { method: 'POST', agent, headers: sent }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const answer = Buffer.concat(chunks).toString('utf8');
        const { 'content-type': type = '', 'mcp-session-id': session } = response.headers;
        if (response.statusCode === 200 || response.statusCode === 202) resolve({ answer, type, session });
        else reject(new Error(`status ${response.statusCode}: ${answer.slice(0, 160)}`));
      });
    });
    request.setTimeout(timeoutMs, () => request.destroy(new Error('timeout')));
    request.on('error', reject);
    request.end(body);
  });
}

/** The reply with this id, from a JSON body or from the data lines of an event stream. */
function replyWith(id, { answer, type }) {
  if (!type.includes('event-stream')) return JSON.parse(answer);
  const data = answer.split(/\r?\n/).filter((line) => line.startsWith('data:'));
  return data.map((line) => JSON.parse(line.slice(5))).find((reply) => reply.id === id);
}

const envelope = isModern && {
  _meta: {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
  },
};

let lastId = 0;
const listening = [];

/** Opens a session of its own for one caller, with a listening stream; gives the headers of its calls. */
async function openSession() {
  const send = (message, sent) => post(JSON.stringify({ jsonrpc: '2.0', ...message }), sent);
  const clientInfo = { name: 'bench', version: '1.0.0' };
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
  const { session } = await send({ id: ++lastId, method: 'initialize', params });
  if (session === undefined) throw new Error('no session');
  const sent = { 'mcp-session-id': session };
  await send({ method: 'notifications/initialized' }, sent);
  const response = await fetch(url, { headers: { ...headers, ...sent, accept: 'text/event-stream' } });
  if (response.status !== 200) throw new Error(`listening: status ${response.status}`);
  listening.push(response.body);
  return sent;
}

async function callOnce(sessionHeaders) {
  const id = ++lastId;
  const token = `${process.pid}-${id}-`.padEnd(32, 'x');
  let result;
  if (isMcp) {
    const params = { name: 'echo', arguments: { message: token }, ...envelope };
    const reply = replyWith(
      id,
      await post(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params }), sessionHeaders),
    );
    if (reply?.id !== id) throw new Error('answer with another id');
    if (reply.error) throw new Error(`rpc ${reply.error.code}: ${reply.error.message}`);
    result = reply.result;
  } else {
    result = JSON.parse((await post(JSON.stringify({ message: token }))).answer);
  }
  if (result?.content?.[0]?.text !== token) throw new Error('answer without its own token');
}

const latencies = new Float64Array(calls);
const errors = {};
let done = 0;
let failed = 0;

function noteFailure(error) {
  failed += 1;
  const kinds = Object.keys(errors);
  const kind = errors[error.message] !== undefined || kinds.length < 20 ? error.message : 'other';
  errors[kind] = (errors[kind] ?? 0) + 1;
}

const sessions = options.session
  ? await Promise.all(Array.from({ length: concurrency }, openSession)).catch((error) =>
      stop(`session: ${error.message}`),
    )
  : [];

async function run(count, isMeasured) {
  const deadline = performance.now() + maxMs;
  let left = count;
  const caller = async (_, at) => {
    while (left > 0 && performance.now() < deadline) {
      left -= 1;
      const startedAt = performance.now();
      try {
        await callOnce(sessions[at]);
        if (isMeasured) latencies[done++] = performance.now() - startedAt;
      } catch (error) {
        if (!isMeasured) stop(`warm-up: ${error.message}`);
        noteFailure(error);
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, caller));
}

await run(warmup, false);
const startedAt = performance.now();
await run(calls, true);
const seconds = (performance.now() - startedAt) / 1000;
agent.destroy();
await Promise.all(listening.map((stream) => stream.cancel()));

const sorted = latencies.subarray(0, done).sort();
const percentile = (p) => (done === 0 ? null : sorted[Math.max(0, Math.ceil((p / 100) * done) - 1)]);
const rounded = (value) => (value === null ? null : Math.round(value * 1000) / 1000);
console.log(
  JSON.stringify({
    mode: options.mode,
    concurrency,
    done,
    failed,
    errors,
    seconds: rounded(seconds),
    perSecond: rounded(done / seconds),
    p50: rounded(percentile(50)),
    p90: rounded(percentile(90)),
    p99: rounded(percentile(99)),
    max: rounded(percentile(100)),
  }),
);
process.exitCode = failed > 0 ? 1 : 0;
