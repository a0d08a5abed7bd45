/**
 * Sends generated inputs to a service in a process of its own and judges each answer (`answers.ts`), the state that the
 * answers speak of (`state.ts`), the log, the memory and the exit of the process. Inputs are arbitraries of fast-check
 * (`rest.ts`, `mcp.ts`, `uplink.ts`, `wire.ts`) and follow from `TEST_SEED`. `npm run lab fuzz` prints the report.
 */
import fc from 'fast-check';
import { generateApiKey } from '../../src/modules/auth/api-key.js';
import { ApiDocument, type NamedOperation } from '../support/documentation/api-document.js';
import { parseMetrics } from '../support/logs/prometheus.js';
import { cleanUpPrograms, readySettings, runProgram, type Program } from '../support/program.js';
import { startRepositoryHost } from '../support/releases/repository-host.js';
import { skillMd } from '../support/releases/skills.js';
import { startScripted } from '../support/special-upstreams/scripted-upstream.js';
import { testSeed } from '../support/seed.mjs';
import { until } from '../support/until.js';
import { startUpstream } from '../support/upstream/upstream.js';
import { zipOf } from '../support/zips.js';
import { bodyOf } from './answers.js';
import { drawFrom, weighted } from './draw.js';
import { send, type Got, type Sent } from './exchange.js';
import { Lane, SECRET } from './lane.js';
import { FIRST_KEY } from './state.js';
import { anyValue, encoded, oddText, type Urls } from './values.js';

export interface FuzzReport {
  requests: number;
  /** Inputs by their kind. */
  kinds: Record<string, number>;
  /** Operations that answered with success, of all that are documented. */
  operations: { succeeded: number };
  /** Comparisons of what is listed, read and counted with what was answered. */
  checks: number;
  /** One text for each fault, with its request. */
  faults: string[];
  /** Everything as text. */
  text: string;
}

/** Accounts that send at the same time, each one request after another. */
const LANES = 3;
/** More than this the memory of a sound service does not grow by; a leak of each input is far above. */
const GROWTH_MB_MAX = 400;
/** A run with so many faults has said enough. */
const FAULTS_MAX = 60;

/**
 * Sends `inputs` generated inputs of each lane, and more until each lane sent every operation twice. Everything that is sent
 * follows from the seed.
 */
export async function fuzz(inputs: number, seed = testSeed): Promise<FuzzReport> {
  const keys = { operator: generateApiKey(), metrics: 'metrics-token-of-the-fuzzer' };
  const program = runProgram(
    'main.js',
    {
      ...(await readySettings(keys.operator)),
      METRICS_TOKEN: keys.metrics,
      LOG_LEVEL: 'warn',
      LOG_FORMAT: 'json',
      AUTH_FAILURES_MAX: '1000000',
      UPSTREAM_CONNECT_TIMEOUT_MS: '1000',
      MCP_CALL_TIMEOUT_MS: '1000',
    },
    { tuning: { upstreamCallTimeoutMs: 1_000, releaseScanTimeoutMs: 2_000 } },
  );
  const events = { events: [{ name: 'page.updated', inputSchema: { type: 'object' } }] };
  const draw = drawFrom(`${seed}/upstream`);
  const plain = await startUpstream();
  const guarded = await startUpstream({ requireHeaders: { authorization: 'Bearer right' } });
  const odd = await startScripted(() => JSON.stringify(draw(anyValue)));
  const eventful = await startScripted(({ method }) =>
    JSON.stringify(method === 'ai.smithery/events/list' ? events : {}),
  );
  const repositories = await startRepositoryHost();
  try {
    repositories.serve('/acme/skills/archive/HEAD.zip', await zipOf({ 'SKILL.md': skillMd() }));
    const upstreams = { plain: plain.url, guarded: guarded.url, odd: odd.url, events: eventful.url };
    const repository = `${repositories.url}/acme/skills`;
    const run = new Run(await program.url(), program, keys, upstreams, repository, await ApiDocument.read());
    return await run.run(seed, inputs);
  } finally {
    await Promise.all([plain, guarded, odd, eventful, repositories].map((server) => server.close()));
    await cleanUpPrograms();
  }
}

type Counts = Record<string, number>;

function increment(counts: Counts, name: string, by = 1): void {
  counts[name] = (counts[name] ?? 0) + by;
}

/** A service under test, and what its lanes saw of it. */
export class Run {
  readonly succeeded = new Set<string>();
  checks = 0;
  /** By their texts: how often, and the first request. */
  private readonly faults = new Map<string, { times: number; detail: string }>();
  private readonly kinds: Counts = {};
  private readonly statuses: Counts = {};
  private readonly accountKeys: string[] = [];
  private isEnded = false;

  constructor(
    readonly url: string,
    private readonly program: Program,
    readonly keys: { operator: string; metrics: string },
    readonly upstreams: Record<'plain' | 'guarded' | 'odd' | 'events', string>,
    private readonly repository: string,
    readonly document: ApiDocument,
  ) {
    void program.ended.then((code) => {
      if (!this.isEnded) this.fault(`the service ended with ${code}`, program.output().slice(-3_000));
      this.isEnded = true;
    });
  }

  async run(seed: number, inputs: number): Promise<FuzzReport> {
    const stranger = await this.account('stranger');
    const lanes: Lane[] = [];
    for (let i = 0; i < LANES; i++) {
      const account = await this.account(`lane-${i}`);
      lanes.push(new Lane(this, `${seed}/${i}`, { ...account, namespaces: [`fuzz-${i}a`, `fuzz-${i}b`] }, stranger));
    }
    const beforeMb = await this.memoryMb();
    await Promise.all(lanes.map((lane) => lane.work(inputs)));
    if (this.faults.size === 0) await this.settle();
    const afterMb = this.isEnded ? NaN : await this.memoryMb();
    if (afterMb - beforeMb > GROWTH_MB_MAX) this.fault(`memory grew from ${beforeMb} to ${afterMb} MB`);
    this.isEnded = true;
    this.program.kill('SIGTERM');
    const code = await this.program.ended;
    if (code !== 0) this.fault(`the service stopped with ${code}`);
    this.readLog();
    const requests = Object.values(this.statuses).reduce((sum, count) => sum + count, 0);
    const names = this.document.operations.map(({ name }) => name);
    const never = names.filter((name) => !this.succeeded.has(name)).join(', ') || 'none';
    const faults = [...this.faults].map(
      ([text, { times, detail }]) => `${times} x ${text}${detail && `\n    ${detail}`}`,
    );
    const table = (title: string, counts: Counts) => [
      title,
      ...Object.entries(counts)
        .sort(([a], [b]) => a.localeCompare(b))
        .map(([name, count]) => `  ${name.padEnd(28)} ${String(count).padStart(7)}`),
    ];
    const text = [
      `${requests} requests, ${inputs} inputs of each lane, TEST_SEED=${seed}`,
      ...table('Inputs', this.kinds),
      ...table('Answers', this.statuses),
      `Operations that succeeded: ${this.succeeded.size} of ${names.length}. Never: ${never}`,
      `Comparisons of the state: ${this.checks}`,
      `Memory: ${beforeMb} MB before, ${afterMb} MB after`,
      ...faults.map((fault) => `FAULT ${fault}`),
      `${faults.length} faults\n`,
    ].join('\n');
    const { kinds, checks } = this;
    return { requests, kinds, operations: { succeeded: this.succeeded.size }, checks, faults, text };
  }

  /** URLs of the servers that generated inputs name. */
  readonly urls: Urls = (name) => {
    if (!/url$|^homepage$/i.test(name)) return undefined;
    const { plain, guarded, odd } = this.upstreams;
    const others = ['http://127.0.0.1:1/mcp', 'http://10.0.0.1/', 'http://[::1', 'file:///etc/passwd'];
    const any = fc.oneof(
      {
        weight: 10,
        arbitrary: fc.constantFrom(plain, plain, plain, guarded, odd, ...others, `${others[0]}/tree/main/b`),
      },
      { weight: 1, arbitrary: oddText.map((text) => `${plain}?key=${encoded(text)}`) },
    );
    return name === 'gitUrl' ? weighted([7, fc.constant(this.repository)], [3, any]) : any;
  };

  get isOver(): boolean {
    return this.isEnded || this.faults.size >= FAULTS_MAX;
  }

  operation(name: string): NamedOperation {
    const operation = this.document.operations.find((documented) => documented.name === name);
    if (!operation) throw new Error(`${name} is not documented`);
    return operation;
  }

  count(kind: string, by = 1): void {
    increment(this.kinds, kind, by);
  }

  fault(text: string, detail = ''): void {
    const times = (this.faults.get(text)?.times ?? 0) + 1;
    this.faults.set(text, { times, detail: this.faults.get(text)?.detail ?? detail });
  }

  async send(sent: Sent): Promise<Got | null> {
    const got = await send(this.url, sent);
    increment(this.statuses, got === null ? 'cut' : String(got.status));
    return got;
  }

  private async account(name: string): Promise<{ key: string; accountId: string }> {
    const post = async (target: string, body: object) => {
      const headers = { authorization: `Bearer ${this.keys.operator}`, 'content-type': 'application/json' };
      const got = await send(this.url, { method: 'POST', target, headers, body: JSON.stringify(body) });
      if (got?.status !== 201) throw new Error(`POST ${target} answered ${got?.status}: ${String(got?.body)}`);
      return bodyOf(got);
    };
    const accountId = String((await post('/accounts', { name: `fuzz-${name}`, kind: 'organization' })).id);
    const key = String((await post(`/accounts/${accountId}/api-keys`, { name: FIRST_KEY })).key);
    this.accountKeys.push(key);
    return { accountId, key };
  }

  /** Checks that the service is whole and every job ends. */
  private async settle(): Promise<void> {
    for (const target of ['/health', '/ready']) {
      const got = await send(this.url, { method: 'GET', target, headers: {} });
      if (got?.status !== 200 || bodyOf(got).status === undefined) {
        this.fault(`${target} answers ${got?.status}`, String(got?.body));
      }
    }
    const areJobsDone = async () => {
      const lines = [...((await this.metrics()).all.get('slipway_queue_jobs')?.values ?? [])];
      return lines.every(([labels, jobs]) => !/waiting|active/.test(labels) || jobs === 0);
    };
    await until(areJobsDone, 'every job is done').catch((error: Error) => this.fault(error.message));
  }

  private async metrics(): Promise<ReturnType<typeof parseMetrics>> {
    const headers = { authorization: `Bearer ${this.keys.metrics}` };
    return parseMetrics(String((await send(this.url, { method: 'GET', target: '/metrics', headers }))?.body));
  }

  private async memoryMb(): Promise<number> {
    return Math.round((await this.metrics()).value('process_resident_memory_bytes') / 2 ** 20);
  }

  /** Nothing that clients send may cause an error or a warning of Node, and no secret is in the log. */
  private readLog(): void {
    for (const line of this.program.logs()) {
      if (['error', 'fatal', '50', '60'].includes(String(line.level)))
        this.fault('logged as an error', JSON.stringify(line).slice(0, 2_000));
    }
    const output = this.program.output();
    const warning = /.*(?:unhandled|Warning: Possible|MaxListenersExceeded).*/i.exec(output);
    if (warning) this.fault('a warning of Node', warning[0]);
    const secrets = [this.keys.operator, this.keys.metrics, SECRET, ...this.accountKeys];
    if (secrets.some((secret) => output.includes(secret))) this.fault('a secret is in the log', output.slice(-3_000));
  }
}
