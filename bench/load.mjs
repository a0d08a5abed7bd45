// The load: N callers, each waiting for its response before the next call (closed loop), in a process that lives as long as
// the bench, so that its code is compiled once. Every call sends a token of its own and its response must contain that
// token; anything else counts as failed. Loopback only.
//
// run.mjs sends commands over IPC, one at a time, and gets the figures of each:
//   { url, mode: 'mcp' | 'rest', era: 'legacy' | 'modern', session, headers: ['Name: value'], bytes, callers, calls, pid }
// `session`: each caller in a session of its own, with a listening stream. `bytes`: length of the tool's text. `pid`: the
// process whose CPU time is read before and after the calls. Each command opens its sockets first, with some calls that
// are not measured.

import { readdirSync, readFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';

const sliceMaxMs = 60_000;
const callMaxMs = 30_000;
const warmCallsOfCaller = 2;

/** CPU time of all threads of a process, in µs; NaN where the kernel does not tell. */
function cpuUsOf(pid) {
  try {
    const tasks = `/proc/${pid}/task`;
    const times = readdirSync(tasks).map((id) =>
      Number(readFileSync(`${tasks}/${id}/schedstat`, 'utf8').split(' ')[0]),
    );
    return times.reduce((sum, ns) => sum + ns, 0) / 1000;
  } catch {
    return NaN;
  }
}

function post(to, text, sessionHeaders) {
  return new Promise((resolve, reject) => {
    const body = Buffer.from(text);
    const sent = { ...to.headers, ...sessionHeaders, 'content-length': body.length };
    const request = httpRequest(to.url, { method: 'POST', agent: to.agent, headers: sent }, (response) => {
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
    request.setTimeout(callMaxMs, () => request.destroy(new Error('timeout')));
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

const envelope = {
  _meta: {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
  },
};

let lastId = 0;

/** Opens a session of its own for one caller, with a listening stream. */
async function openSession(to) {
  const send = (message, sent) => post(to, JSON.stringify({ jsonrpc: '2.0', ...message }), sent);
  const clientInfo = { name: 'bench', version: '1.0.0' };
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
  const { session } = await send({ id: ++lastId, method: 'initialize', params });
  if (session === undefined) throw new Error('no session');
  const headers = { 'mcp-session-id': session };
  await send({ method: 'notifications/initialized' }, headers);
  const stream = await fetch(to.url, { headers: { ...to.headers, ...headers, accept: 'text/event-stream' } });
  if (stream.status !== 200) throw new Error(`listening: status ${stream.status}`);
  return { headers, stream };
}

async function closeSession(to, { headers, stream }) {
  await stream.body.cancel();
  await fetch(to.url, { method: 'DELETE', headers: { ...to.headers, ...headers } });
}

async function callOnce(to, sessionHeaders) {
  const id = ++lastId;
  const token = `${process.pid}-${id}-`.padEnd(32, 'x');
  const args = to.bytes ? { message: token, bytes: to.bytes } : { message: token };
  let result;
  if (to.isMcp) {
    const params = { name: 'echo', arguments: args, ...(to.isModern && envelope) };
    const reply = replyWith(
      id,
      await post(to, JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params }), sessionHeaders),
    );
    if (reply?.id !== id) throw new Error('response with another id');
    if (reply.error) throw new Error(`rpc ${reply.error.code}: ${reply.error.message}`);
    result = reply.result;
  } else {
    result = JSON.parse((await post(to, JSON.stringify(args))).answer);
  }
  const text = result?.content?.[0]?.text;
  if (!text?.startsWith(token) || text.length !== Math.max(token.length, to.bytes ?? 0)) {
    throw new Error('answer without its own token');
  }
}

/** `count` calls by all callers, within a minute; `onCall` gets the ms of each, and `onError` what failed. */
async function run(to, sessions, count, onCall, onError) {
  const deadline = performance.now() + sliceMaxMs;
  let left = count;
  const caller = async (_, at) => {
    while (left > 0 && performance.now() < deadline) {
      left -= 1;
      const startedAt = performance.now();
      try {
        await callOnce(to, sessions[at]?.headers);
        onCall(performance.now() - startedAt);
      } catch (error) {
        onError(error);
      }
    }
  };
  await Promise.all(Array.from({ length: to.callers }, caller));
}

function targetOf({ url, mode, era, headers, bytes, callers }) {
  const isMcp = mode === 'mcp';
  const isModern = isMcp && era === 'modern';
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'http:' || hostname !== '127.0.0.1') throw new Error(`not on loopback: ${url}`);
  const named = headers
    .map((line) => /^([^:]+):\s*(.*)$/.exec(line))
    .map(([, name, value]) => [name.toLowerCase(), value]);
  return {
    url,
    isMcp,
    isModern,
    bytes,
    callers,
    agent: new Agent({ keepAlive: true, maxSockets: callers, maxFreeSockets: callers }),
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(isMcp && { 'mcp-protocol-version': isModern ? '2026-07-28' : '2025-06-18' }),
      ...(isModern && { 'mcp-method': 'tools/call', 'mcp-name': 'echo' }),
      ...Object.fromEntries(named),
    },
  };
}

/** One command. CPU time is per call; times are in ms. */
async function measure({ session, calls, pid, ...command }) {
  const to = targetOf(command);
  const sessions = session ? await Promise.all(Array.from({ length: to.callers }, () => openSession(to))) : [];
  const failWarm = (error) => {
    throw new Error(`before the calls: ${error.message}`);
  };
  await run(to, sessions, warmCallsOfCaller * to.callers, () => {}, failWarm);
  const times = [];
  const errors = {};
  let failed = 0;
  const noteError = ({ message }) => {
    failed += 1;
    const kind = errors[message] !== undefined || Object.keys(errors).length < 20 ? message : 'other';
    errors[kind] = (errors[kind] ?? 0) + 1;
  };
  const cpuUs = cpuUsOf(pid);
  const startedAt = performance.now();
  await run(to, sessions, calls, (ms) => times.push(ms), noteError);
  const seconds = (performance.now() - startedAt) / 1000;
  const usedUs = cpuUsOf(pid) - cpuUs;
  await Promise.all(sessions.map((opened) => closeSession(to, opened)));
  to.agent.destroy();
  times.sort((one, other) => one - other);
  const percentile = (p) => times[Math.max(0, Math.ceil((p / 100) * times.length) - 1)];
  return {
    done: times.length,
    failed,
    errors,
    perSecond: times.length / seconds,
    p50: percentile(50),
    p99: percentile(99),
    cpuUs: usedUs / (times.length + failed),
  };
}

process.on('message', async (command) => {
  try {
    process.send({ figures: await measure(command) });
  } catch (error) {
    process.send({ error: error.message });
  }
});
process.on('disconnect', () => process.exit(0)); // the bench that started this process has exited
