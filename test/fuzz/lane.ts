import fc from 'fast-check';
import { isObject, type NamedOperation } from '../support/documentation/api-document.js';
import { skillMd } from '../support/releases/skills.js';
import { zipOf } from '../support/zips.js';
import { bodyOf, errorFaults, faultsOf, rpcFaults } from './answers.js';
import { chance, drawFrom, weighted, type Draw } from './draw.js';
import { described, sendBytes, type Got, type Sent } from './exchange.js';
import { FORM_TYPE, formBytes } from '../support/documentation/raw-form.js';
import type { Run } from './fuzz.js';
import { rpcBody, rpcHeaders } from './mcp.js';
import { CONNECTIONS, filled, RestCases, type Sender } from './rest.js';
import { State, type Change } from './state.js';
import { talk } from './uplink.js';
import { encoded, oddText } from './values.js';
import { wireBytes } from './wire.js';

/** Requests of an account between two comparisons of its state. */
const CHECK_EVERY = 400;
/** The value of the secrets that a lane sets. */
export const SECRET = 'value-of-a-secret-of-the-fuzzer';

const requestKinds = weighted<'rest' | 'mcp' | 'wire' | 'uplink'>(
  [70, fc.constant('rest')],
  [22, fc.constant('mcp')],
  [5, fc.constant('wire')],
  [3, fc.constant('uplink')],
);

/** One account and its requests, one after another. */
export class Lane {
  private readonly state = new State();
  private readonly cases: RestCases;

  constructor(
    private readonly run: Run,
    private readonly seed: string,
    private readonly sender: Sender,
    stranger: { key: string; accountId: string },
  ) {
    this.cases = new RestCases(run.document, run.urls, run.keys, sender, stranger);
  }

  async work(inputs: number): Promise<void> {
    for (let i = 0; (i < inputs || this.cases.rounds < 2) && !this.run.isOver; i++) {
      const draw = drawFrom(`${this.seed}/${i}`);
      try {
        // The names that most inputs need exist most of the time.
        if (i % 60 === 0) await this.setUp(draw);
        await this[draw(requestKinds)](draw);
      } catch (error) {
        this.run.fault(`case ${this.seed}/${i} failed: ${(error as Error).stack}`);
      }
      if (i % CHECK_EVERY === CHECK_EVERY - 1) await this.check();
    }
    if (!this.run.isOver) await this.check();
  }

  private async check(): Promise<void> {
    this.run.checks++;
    const differences = await this.state.differences(this.run.url, this.sender.key, this.run.document);
    for (const difference of differences) this.run.fault(`inconsistent after ${this.seed}: ${difference}`);
  }

  /** Claims the first namespace and fills it. */
  private async setUp(draw: Draw): Promise<void> {
    const [namespace] = this.sender.namespaces;
    const qualifiedName = `${namespace}/alpha`;
    const { plain, guarded, odd, events } = this.run.upstreams;
    const at = draw(fc.nat(9));
    const archive = await zipOf({ 'SKILL.md': skillMd({ name: 'review' }) });
    const skill = formBytes([{ name: 'archive', content: archive, filename: 'skill.zip' }]);
    const external = JSON.stringify({ type: 'external', upstreamUrl: plain });
    const connection = (connectionId: string, request: object) =>
      ['PUT /connect/{namespace}/{connectionId}', { namespace, connectionId }, request] as const;
    const steps: (readonly [string, Record<string, string>, (object | Buffer)?])[] = [
      ['PUT /namespaces/{name}', { name: namespace }],
      ['PUT /servers/{qualifiedName}', { qualifiedName }, {}],
      connection('plain', { mcpUrl: plain, metadata: { at } }),
      connection('locked', { mcpUrl: guarded, metadata: { at } }),
      connection('odd', { mcpUrl: odd, metadata: { at } }),
      connection('events', { mcpUrl: events, metadata: { at } }),
      connection('local', { transport: 'uplink' }),
      connection('mock', { server: qualifiedName, mock: { enabled: true } }),
      ['PUT /skills/{namespace}/{slug}/upload', { namespace, slug: 'review' }, skill],
      ['PUT /servers/{qualifiedName}/releases', { qualifiedName }, formBytes([{ name: 'payload', content: external }])],
      ['PUT /servers/{qualifiedName}/secrets', { qualifiedName }, { name: 'KEY_1', value: SECRET }],
      ['POST /accounts/{accountId}/api-keys', { accountId: 'me' }, { name: 'more' }],
    ];
    for (const [name, parameters, body] of steps) {
      const { method, path } = this.run.operation(name);
      const type = Buffer.isBuffer(body) ? FORM_TYPE : 'application/json';
      const headers = { authorization: `Bearer ${this.sender.key}`, 'content-type': type };
      const content = Buffer.isBuffer(body) ? body : JSON.stringify(body);
      const got = await this.run.send({ method, target: filled(path, parameters), headers, body: content });
      const request = isObject(body) ? body : {};
      if (got) this.applied({ operation: name, parameters, request, status: got.status, body: bodyOf(got) });
    }
  }

  /** Takes over a change, and the id that later requests name. */
  private applied(change: Change): void {
    const { operation, status, body } = change;
    if (status < 300 && operation === 'PUT /servers/{qualifiedName}/releases')
      this.cases.ids.id.push(String(body.deploymentId));
    if (status < 300 && operation === 'POST /accounts/{accountId}/api-keys') this.cases.ids.keyId.push(String(body.id));
    this.state.apply(change);
  }

  /** Sends a request to a documented operation and judges the answer. */
  private async judged(operation: NamedOperation, sent: Sent, isOdd = false): Promise<Got | null> {
    const got = await this.run.send(sent);
    if (got === null) return null;
    if (got.status < 300) this.run.succeeded.add(operation.name);
    this.report(faultsOf(this.run.document, operation, got, isOdd), operation.name, sent, got);
    return got;
  }

  private report(faults: string[], name: string, sent: Sent, got: Got): void {
    const detail = `${described(sent)}\n    -> ${got.status} ${got.body.subarray(0, 600).toString()}`;
    for (const fault of faults) this.run.fault(`${name}: ${fault}`, detail);
  }

  private async rest(draw: Draw): Promise<void> {
    const { kind, operation, parameters, sent, request, isOdd } = await this.cases.make(draw);
    const times = operation.method !== 'GET' && draw(chance(8)) ? 2 : 1;
    const send = async () => {
      this.run.count(`REST: ${kind}`);
      const got = await this.judged(operation, sent, isOdd);
      if (got === null || sent.headers.authorization !== `Bearer ${this.sender.key}`) return;
      const fields = isObject(request) ? request : {};
      this.applied({ operation: operation.name, parameters, request: fields, status: got.status, body: bodyOf(got) });
    };
    await Promise.all(Array.from({ length: times }, send));
  }

  private async mcp(draw: Draw): Promise<void> {
    const [namespace] = this.sender.namespaces;
    const endpoint = draw(fc.constantFrom('connection', 'connection', 'namespace', 'run'));
    const connection = `/connect/${namespace}/${draw(fc.constantFrom(...CONNECTIONS))}/mcp`;
    const config = draw(fc.constantFrom('', '?key=1', `?config=${encoded(draw(oddText))}`));
    const [target, path] = {
      connection: [connection, '/connect/{namespace}/{connectionId}/mcp'],
      namespace: [
        `/connect/${namespace}/.mcp${draw(fc.constantFrom('', '?mode=search', '?separator=__'))}`,
        '/connect/{namespace}/.mcp',
      ],
      run: [`/run/${namespace}--alpha${config}`, '/run/{slug}'],
    }[endpoint] as [string, string];
    const { text, request } = draw(rpcBody);
    const method = draw(chance(93)) ? 'POST' : draw(fc.constantFrom('GET', 'DELETE', 'PUT', 'OPTIONS'));
    const headers: Record<string, string> = { authorization: `Bearer ${this.sender.key}` };
    for (const [name, value] of Object.entries(draw(rpcHeaders))) if (value !== undefined) headers[name] = value;
    this.run.count(`MCP: ${endpoint}`);
    if (method === 'POST') {
      const sent = { method, target, headers, body: text };
      const got = await this.judged(this.run.operation(`POST ${path}`), sent);
      if (got) this.report(rpcFaults(got, request), `POST ${path}`, sent, got);
      return;
    }
    const sent = { method, target, headers };
    const got = await this.run.send(sent);
    if (got === null || got.status < 400) return;
    const faults = got.status >= 500 ? [`status ${got.status}`] : errorFaults(this.run.document, got, 'JsonRpcError');
    this.report(faults, `${method} ${path}`, sent, got);
  }

  private async uplink(draw: Draw): Promise<void> {
    const parameters = { namespace: this.sender.namespaces[0], connectionId: 'local', toolPath: 'echo' };
    const headers = { authorization: `Bearer ${this.sender.key}`, 'content-type': 'application/json' };
    const call = async () => {
      for (const rest of ['/.tools', '/.tools/{toolPath}']) {
        const method = rest === '/.tools' ? 'GET' : 'POST';
        const operation = this.run.operation(`${method} /connect/{namespace}/{connectionId}${rest}`);
        const body = method === 'POST' ? { body: '{}' } : {};
        await this.judged(operation, { method, target: filled(operation.path, parameters), headers, ...body });
      }
    };
    const url = `${this.run.url}/connect/${parameters.namespace}/local`;
    this.run.count('uplink: frames', await talk(draw, url, this.sender.key, call));
    this.run.count('uplink: tunnels');
  }

  private async wire(draw: Draw): Promise<void> {
    this.run.count('wire: bytes');
    const bytes = draw(wireBytes(this.sender.key, this.sender.namespaces[0]));
    const answer = await sendBytes(this.run.url, bytes);
    const statuses = [...answer.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status));
    if (statuses.some((status) => status >= 500 && status !== 501 && status !== 505)) {
      const detail = JSON.stringify(bytes.subarray(0, 500).toString('latin1'));
      this.run.fault(`bytes answered ${statuses.join()}`, detail);
    }
  }
}
