import { generateApiKey } from '../../src/modules/auth/api-key.js';
import { ApiDocument, isObject } from '../support/documentation/api-document.js';
import { cleanUpPrograms, readySettings, runProgram, type Program } from '../support/program.js';
import { startScripted } from '../support/special-upstreams/scripted-upstream.js';
import { startUpstream } from '../support/upstream/upstream.js';
import { parseMetrics } from '../support/logs/prometheus.js';
import { startRepositoryHost } from '../support/releases/repository-host.js';
import { skillMd } from '../support/releases/skills.js';
import { zipOf } from '../support/zips.js';
import { until } from '../support/until.js';
import { bodyOf, errorFaults, faultsOf, rpcFaults } from './answers.js';
import { described, send, sendBytes, type Got, type Sent } from './exchange.js';
import { FORM_TYPE, formBody } from './files.js';
import { rpcBody, rpcHeaders } from './mcp.js';
import { Random } from './random.js';
import { CONNECTIONS, encoded, RestCases, type Sender } from './rest.js';
import { OWN_KEY, Reader, State, type Change } from './state.js';
import { talk } from './uplink.js';
import { anyValue, oddText, type Places } from './values.js';
import { wireBytes } from './wire.js';

export interface FuzzOptions {
  /** Everything that is sent follows from it. */
  seed: string;
  /** Sends for this long, and longer until each lane sent every operation: a busy machine sends few requests in that time. */
  seconds: number;
}

export interface FuzzReport {
  seed: string;
  seconds: number;
  requests: number;
  /** Inputs by their kind, and answers by their status. */
  kinds: Record<string, number>;
  statuses: Record<string, number>;
  /** Operations that answered with success, of all that are documented. */
  operations: { succeeded: number; documented: number; never: string[] };
  /** Comparisons of what is listed, read and counted with what was answered. */
  checks: number;
  memory: { beforeMb: number; afterMb: number };
  /** One text for each fault, with its request. */
  faults: string[];
}

/** Accounts that send at the same time, each one request after another. */
const LANES = 3;
/** Requests of an account between two comparisons of its state. */
const CHECK_EVERY = 400;
/** More than this the memory of a sound service does not grow by; a leak of each input is far above. */
const GROWTH_MB_MAX = 400;
/** A run with so many faults has said enough. */
const FAULTS_MAX = 60;

const METRICS_TOKEN = 'metrics-token-of-the-fuzzer';

/** Sends generated inputs to a service in a process of its own, and looks for what must not be. */
export async function fuzz({ seed, seconds }: FuzzOptions): Promise<FuzzReport> {
  const operatorKey = generateApiKey();
  const program = runProgram('main.js', {
    ...(await readySettings(operatorKey)),
    METRICS_TOKEN,
    LOG_LEVEL: 'warn',
    LOG_FORMAT: 'json',
    AUTH_FAILURES_MAX: '1000000',
    UPSTREAM_CONNECT_TIMEOUT_MS: '1000',
    UPSTREAM_CALL_TIMEOUT_MS: '1000',
    MCP_CALL_TIMEOUT_MS: '1000',
    RELEASE_SCAN_TIMEOUT_MS: '2000',
  });
  const upstreams: { close(): Promise<void> }[] = [];
  try {
    const [plain, guarded] = await Promise.all([
      startUpstream(),
      startUpstream({ requireHeaders: { authorization: 'Bearer right' } }),
    ]);
    const nonsense = new Random(`${seed}/upstream`);
    const odd = await startScripted(() => JSON.stringify(anyValue(nonsense)));
    const events = await startScripted(({ method }) =>
      method === 'ai.smithery/events/list'
        ? '{"events":[{"name":"page.updated","inputSchema":{"type":"object"}}]}'
        : '{}',
    );
    const repositories = await startRepositoryHost();
    const archive = await zipOf({ 'SKILL.md': skillMd() });
    repositories.serve('/acme/skills/archive/HEAD.zip', archive);
    upstreams.push(plain, guarded, odd, events, repositories);
    const urls = {
      plain: plain.url,
      guarded: guarded.url,
      odd: odd.url,
      events: events.url,
      repository: `${repositories.url}/acme/skills`,
    };
    const run = new Run(await program.url(), program, seed, operatorKey, urls);
    return await run.run(seconds, await ApiDocument.read());
  } finally {
    await Promise.all(upstreams.map((upstream) => upstream.close()));
    await cleanUpPrograms();
  }
}

/** URLs of the servers that generated inputs name. */
type Urls = Record<'plain' | 'guarded' | 'odd' | 'events' | 'repository', string>;

class Run {
  /** By their texts: how often, and the first request. */
  private readonly faults = new Map<string, { times: number; detail: string }>();
  private readonly kinds = new Map<string, number>();
  private readonly statuses = new Map<string, number>();
  private readonly succeeded = new Set<string>();
  private requests = 0;
  private checks = 0;
  private isEnded = false;

  constructor(
    private readonly url: string,
    private readonly program: Program,
    private readonly seed: string,
    readonly operatorKey: string,
    readonly urls: Urls,
  ) {
    void program.ended.then((code) => {
      if (!this.isEnded) this.fault(`the service ended with ${code}`, program.output().slice(-3_000));
      this.isEnded = true;
    });
  }

  async run(seconds: number, document: ApiDocument): Promise<FuzzReport> {
    const stranger = await this.account('stranger');
    const lanes: Lane[] = [];
    for (let i = 0; i < LANES; i++) {
      const sender = { ...(await this.account(`lane-${i}`)), namespaces: [`fuzz-${i}a`, `fuzz-${i}b`] };
      lanes.push(new Lane(this, `${this.seed}/${i}`, document, sender, stranger));
    }
    const beforeMb = await this.memoryMb();
    const until = Date.now() + seconds * 1_000;
    await Promise.all(lanes.map((lane) => lane.run(until)));
    if (this.faults.size === 0) await this.settle();
    const afterMb = this.isEnded ? NaN : await this.memoryMb();
    if (afterMb - beforeMb > GROWTH_MB_MAX) this.fault(`memory grew from ${beforeMb} to ${afterMb} MB`);
    this.readLog();
    this.isEnded = true;
    this.program.kill('SIGTERM');
    const code = await this.program.ended;
    if (code !== 0) this.fault(`the service stopped with ${code}`);
    const names = document.operations.map(({ name }) => name);
    return {
      seed: this.seed,
      seconds,
      requests: this.requests,
      kinds: sorted(this.kinds),
      statuses: sorted(this.statuses),
      operations: {
        succeeded: this.succeeded.size,
        documented: names.length,
        never: names.filter((name) => !this.succeeded.has(name)),
      },
      checks: this.checks,
      memory: { beforeMb, afterMb },
      faults: [...this.faults].map(([text, { times, detail }]) => `${times} x ${text}${detail && `\n    ${detail}`}`),
    };
  }

  get places(): Places {
    return (random, name) => {
      if (!/url$|^homepage$/i.test(name)) return undefined;
      const { plain, guarded, odd, repository } = this.urls;
      if (name === 'gitUrl' && random.chance(0.7)) return repository;
      return random.pick([
        plain,
        plain,
        plain,
        guarded,
        odd,
        `${plain}?key=${encoded(oddText(random))}`,
        'http://127.0.0.1:1/mcp',
        'http://10.0.0.1/',
        'http://[::1',
        'file:///etc/passwd',
        'http://127.0.0.1:1/a/tree/main/b',
      ]);
    };
  }

  get isOver(): boolean {
    return this.isEnded || this.faults.size >= FAULTS_MAX;
  }

  count(kind: string, by = 1): void {
    this.kinds.set(kind, (this.kinds.get(kind) ?? 0) + by);
  }

  succeededAt(operation: string): void {
    this.succeeded.add(operation);
  }

  checked(): void {
    this.checks++;
  }

  fault(text: string, detail = ''): void {
    const known = this.faults.get(text);
    if (known) known.times++;
    else this.faults.set(text, { times: 1, detail });
  }

  async send(sent: Sent): Promise<Got | null> {
    const got = await send(this.url, sent);
    this.requests++;
    const status = got === null ? 'cut' : String(got.status);
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    return got;
  }

  reader(key: string): Reader {
    return new Reader(this.url, key);
  }

  talk(random: Random, key: string, path: string, call: () => Promise<void>): Promise<number> {
    return talk(random, this.url, key, path, call);
  }

  sendBytes(bytes: Buffer): Promise<string> {
    this.requests++;
    return sendBytes(this.url, bytes);
  }

  private async account(name: string): Promise<{ key: string; accountId: string }> {
    const ask = async (target: string, body: object) => {
      const headers = { authorization: `Bearer ${this.operatorKey}`, 'content-type': 'application/json' };
      const got = await send(this.url, { method: 'POST', target, headers, body: JSON.stringify(body) });
      if (got?.status !== 201) throw new Error(`POST ${target} answered ${got?.status}: ${String(got?.body)}`);
      return bodyOf(got);
    };
    const accountId = String((await ask('/accounts', { name: `fuzz-${name}`, kind: 'organization' })).id);
    return { accountId, key: String((await ask(`/accounts/${accountId}/api-keys`, { name: OWN_KEY })).key) };
  }

  /** Waits until no release is at work, and checks that the service is whole. */
  private async settle(): Promise<void> {
    const page = async (target: string) =>
      bodyOf((await send(this.url, { method: 'GET', target, headers: {} })) as Got);
    if ((await page('/health')).status === undefined) this.fault('/health has no status');
    const ready = await send(this.url, { method: 'GET', target: '/ready', headers: {} });
    if (ready?.status !== 200) this.fault(`/ready answers ${ready?.status}`, String(ready?.body));
    await until(async () => (await this.jobs()) === 0, 'every job is done').catch((error: Error) =>
      this.fault(error.message),
    );
  }

  /** Jobs that wait or run, by the metrics. */
  private async jobs(): Promise<number> {
    const { all } = await this.metrics();
    const lines = [...(all.get('slipway_queue_jobs')?.values ?? [])];
    return lines.filter(([labels]) => /waiting|active/.test(labels)).reduce((sum, [, value]) => sum + value, 0);
  }

  private async metrics(): Promise<ReturnType<typeof parseMetrics>> {
    const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
    const got = await send(this.url, { method: 'GET', target: '/metrics', headers });
    return parseMetrics(String(got?.body));
  }

  private async memoryMb(): Promise<number> {
    return Math.round((await this.metrics()).value('process_resident_memory_bytes') / 2 ** 20);
  }

  /** Counts each logged error as a fault: nothing that clients send may cause one. */
  private readLog(): void {
    for (const line of this.program.logs()) {
      const level = String(line.level);
      if (['error', 'fatal', '50', '60'].includes(level))
        this.fault('logged as an error', JSON.stringify(line).slice(0, 2_000));
    }
    if (/unhandled|Warning: Possible|MaxListenersExceeded/i.test(this.program.output())) {
      this.fault(
        'a warning of Node',
        /.*(?:unhandled|Warning: Possible|MaxListenersExceeded).*/i.exec(this.program.output())?.[0],
      );
    }
  }
}

/** One account and its requests. */
class Lane {
  private readonly state = new State();
  private readonly cases: RestCases;

  constructor(
    private readonly owner: Run,
    private readonly seed: string,
    private readonly document: ApiDocument,
    private readonly sender: Sender,
    stranger: { key: string; accountId: string },
  ) {
    this.cases = new RestCases(
      document,
      owner.places,
      { operator: owner.operatorKey, metrics: METRICS_TOKEN },
      sender,
      stranger,
    );
  }

  async run(until: number): Promise<void> {
    for (let i = 0; (Date.now() < until || this.cases.rounds < 2) && !this.owner.isOver; i++) {
      const random = new Random(`${this.seed}/${i}`);
      try {
        // The names that most inputs need exist most of the time.
        if (i % 60 === 0) await this.found(random);
        await this.one(random);
      } catch (error) {
        this.owner.fault(`case ${this.seed}/${i} failed: ${(error as Error).stack}`);
      }
      if (i % CHECK_EVERY === CHECK_EVERY - 1) await this.check();
    }
    if (!this.owner.isOver) await this.check();
  }

  private async one(random: Random): Promise<void> {
    const kind = random.weighted({ rest: 70, mcp: 22, wire: 5, uplink: 3 });
    if (kind === 'rest') await this.rest(random);
    else if (kind === 'mcp') await this.mcp(random);
    else if (kind === 'wire') await this.wire(random);
    else await this.uplink(random);
  }

  private async check(): Promise<void> {
    this.owner.checked();
    const differences = await this.state.differences(this.owner.reader(this.sender.key), this.document);
    for (const one of differences) this.owner.fault(`inconsistent after ${this.seed}: ${one}`);
  }

  /** Claims the first namespace and fills it. */
  private async found(random: Random): Promise<void> {
    const [namespace = ''] = this.sender.namespaces;
    const ask = async (name: string, parameters: Record<string, string>, body?: object | Buffer) => {
      const operation = this.document.operations.find((one) => one.name === name);
      if (!operation) throw new Error(`${name} is not documented`);
      const target = operation.path.replace(/\{(\w+)\}/g, (_, parameter: string) =>
        encoded(parameters[parameter] ?? ''),
      );
      const headers = {
        authorization: `Bearer ${this.sender.key}`,
        'content-type': Buffer.isBuffer(body) ? FORM_TYPE : 'application/json',
      };
      const content = Buffer.isBuffer(body) ? body : body && JSON.stringify(body);
      const sent = { method: operation.method, target, headers, ...(content && { body: content }) };
      const got = await this.owner.send(sent);
      if (got === null) return;
      const request = isObject(body) ? body : {};
      this.applied({ operation: name, parameters, request, status: got.status, body: bodyOf(got) });
    };
    await ask('PUT /namespaces/{name}', { name: namespace });
    await ask('PUT /servers/{qualifiedName}', { qualifiedName: `${namespace}/alpha` }, {});
    const connection = 'PUT /connect/{namespace}/{connectionId}';
    const { plain, guarded, odd, events } = this.owner.urls;
    for (const [connectionId, mcpUrl] of Object.entries({ plain, locked: guarded, odd, events })) {
      await ask(connection, { namespace, connectionId }, { mcpUrl, metadata: { at: random.int(0, 9) } });
    }
    await ask(connection, { namespace, connectionId: 'local' }, { transport: 'uplink' });
    const mock = { server: `${namespace}/alpha`, mock: { enabled: true } };
    await ask(connection, { namespace, connectionId: 'mock' }, mock);
    const archive = await zipOf({ 'SKILL.md': skillMd({ name: 'review' }) });
    const skill = formBody([{ name: 'archive', content: archive, filename: 'skill.zip' }]);
    await ask('PUT /skills/{namespace}/{slug}/upload', { namespace, slug: 'review' }, skill);
    const external = JSON.stringify({ type: 'external', upstreamUrl: plain });
    const form = formBody([{ name: 'payload', content: external }]);
    await ask('PUT /servers/{qualifiedName}/releases', { qualifiedName: `${namespace}/alpha` }, form);
    const secret = { name: 'KEY_1', value: 'secret' };
    await ask('PUT /servers/{qualifiedName}/secrets', { qualifiedName: `${namespace}/alpha` }, secret);
    await ask('POST /accounts/{accountId}/api-keys', { accountId: 'me' }, { name: 'found' });
  }

  /** Takes over a change, and the id that later requests name. */
  private applied(change: Change): void {
    const { operation, status, body } = change;
    if (status < 300 && operation === 'PUT /servers/{qualifiedName}/releases')
      this.cases.ids.id.push(String(body.deploymentId));
    if (status < 300 && operation === 'POST /accounts/{accountId}/api-keys') this.cases.ids.keyId.push(String(body.id));
    this.state.apply(change);
  }

  private async rest(random: Random): Promise<void> {
    const made = await this.cases.make(random);
    const { operation, sent, isOdd } = made;
    const twins = operation.method !== 'GET' && random.chance(0.08) ? 2 : 1;
    const all = await Promise.all(Array.from({ length: twins }, () => this.owner.send(sent)));
    for (const got of all) {
      this.owner.count(`REST: ${made.kind}`);
      if (got === null) continue;
      const faults = faultsOf(this.document, operation, got, isOdd);
      this.report(faults, operation.name, sent, got);
      if (got.status < 300) this.owner.succeededAt(operation.name);
      const body = bodyOf(got);
      const isOwn = sent.headers.authorization === `Bearer ${this.sender.key}`;
      const request = isObject(made.request) ? made.request : {};
      const change = { operation: operation.name, parameters: made.parameters, request, status: got.status, body };
      if (isOwn) this.applied(change);
    }
  }

  private async mcp(random: Random): Promise<void> {
    const [namespace = ''] = this.sender.namespaces;
    const connection = random.pick(CONNECTIONS);
    const [kind, target, path] = random.pick([
      ['connection', `/connect/${namespace}/${connection}/mcp`, '/connect/{namespace}/{connectionId}/mcp'],
      ['connection', `/connect/${namespace}/${connection}/mcp`, '/connect/{namespace}/{connectionId}/mcp'],
      [
        'namespace',
        `/connect/${namespace}/.mcp${random.pick(['', '?mode=search', '?separator=__'])}`,
        '/connect/{namespace}/.mcp',
      ],
      [
        'run',
        `/run/${namespace}--alpha${random.pick(['', '?key=1', `?config=${encoded(oddText(random))}`])}`,
        '/run/{slug}',
      ],
    ] as const);
    const { text, request } = rpcBody(random);
    const method = random.chance(0.93) ? 'POST' : random.pick(['GET', 'DELETE', 'PUT', 'OPTIONS']);
    const headers = { ...rpcHeaders(random), authorization: `Bearer ${this.sender.key}` };
    const sent = { method, target, headers, ...(method === 'POST' && { body: text }) };
    this.owner.count(`MCP: ${kind}`);
    const got = await this.owner.send(sent);
    if (got === null) return;
    const operation = this.document.operations.find((one) => one.name === `POST ${path}`);
    if (!operation) throw new Error(`${path} is not documented`);
    if (method !== 'POST') {
      const isRefused = got.status >= 400 && got.status < 500;
      const faults =
        got.status >= 500 ? [`status ${got.status}`] : isRefused ? errorFaults(this.document, got, 'JsonRpcError') : [];
      return this.report(faults, `${method} ${path}`, sent, got);
    }
    if (got.status < 300) this.owner.succeededAt(operation.name);
    const faults = faultsOf(this.document, operation, got, false);
    this.report([...faults, ...rpcFaults(got, request)], operation.name, sent, got);
  }

  private async uplink(random: Random): Promise<void> {
    const [namespace = ''] = this.sender.namespaces;
    const path = `/connect/${namespace}/local`;
    const call = async () => {
      for (const [name, rest] of [
        ['GET /connect/{namespace}/{connectionId}/.tools', '/.tools'],
        ['POST /connect/{namespace}/{connectionId}/.tools/{toolPath}', '/.tools/echo'],
      ] as const) {
        const method = name.split(' ')[0] ?? '';
        const headers = { authorization: `Bearer ${this.sender.key}`, 'content-type': 'application/json' };
        const sent = { method, target: `${path}${rest}`, headers, ...(method === 'POST' && { body: '{}' }) };
        const got = await this.owner.send(sent);
        const operation = this.document.operations.find((one) => one.name === name);
        if (got && operation) this.report(faultsOf(this.document, operation, got, false), name, sent, got);
      }
    };
    this.owner.count('uplink: frames', await this.owner.talk(random, this.sender.key, path, call));
    this.owner.count('uplink: tunnels');
  }

  private async wire(random: Random): Promise<void> {
    this.owner.count('wire: bytes');
    const bytes = wireBytes(random, this.sender.key, this.sender.namespaces[0] ?? '');
    const answer = await this.owner.sendBytes(bytes);
    const statuses = [...answer.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status));
    if (statuses.some((status) => status >= 500 && status !== 501 && status !== 505)) {
      this.owner.fault(`bytes answered ${statuses.join()}`, JSON.stringify(bytes.subarray(0, 500).toString('latin1')));
    }
  }

  private report(faults: string[], name: string, sent: Sent, got: Got): void {
    for (const fault of faults) {
      this.owner.fault(
        `${name}: ${fault}`,
        `${described(sent)}\n    -> ${got.status} ${got.body.subarray(0, 600).toString()}`,
      );
    }
  }
}

function sorted(counts: Map<string, number>): Record<string, number> {
  return Object.fromEntries([...counts].sort(([a], [b]) => a.localeCompare(b)));
}

/** The report as text. */
export function shownReport(report: FuzzReport): string {
  const table = (title: string, counts: Record<string, number>) => [
    title,
    ...Object.entries(counts).map(([name, count]) => `  ${name.padEnd(28)} ${String(count).padStart(7)}`),
  ];
  const { operations, memory, faults } = report;
  return [
    `${report.requests} requests in ${report.seconds} s, seed ${report.seed}`,
    ...table('Inputs', report.kinds),
    ...table('Answers', report.statuses),
    `Operations that succeeded: ${operations.succeeded} of ${operations.documented}. Never: ${operations.never.join(', ') || 'none'}`,
    `Comparisons of the state: ${report.checks}`,
    `Memory: ${memory.beforeMb} MB before, ${memory.afterMb} MB after`,
    ...faults.map((fault) => `FAULT ${fault}`),
    `${faults.length} faults`,
    '',
  ].join('\n');
}
