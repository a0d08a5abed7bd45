// Also run with the queue on Redis by test:long: counts and messages between processes.
// Runs alone: it kills processes.
/** `WORKERS`: the built service with two workers on its embedded Postgres, under calls of every kind, each on a new socket. */
import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { bundled } from '../support/hosting/hosted-programs.js';
import { parseMetrics } from '../support/logs/prometheus.js';
import { times, toolCall, type Json } from '../support/mcp/calls.js';
import { openTunnel, type UplinkClient } from '../support/mcp/uplink-client.js';
import { cleanUpPrograms, isAlive, postgresOf, runProgram, usedDataFolder, type Program } from '../support/program.js';
import { until } from '../support/until.js';
import { textOf } from '../support/upstream/upstream-clients.js';
import { startUpstream, textResult, type Upstream } from '../support/upstream/upstream.js';
import { verifies } from '../support/verifies.js';

const SLOW_MS = 120_000;

/** Each request has a socket of its own, so that the workers take turns. */
const NEW_SOCKET = { connection: 'close' };

let service: Program;
let dataDir: string;
let url: string;
let key: string;
let upstream: Upstream;
let tunnel: UplinkClient;
let isEnding = false;
let session: Client;
/** Number of times that each token was executed, wherever. */
const executions = new Map<string, number>();
/** Answers of executions wait for it. */
let gate = Promise.resolve();

async function execute(token: string): Promise<{ content: object[] }> {
  executions.set(token, (executions.get(token) ?? 0) + 1);
  await gate;
  return textResult(token);
}

async function ask(method: string, path: string, body?: object): Promise<Json> {
  const isForm = body instanceof FormData;
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      ...NEW_SOCKET,
      authorization: `Bearer ${key}`,
      accept: 'application/json, text/event-stream',
      ...(body && !isForm && { 'content-type': 'application/json' }),
    },
    body: isForm ? body : body && JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? undefined : JSON.parse(/^data: (.+)$/m.exec(text)?.[1] ?? text);
}

/** Publishes a release of a new server. @returns path of its run endpoint */
async function publish(name: string, payload: object, module?: string): Promise<string> {
  await ask('PUT', `/servers/acme/${name}`);
  const form = new FormData();
  form.set('payload', JSON.stringify(payload));
  if (module) form.set('module', new Blob([module]), 'module.js');
  await ask('PUT', `/servers/acme/${name}/releases`, form);
  const release = await until(async () => {
    const found = await ask('GET', `/servers/acme/${name}/releases/latest`);
    return found.status === 'SUCCESS' && found;
  }, `${name} is published`);
  return new URL(String(release.mcpUrl)).pathname;
}

const uplinkPath = '/connect/acme/local';

/** Opens the tunnel, and again whenever it ends, as the published client does. */
async function keepTunnel(): Promise<void> {
  tunnel = await openTunnel({ url }, { key }, uplinkPath, {
    answers: { 'tools/call': ({ params }) => execute(params.arguments.token) },
  });
  void tunnel.closed.then(({ code }) =>
    code === 1000 || isEnding ? undefined : until(() => isEnding || keepTunnel().then(() => true), 'it pairs'),
  );
}

/** One call of each kind. @returns the token of the answer */
const kinds: Record<string, (token: string) => Promise<string>> = {
  rest: async (token) => textOf(await ask('POST', '/connect/acme/up/.tools/act', { token })),
  session: async (token) => textOf(await session.callTool({ name: 'act', arguments: { token } })),
  uplink: async (token) => textOf(await ask('POST', `${uplinkPath}/.tools/echo`, { token })),
  external: async (token) => textOf((await ask('POST', paths.external, toolCall(1, 'act', { token }))).result),
  hosted: async (token) => textOf((await ask('POST', paths.hosted, toolCall(1, 'act', { token }))).result),
};
const paths = { external: '', hosted: '' };

/** Makes calls of every kind, one after another, until `work` is done. @returns errors of calls, by their token */
async function under(work: () => Promise<unknown>): Promise<{ failed: Map<string, string>; answered: number }> {
  const failed = new Map<string, string>();
  let [answered, isOver] = [0, false];
  const call = async () => {
    for (let i = 0; !isOver; i += 1) {
      for (const [kind, ask] of Object.entries(kinds)) {
        const token = `${kind}-${performance.now()}-${i}`;
        try {
          expect(await ask(token)).toBe(token);
          answered += 1;
        } catch (error) {
          failed.set(token, String((error as Error).cause ?? error));
          // A call that fails without a request does not hold up the others.
          await new Promise(setImmediate);
        }
      }
    }
  };
  const caller = call();
  await work().finally(() => (isOver = true));
  await caller;
  return { failed, answered };
}

const logged = (text: string) => service.logs().filter(({ msg }) => String(msg).includes(text)).length;

/** The process id of the worker with this number. */
const workerPid = (number: number) =>
  Number(execFileSync('pgrep', ['-P', String(service.pid), '-f', `worker \\{"number":${number},`]));

/** Numbers of the workers that answer `/ready` on new sockets. */
async function serving(): Promise<number[]> {
  const answers = await Promise.all(times(4, () => ask('GET', '/ready')));
  return [...new Set(answers.map(({ worker }) => Number(worker)))].sort();
}

beforeAll(async () => {
  ({ dataDir, key } = await usedDataFolder());
  upstream = await startUpstream({
    tools: [
      {
        name: 'act',
        inputSchema: { type: 'object', properties: { token: { type: 'string' } } },
        call: ({ args }) => execute(String(args.token)),
      },
    ],
  });
  service = runProgram('main.js', {
    ...{ DATA_DIR: dataDir, WORKERS: '2', EGRESS_ALLOW: 'loopback', METRICS_TOKEN: 'open', DRAIN_MS: '500' },
    ...(process.env.TEST_REDIS_URL === undefined ? {} : { REDIS_URL: process.env.TEST_REDIS_URL }),
  });
  url = await service.url();
  await ask('PUT', '/namespaces/acme');
  await ask('PUT', '/connect/acme/up', { mcpUrl: upstream.url });
  await ask('PUT', uplinkPath, { transport: 'uplink' });
  await keepTunnel();
  const module = await bundled(`
    import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
    import { z } from 'zod';
    export default () => {
      const server = new McpServer({ name: 'hosted', version: '1.0.0' });
      server.registerTool('act', { description: 'Acts.', inputSchema: { token: z.string() } }, ({ token }) => ({
        content: [{ type: 'text', text: token }],
      }));
      return server.server;
    };`);
  [paths.external, paths.hosted] = await Promise.all([
    publish('external', { type: 'external', upstreamUrl: upstream.url }),
    publish('hosted', { type: 'hosted' }, module),
  ]);
  session = new Client({ name: 'spec', version: '1.0.0' });
  const requestInit = { headers: { authorization: `Bearer ${key}`, ...NEW_SOCKET } };
  await session.connect(new StreamableHTTPClientTransport(new URL(`${url}/connect/acme/up/mcp`), { requestInit }));
}, SLOW_MS);

afterAll(async () => {
  await session.close();
  isEnding = true;
  tunnel.socket.terminate();
  await upstream.close();
  await cleanUpPrograms();
}, SLOW_MS);

describe('two workers', () => {
  verifies('workers:calls', 'answer calls of every kind, whichever takes the connection', async () => {
    await until(async () => (await serving()).length === 2, 'both serve');
    for (const call of Object.values(kinds)) {
      const tokens = times(12, (i) => `${i}-${performance.now()}`);
      expect(await Promise.all(tokens.map(call))).toEqual(tokens);
    }
    expect(service.logs().filter(({ worker }) => worker === 2).length).toBeGreaterThan(0);
  });

  verifies('workers:metrics', 'show the sum of both at each', async () => {
    const page = async () => parseMetrics(await (await fetch(`${url}/metrics`, { headers: NEW_SOCKET })).text());
    const count = async () => (await page()).value('slipway_http_requests_total', 'kind="registry",status="2xx"');
    const before = await count();
    await Promise.all(times(10, () => ask('GET', '/namespaces')));
    await Promise.all(times(4, async () => expect(await count()).toBe(before + 10)));
    expect((await page()).value('slipway_queue_reachable')).toBe(1);
  });

  verifies('workers:limits', 'count the requests of a key together', async () => {
    const { key: newKey } = await ask('POST', '/accounts/me/api-keys', { name: 'counted' });
    const headers = { ...NEW_SOCKET, authorization: `Bearer ${newKey}` };
    let [sent, secondsLeft] = [0, 0];
    // Alone, each of two workers would count half of them.
    await until(async () => {
      const limits = (await fetch(`${url}/namespaces`, { headers })).headers;
      const [, max] = /"key";q=(\d+)/.exec(limits.get('ratelimit-policy') ?? '') ?? [];
      const [, left, seconds] = /"key";r=(\d+);t=(\d+)/.exec(limits.get('ratelimit') ?? '') ?? [];
      // A new minute begins at 0.
      sent = Number(seconds) > secondsLeft ? 1 : sent + 1;
      secondsLeft = Number(seconds);
      return sent >= 20 && Number(max) - Number(left) > 0.75 * sent;
    }, 'the requests of the other worker are counted');
  });

  verifies(
    'workers:doctor',
    'are listed by slipway doctor',
    async () => {
      const doctor = runProgram('cli/slipway.js', { DATA_DIR: dataDir }, { args: ['doctor'] });
      await doctor.ended;
      expect(doctor.output()).toMatch(/^ok +workers +1, 2 on \S+$/m);
    },
    SLOW_MS,
  );

  verifies(
    'workers:reload',
    'are replaced at SIGHUP without a failed call',
    async () => {
      const { failed, answered } = await under(async () => {
        service.kill('SIGHUP');
        await until(() => logged('the workers are replaced') === 2, 'they were replaced');
      });
      expect([...failed]).toEqual([]);
      expect(answered).toBeGreaterThan(20);
      expect(await serving()).toEqual([1, 2]);
    },
    SLOW_MS,
  );

  verifies(
    'workers:restart',
    'are replaced when one is killed: each call under way ends, and none is executed twice',
    async () => {
      for (const victim of [1, 2]) {
        let open = () => undefined as void;
        gate = new Promise((resolve) => (open = resolve));
        const tokens = Object.keys(kinds).flatMap((kind) =>
          times(6, (i) => ({ kind, token: `${kind}-${victim}-${i}` })),
        );
        const calls = Promise.allSettled(tokens.map(({ kind, token }) => kinds[kind](token)));
        // Hosted calls do not wait.
        const waiting = tokens.filter(({ kind }) => kind !== 'hosted');
        await until(() => waiting.every(({ token }) => executions.has(token)), 'all are executed');
        process.kill(workerPid(victim), 'SIGKILL');
        await until(() => logged(`worker ${victim} ended (SIGKILL); it is started again`) === 1, 'its end is noticed');
        open();
        const outcomes = await calls;
        expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['fulfilled', 'rejected']));
        outcomes.forEach((outcome, i) => {
          if (outcome.status === 'fulfilled') expect(outcome.value).toBe(tokens[i].token);
        });
        await until(async () => (await serving()).length === 2, 'both serve again');
        for (const call of Object.values(kinds)) await until(() => call(`${performance.now()}`), 'calls are answered');
      }
      expect([...executions].filter(([, count]) => count > 1)).toEqual([]);
    },
    SLOW_MS,
  );

  verifies(
    'workers:stop',
    'end at SIGTERM with their Postgres, also one that has just been started again',
    async () => {
      const all = [workerPid(1), await postgresOf(dataDir)];
      const ends = logged('worker 2 ended');
      process.kill(workerPid(2), 'SIGKILL');
      await until(() => logged('worker 2 ended') > ends, 'its end is noticed');
      service.kill('SIGTERM');
      expect(await service.ended).toBe(0);
      await until(() => all.every((pid) => !isAlive(pid as number)), 'no process is left');
    },
    SLOW_MS,
  );
});
