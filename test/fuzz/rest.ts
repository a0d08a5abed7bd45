/**
 * Requests to the documented operations. Their parameters name what exists most of the time, their bodies follow the
 * schemas of the API document or depart from them (`values.ts`), and uploads come from `files.ts`.
 */
import fc from 'fast-check';
import type { FormPart } from '../support/documentation/raw-form.js';
import { isObject, needsKey, type ApiDocument, type NamedOperation } from '../support/documentation/api-document.js';
import { skillMd } from '../support/releases/skills.js';
import { zipOf } from '../support/zips.js';
import { bytes, chance, weighted, type Draw } from './draw.js';
import type { Sent } from './exchange.js';
import { imageFile, manifestText, oddForm, skillText, zipFile } from './files.js';
import { anyValue, brokenText, encoded, oddText, replaced, Values, type Kind, type Urls } from './values.js';

/** An account of the fuzzer, which sends one request after another. */
export interface Sender {
  key: string;
  accountId: string;
  /** The names that its requests use, so that they meet. */
  namespaces: [string, string];
}

/** One request to a documented operation. */
interface RestCase {
  /** Counted in the report. */
  kind: string;
  operation: NamedOperation;
  parameters: Record<string, string>;
  sent: Sent;
  /** The body as JSON, if that is what it is. */
  request: unknown;
  /** The path holds a part that no client means. */
  isOdd: boolean;
}

/** The first exists most of the time, so that most requests reach something. */
const SERVERS = ['alpha', 'alpha', 'alpha', 'alpha', 'alpha', 'alpha', 'beta', ''];
export const CONNECTIONS = ['plain', 'plain', 'plain', 'plain', 'locked', 'dead', 'local', 'mock', 'odd', 'events'];

const contentTypes = fc.constantFrom(
  ...['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'multipart/form-data; boundary=x'],
  ...['application/json; charset=utf-16', 'application/json; charset=none', 'application/xml', 'json', ''],
  ...['application/x-protobuf', 'application/json, text/plain'],
);
const kinds = weighted<Kind | 'content type'>(
  [40, fc.constant('valid')],
  [15, fc.constantFrom('nearly valid', 'wrong types')],
  [15, fc.constantFrom('nearly valid', 'wrong types')],
  [14, fc.constant('odd Unicode')],
  [3, fc.constant('huge')],
  [5, fc.constant('content type')],
);

/** Makes requests to the documented operations. */
export class RestCases {
  private readonly values: Values;
  /** Ids that the service gave, by the name of the parameter. */
  readonly ids = { id: ['latest'], keyId: ['none'] };
  /** Rounds of all operations that began. Requests of the first one are valid and name what exists. */
  rounds = 0;
  private waiting: NamedOperation[] = [];

  constructor(
    private readonly document: ApiDocument,
    private readonly urls: Urls,
    private readonly keys: { operator: string; metrics: string },
    private readonly sender: Sender,
    private readonly stranger: { key: string; accountId: string },
  ) {
    this.values = new Values(document, urls);
  }

  async make(draw: Draw): Promise<RestCase> {
    const { operations } = this.document;
    const forms = operations.filter(({ operation }) => operation.requestBody?.content['multipart/form-data']);
    const operation = draw(chance(20)) ? draw(fc.constantFrom(...forms)) : this.next(draw);
    const isSound = this.rounds === 1;
    const drawn = isSound ? 'valid' : draw(kinds);
    const kind = drawn === 'content type' ? 'valid' : drawn;
    const parameters = this.parameters(draw, operation, isSound);
    const names = Object.keys(parameters);
    const isOdd = drawn !== 'valid' && draw(chance(15));
    if (isOdd && names.length > 0) parameters[draw(fc.constantFrom(...names))] = draw(oddText);
    const target = this.target(draw, operation, parameters, kind);
    const key = this.key(draw, operation, isSound);
    const body = await this.body(draw, operation, kind);
    const headers: Record<string, string> = key === null ? {} : { authorization: `Bearer ${key}` };
    if (body.type !== undefined) headers['content-type'] = body.type;
    if (drawn === 'content type') {
      headers['content-type'] = draw(contentTypes);
      if (draw(chance(30))) headers['content-encoding'] = draw(fc.constantFrom('gzip', 'br', 'none'));
    }
    for (const { name, in: location } of operation.operation.parameters ?? []) {
      if (location === 'header' && draw(fc.boolean()))
        headers[name] = draw(fc.constantFrom('"a"', '*', '7', '-1', '%00', 'W/"x", "y"'));
    }
    const content = body.content === undefined ? {} : { body: body.content };
    const sent = { method: operation.method, target, headers, ...content };
    return { kind: body.kind ?? drawn, operation, parameters, sent, request: body.request, isOdd };
  }

  /** The operations in random order, each once before one comes again; in the first round deletions come last. */
  private next(draw: Draw): NamedOperation {
    if (this.waiting.length === 0) {
      this.rounds++;
      const { operations } = this.document;
      const shuffled = draw(fc.shuffledSubarray(operations, { minLength: operations.length }));
      const isLast = ({ method }: NamedOperation) => Number(this.rounds === 1 && method === 'DELETE');
      this.waiting = shuffled.sort((a, b) => isLast(a) - isLast(b));
    }
    return this.waiting.shift() as NamedOperation;
  }

  private parameters(draw: Draw, { operation, path }: NamedOperation, isSound: boolean): Record<string, string> {
    const pick = (...items: string[]): string => (isSound ? (items[0] ?? '') : draw(fc.constantFrom(...items)));
    const namespace = this.sender.namespaces[isSound || draw(chance(90)) ? 0 : 1];
    const server = pick(...SERVERS);
    const at = draw(fc.constantFrom('', '@'));
    // A name that is mostly free, so that some requests create.
    const connection = draw(chance(15)) ? draw(fc.nat(9).map((number) => `c${number}`)) : pick(...CONNECTIONS);
    const isTrigger = path.includes('.triggers') && draw(chance(70));
    const values: Record<string, string> = {
      name: namespace,
      namespace,
      server: server || 'alpha',
      qualifiedName: server === '' ? `${at}${namespace}` : `${namespace}/${server}`,
      connectionId: isSound ? (path.includes('.triggers') ? 'events' : 'plain') : isTrigger ? 'events' : connection,
      slug: path.startsWith('/run/') ? `${namespace}--${server}` : pick('review', 'review', 'other'),
      toolPath: pick('echo', 'repo', 'repo.search', 'fail', 'rpc_error', 'asks', 'none', 'big'),
      toolName: pick('echo', 'none'),
      triggerName: pick('page.updated', 'none'),
      path: pick('SKILL.md', 'a/b.txt'),
      // Small limits of its own would end what an account can do.
      accountId: path.endsWith('/limits') ? this.stranger.accountId : pick('me', this.sender.accountId),
      secretName: 'KEY_1',
      domainId: 'managed',
      id: pick(...this.ids.id.slice(-5).reverse()),
      keyId: pick(...this.ids.keyId.slice(-5).reverse()),
    };
    const names = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path').map(({ name }) => name);
    return Object.fromEntries(names.map((name) => [name, values[name] ?? 'x']));
  }

  private target(
    draw: Draw,
    { path, operation }: NamedOperation,
    parameters: Record<string, string>,
    kind: Kind,
  ): string {
    const query: string[] = [];
    for (const { name, in: location, schema = {} } of operation.parameters ?? []) {
      if (location !== 'query' || draw(chance(60))) continue;
      const value = draw(this.values.of(schema, kind === 'huge' ? 'valid' : kind, name));
      const pairs = isObject(value)
        ? Object.entries(value).map(([key, part]) => [`${name}.${key}`, part])
        : [[name, value]];
      for (const [key, part] of pairs) query.push(`${encoded(String(key))}=${encoded(asText(part))}`);
    }
    if (kind !== 'valid' && query.length > 0 && draw(chance(20))) query.push(draw(fc.constantFrom(...query)));
    if (kind === 'wrong types' && draw(chance(15)))
      query.push(`${encoded(draw(oddText))}=${draw(fc.constantFrom('', '1', '%ff', '%'))}`);
    return `${filled(path, parameters)}${query.length > 0 ? `?${query.join('&')}` : ''}`;
  }

  private key(draw: Draw, { operation, path, method }: NamedOperation, isSound: boolean): string | null {
    if (path === '/metrics' && draw(fc.boolean())) return this.keys.metrics;
    if (!needsKey(operation)) return draw(fc.boolean()) ? null : this.sender.key;
    // Operations of the operator, never on their own account.
    const isOperators = path === '/accounts' || path.endsWith('/verified') || path.endsWith('/limits');
    if (isOperators && (isSound || draw(chance(70)))) return this.keys.operator;
    if (!isSound && draw(chance(4))) return draw(fc.constantFrom(null, 'slipway_wrong', '', this.stranger.key));
    return !isSound && method === 'GET' && draw(chance(3)) ? this.stranger.key : this.sender.key;
  }

  private async body(
    draw: Draw,
    { name, operation, method }: NamedOperation,
    kind: Kind,
  ): Promise<{ content?: Buffer | string; type?: string; request?: unknown; kind?: string }> {
    const media = operation.requestBody?.content;
    if (media === undefined) {
      // A body that nobody asked for is ignored.
      return method !== 'GET' && draw(chance(5)) ? { content: '{"a":1}', type: 'application/json' } : {};
    }
    if ('multipart/form-data' in media) {
      const { parts, kind: upload } = await this.parts(draw, name);
      const { body, type, isWhole } = draw(oddForm(parts));
      return { content: body, type, kind: isWhole ? upload : 'multipart' };
    }
    const [type, { schema = {}, example, examples = {} }] = draw(fc.constantFrom(...Object.entries(media)));
    // An empty body is a valid export.
    if (type === 'application/x-protobuf')
      return { content: draw(fc.oneof(fc.constant(Buffer.alloc(0)), bytes(200))), type };
    const samples = [example, ...Object.values(examples).map(({ value }) => value)].filter(
      (sample) => sample !== undefined,
    );
    let request =
      kind !== 'valid' && samples.length > 0 && draw(chance(30))
        ? draw(fc.constantFrom(...samples).chain((sample) => replaced(sample, anyValue)))
        : draw(this.values.of(schema, kind));
    const isSoundBody = kind === 'valid' || draw(chance(30));
    if (['PUT /connect/{namespace}/{connectionId}', 'POST /connect/{namespace}'].includes(name)) {
      if (isObject(request) && isSoundBody) request = this.connection(draw, request);
    } else if (name === 'POST /servers/{qualifiedName}/transfer' && kind === 'valid') {
      const targetNamespace = draw(fc.constantFrom(...this.sender.namespaces));
      request = { targetOrganizationId: 'me', targetNamespace, targetSlug: draw(fc.constantFrom(...SERVERS)) };
    } else if (name.endsWith('.triggers/{triggerName}') && kind === 'valid') {
      const url = 'https://127.0.0.1/hook';
      const secret = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
      request = { delivery: method === 'POST' ? { url, secret } : { url } };
    }
    const text = JSON.stringify(request);
    if (kind === 'nearly valid' && draw(chance(15))) return { content: draw(brokenText(text)), type };
    return { content: text, type, request };
  }

  /** A request to create a connection that has one target. */
  private connection(draw: Draw, request: Record<string, unknown>): unknown {
    const targets = ['mcpUrl', 'server', 'source', 'transport', 'mock'];
    const rest = Object.fromEntries(Object.entries(request).filter(([name]) => !targets.includes(name)));
    const server = `${this.sender.namespaces[0]}/alpha`;
    const mcpUrl = draw(this.urls('mcpUrl') ?? fc.string());
    const target = fc.constantFrom(
      { mcpUrl },
      { mcpUrl },
      { transport: 'uplink' },
      { server, mock: { enabled: true } },
      { server },
    );
    return { ...rest, ...draw<object>(target) };
  }

  /** The parts of the form that an operation takes. */
  private async parts(draw: Draw, name: string): Promise<{ parts: [FormPart, ...FormPart[]]; kind: string }> {
    if (name.endsWith('/icon')) {
      const file = { name: 'file', content: draw(imageFile), filename: 'icon.svg', type: 'image/svg+xml' };
      return { parts: [file], kind: 'SVG and images' };
    }
    if (name.endsWith('/upload')) {
      const isText = draw(chance(60));
      const path = draw(fc.constantFrom('SKILL.md', 'SKILL.md', 'review/SKILL.md', 'readme.md'));
      const files = { [path]: isText ? draw(skillText) : skillMd() };
      const isOdd = draw(chance(isText ? 20 : 90));
      const content = isOdd ? await zipFile(draw, files) : await zipOf(files);
      return { parts: [{ name: 'archive', content, filename: 'skill.zip' }], kind: isOdd ? 'zip' : 'SKILL.md' };
    }
    const kind = draw(fc.constantFrom('bundle', 'hosted', 'external', 'external'));
    if (kind === 'bundle') {
      const content = await zipFile(draw, { 'manifest.json': draw(manifestText), 'index.js': '' });
      const payload = { name: 'payload', content: JSON.stringify({ type: 'stdio', runtime: 'node' }) };
      return { parts: [payload, { name: 'bundle', content, filename: 'b.mcpb' }], kind: 'manifest' };
    }
    const configSchema = {
      type: 'object',
      properties: { key: { type: 'string', 'x-from': { header: 'k' } } },
      required: [],
    };
    const upstreamUrl = draw(this.urls('upstreamUrl') ?? oddText);
    const sound = kind === 'hosted' ? { type: kind, stateful: false } : { type: kind, upstreamUrl };
    const more = { configSchema, serverCard: {}, ...(kind === 'external' && { scanCredentials: {} }) };
    const payload = weighted<unknown>([2, fc.constant(sound)], [2, replaced({ ...sound, ...more }, anyValue)]).map(
      asText,
    );
    const content = draw(weighted([9, payload], [1, payload.chain(brokenText)]));
    if (kind === 'external') return { parts: [{ name: 'payload', content }], kind: 'payload' };
    const codes = ['export default {}', 'throw 1', '', 'export default function () { return 1 }'];
    const code = draw(weighted([4, fc.constantFrom(...codes)], [1, oddText]));
    return {
      parts: [
        { name: 'payload', content },
        { name: 'module', content: code, filename: 'm.js' },
      ],
      kind: 'payload',
    };
  }
}

/** The path of an operation with its parameters. */
export function filled(path: string, parameters: Record<string, string>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encoded(parameters[name] ?? ''));
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : String(JSON.stringify(value));
}
