/** Callers of every kind. Each call carries a token of its own and is never repeated. */
import { randomUUID } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { randomFrom } from '../support/seed.mjs';

/** Longest wait for an answer: longer than any time limit of the service together with a pause of its process. */
const answerMaxMs = 60_000;

/** Sentences in which an error says that the call may have been carried out. */
const saysUnknown = /whether the (call|request) was carried out is unknown|may have (been carried out|run)\b/i;

const modernVersion = '2026-07-28';
const legacyVersion = '2025-11-25';

/** Sends one POST on a connection of its own; a GET without a body. The promise rejects when the connection breaks. */
function post(url, key, body, headers = {}) {
  return new Promise((resolve, reject) => {
    const options = {
      method: body === undefined ? 'GET' : 'POST',
      agent: false,
      timeout: answerMaxMs,
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
    };
    const outgoing = httpRequest(url, options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }));
      response.on('error', reject);
    });
    outgoing.on('timeout', () =>
      outgoing.destroy(Object.assign(new Error(`no answer in ${answerMaxMs / 1000} s`), { code: 'ETIMEDOUT' })),
    );
    outgoing.on('error', reject);
    outgoing.end(body && JSON.stringify(body));
  });
}

/** The JSON of an answer, or the last message of its event stream. */
function jsonOf({ headers, text }) {
  if (!headers['content-type']?.startsWith('text/event-stream')) return JSON.parse(text);
  const data = text.split('\n').filter((line) => line.startsWith('data:'));
  return JSON.parse(data.at(-1)?.slice('data:'.length) ?? 'null');
}

/** @returns outcome `answered`, `refused` (certainly not carried out), `unknown` (says so), or `wrong`, with its text */
function outcomeOf(token, answer) {
  let body;
  try {
    body = jsonOf(answer);
  } catch {
    return { outcome: 'wrong', text: `${answer.status} ${answer.text.slice(0, 300)}` };
  }
  const result = body?.result ?? body;
  const text = result?.content?.[0]?.text;
  if (answer.status === 200 && result?.isError !== true && text === `done ${token}`) return { outcome: 'answered' };
  const said = body?.error?.message ?? body?.message ?? body?.error ?? text;
  const shown = `${answer.status} ${body?.error?.code ?? ''} ${said}`;
  const isFault = typeof said !== 'string' || text?.startsWith('done') || answer.status === 500;
  if (isFault || body?.error?.code === -33500) return { outcome: 'wrong', text: shown };
  return { outcome: saysUnknown.test(said) ? 'unknown' : 'refused', text: shown };
}

const toolCall = (token, ms, name = 'act') => ({
  jsonrpc: '2.0',
  id: token,
  method: 'tools/call',
  params: { name, arguments: { token, ms } },
});

const rest = (path) => () => (base, key, token, ms) => post(`${base}${path}/.tools/act`, key, { token, ms });

const run = (path, name) => () => (base, key, token, ms) => post(`${base}${path}`, key, toolCall(token, ms, name));

/** A client of 2026-07-28. */
const modern = (path) => () => (base, key, token, ms) => {
  const call = toolCall(token, ms);
  const prefix = 'io.modelcontextprotocol';
  call.params._meta = { [`${prefix}/protocolVersion`]: modernVersion, [`${prefix}/clientCapabilities`]: {} };
  const headers = { 'mcp-protocol-version': modernVersion, 'mcp-method': 'tools/call', 'mcp-name': 'act' };
  return post(`${base}${path}/mcp`, key, call, headers);
};

/** A client of 2025-11-25 with a session, which it opens again when the service does not know it. */
const legacy = (path, name) => () => {
  let session;
  return async (base, key, token, ms) => {
    const url = `${base}${path}`;
    if (session === undefined) {
      const clientInfo = { name: 'chaos', version: '1' };
      const params = { protocolVersion: legacyVersion, capabilities: {}, clientInfo };
      const opened = await post(url, key, { jsonrpc: '2.0', id: 0, method: 'initialize', params });
      if (opened.status !== 200 || jsonOf(opened).error) return opened;
      session = opened.headers['mcp-session-id'];
    }
    const headers = { 'mcp-protocol-version': legacyVersion, ...(session && { 'mcp-session-id': session }) };
    const answer = await post(url, key, toolCall(token, ms, name), headers);
    if (answer.status === 404) session = undefined;
    return answer;
  };
};

export const LOG_READS = 'log reads';

/** Reads the invocations of the hosted module. Nothing is executed. */
const readLogs = () => async (base, key, token) => {
  const answer = await post(`${base}/servers/chaos%2Fplain/logs`, key);
  if (answer.status !== 200) return answer;
  return { ...answer, text: JSON.stringify({ content: [{ text: `done ${token}` }] }) };
};

export const SENT_LOGS = 'sent logs';

/** Sends a record with the token as its line, again while the answer asks for it or the disk is full. A repetition has the id of the first. */
const sendLogs = () => async (base, key, token) => {
  const record = { id: randomUUID(), timestamp: new Date().toISOString(), logs: [{ message: token }] };
  for (;;) {
    const answer = await post(`${base}/servers/chaos%2Fplain/logs`, key, [record]);
    if (answer.status === 202)
      return { ...answer, status: 200, text: JSON.stringify({ content: [{ text: `done ${token}` }] }) };
    if (answer.status !== 507 && (answer.status !== 503 || !answer.headers['retry-after'])) return answer;
    await wait((answer.headers['retry-after'] ?? 1) * 1_000);
  }
};

/** By kind, its callers: each makes the function that sends one call. */
const kinds = {
  REST: [rest('/connect/chaos/sessions'), rest('/connect/chaos/modern')],
  'REST, hosted': [rest('/connect/chaos/hosted')],
  'REST, uplink': [rest('/connect/chaos/local')],
  'MCP session': [legacy('/connect/chaos/sessions/mcp'), legacy('/connect/chaos/modern/mcp')],
  'MCP stateless': [modern('/connect/chaos/sessions'), modern('/connect/chaos/modern')],
  'MCP, uplink': [legacy('/connect/chaos/local/mcp')],
  run: [run('/run/chaos--plain')],
  'run, stateful': [run('/run/chaos--stateful')],
};
export const kindNames = Object.keys(kinds);

/** Kinds of callers that a rolling restart has beside them. */
export const rollingKinds = {
  ...kinds,
  namespace: [legacy('/connect/chaos/.mcp', 'sessions__act'), legacy('/connect/chaos/.mcp', 'hosted__act')],
  [LOG_READS]: [readLogs],
};

/** Kinds of callers whose calls need nothing but what was read before an outage of Postgres, or wait until it is over. */
export const outageKinds = {
  REST: kinds.REST,
  'REST, hosted': kinds['REST, hosted'],
  'MCP stateless': kinds['MCP stateless'],
  run: kinds.run,
  namespace: [run('/connect/chaos/.mcp', 'sessions__act')],
  [SENT_LOGS]: [sendLogs],
};

/** Calls that were sent, of all callers. */
export class Calls {
  all = [];
  isOver = false;
  running = [];

  /**
   * @param scale callers of each sort
   * @param by `own` kinds of callers; `thinkMs` between two calls of one, on average; `longMs` of the longest calls
   */
  constructor({ urls, key }, scale, { own = kinds, thinkMs = 40, longMs = 1_000 } = {}) {
    this.thinkMs = thinkMs;
    this.longMs = longMs;
    for (const [kind, makers] of Object.entries(own)) {
      for (const make of makers) {
        for (let n = 0; n < scale; n += 1) {
          const random = randomFrom(`caller ${this.running.length}`);
          this.running.push(this.callOften(kind, make(), urls, key, random));
        }
      }
    }
  }

  async callOften(kind, send, urls, key, random) {
    while (!this.isOver) {
      const at = Math.floor(random() * urls.length);
      // Mostly quick, sometimes slow enough to be caught by a fault.
      const isSlow = random() < 0.2;
      const ms = isSlow ? 300 + Math.floor(random() * (this.longMs - 300)) : Math.floor(random() * 50);
      const call = {
        kind,
        at,
        token: randomUUID(),
        startedAt: Date.now(),
        endedAt: Infinity,
        outcome: 'open',
        text: '',
      };
      this.all.push(call);
      try {
        Object.assign(call, outcomeOf(call.token, await send(urls[at], key, call.token, ms)));
      } catch (error) {
        const text = `${error.code ?? ''} ${error.message}`;
        Object.assign(call, {
          outcome: error.code === 'ECONNREFUSED' ? 'refused' : 'lost',
          isHung: error.code === 'ETIMEDOUT',
          text,
        });
      }
      call.endedAt = Date.now();
      await wait(random() * 2 * this.thinkMs);
    }
  }

  /** True once calls of every kind that began after `since` were answered by every api process. */
  allWork(since, apis) {
    const works = new Set();
    for (let n = this.all.length - 1; n >= 0 && this.all[n].startedAt >= since - 90_000; n -= 1) {
      const { kind, at, startedAt, outcome } = this.all[n];
      if (outcome === 'answered' && startedAt >= since) works.add(`${kind} ${at}`);
    }
    return works.size === kindNames.length * apis;
  }

  /** The last answer of each kind that was no success. */
  lastTexts() {
    const last = new Map();
    for (const { kind, at, outcome, text } of this.all) {
      if (outcome !== 'answered' && outcome !== 'open') last.set(`${kind} at api ${at + 1}`, `${outcome}: ${text}`);
    }
    return [...last].map(([kind, text]) => `${kind}: ${text}`);
  }

  /** Stops the callers and resolves when every call has ended. */
  async end() {
    this.isOver = true;
    await Promise.all(this.running);
  }
}
