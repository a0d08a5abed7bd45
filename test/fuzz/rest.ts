import { isObject, needsKey, type ApiDocument, type NamedOperation } from '../support/documentation/api-document.js';
import { imageFile, manifestText, oddForm, skillText, zipFile, type Part } from './files.js';
import { zipOf } from '../support/zips.js';
import type { Sent } from './exchange.js';
import type { Random } from './random.js';
import { anyValue, oddText, Values, type Kind, type Places } from './values.js';

/** An account of the fuzzer, which sends one request after another. */
export interface Sender {
  key: string;
  accountId: string;
  /** The names that its requests use, so that they meet. */
  namespaces: string[];
}

/** One request to a documented operation. */
export interface RestCase {
  /** Counted in the report. */
  kind: string;
  operation: NamedOperation;
  parameters: Record<string, string>;
  sent: Sent;
  /** The body as JSON, if that is what it is. */
  request: unknown;
  /** The path holds a part that no client means. */
  isOdd: boolean;
  /** Sent with another key than the sender's, or none. */
  isForeign: boolean;
}

/** The first exists most of the time, so that most requests reach something. */
const SERVERS = ['alpha', 'alpha', 'alpha', 'alpha', 'alpha', 'alpha', 'beta', ''];
export const CONNECTIONS = ['plain', 'plain', 'plain', 'plain', 'locked', 'dead', 'local', 'mock', 'odd', 'events'];
const SKILLS = ['review', 'review', 'other'];

const CONTENT_TYPES = [
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
  'multipart/form-data; boundary=x',
  'application/json; charset=utf-16',
  'application/json; charset=none',
  'application/xml',
  'application/x-protobuf',
  'json',
  '',
  'application/json, text/plain',
];

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
    private readonly places: Places,
    private readonly keys: { operator: string; metrics: string },
    private readonly sender: Sender,
    private readonly stranger: Omit<Sender, 'namespaces'>,
  ) {
    this.values = new Values(document, places);
  }

  async make(random: Random): Promise<RestCase> {
    const { operations } = this.document;
    const forms = operations.filter(({ operation }) => operation.requestBody?.content['multipart/form-data']);
    const operation = random.chance(0.2) ? random.pick(forms) : this.next(random, operations);
    const isSound = this.rounds === 1;
    const drawn = random.weighted({
      valid: 40,
      'nearly valid': 15,
      'wrong types': 15,
      'odd Unicode': 14,
      huge: 3,
      'content type': 5,
    });
    const kind = isSound ? 'valid' : drawn;
    const isOdd = kind !== 'valid' && random.chance(0.15);
    const parameters = this.parameters(random, operation, isSound);
    if (isOdd) {
      const names = Object.keys(parameters);
      if (names.length > 0) parameters[random.pick(names)] = oddText(random);
    }
    const target = this.target(random, operation, parameters, kind === 'content type' ? 'valid' : kind);
    const { key, isForeign } = this.key(random, operation, isSound);
    const headers: Record<string, string> = key === null ? {} : { authorization: `Bearer ${key}` };
    const body = await this.body(random, operation, kind === 'content type' ? 'valid' : kind);
    if (kind === 'content type') body.type = random.pick(CONTENT_TYPES);
    if (body.type !== undefined) headers['content-type'] = body.type;
    if (kind === 'content type' && random.chance(0.3))
      headers['content-encoding'] = random.pick(['gzip', 'br', 'none']);
    for (const { name, in: place } of operation.operation.parameters ?? []) {
      if (place === 'header' && random.chance(0.5))
        headers[name] = random.pick(['"a"', '*', '7', '-1', '%00', 'W/"x", "y"']);
    }
    const sent = {
      method: operation.method,
      target,
      headers,
      ...(body.content !== undefined && { body: body.content }),
    };
    return { kind: body.kind ?? kind, operation, parameters, sent, request: body.request, isOdd, isForeign };
  }

  /** The operations in random order, each once before one comes again; in the first round deletions come last. */
  private next(random: Random, operations: NamedOperation[]): NamedOperation {
    if (this.waiting.length === 0) {
      this.rounds++;
      this.waiting = [...operations];
    }
    const isLast = this.rounds === 1 && this.waiting.every(({ method }) => method === 'DELETE');
    const able = this.waiting.filter(({ method }) => this.rounds > 1 || isLast || method !== 'DELETE');
    const operation = random.pick(able);
    this.waiting.splice(this.waiting.indexOf(operation), 1);
    return operation;
  }

  private parameters(random: Random, { operation, path }: NamedOperation, isSound: boolean): Record<string, string> {
    const pick = (items: readonly string[]) => (isSound ? items[0] : random.pick(items));
    const namespace = this.sender.namespaces[isSound || random.chance(0.9) ? 0 : 1];
    const server = pick(SERVERS);
    const own: Record<string, () => string> = {
      name: () => namespace ?? '',
      namespace: () => namespace ?? '',
      server: () => server || 'alpha',
      qualifiedName: () => (server === '' ? `${random.pick(['', '@'])}${namespace}` : `${namespace}/${server}`),
      connectionId: () => {
        if (path.includes('.triggers') && (isSound || random.chance(0.7))) return 'events';
        // A name that is mostly free, so that some requests create.
        return !isSound && random.chance(0.15) ? `c${random.int(0, 9)}` : pick(CONNECTIONS);
      },
      slug: () => (path.startsWith('/run/') ? `${namespace}--${server}` : pick(SKILLS)),
      toolPath: () => pick(['echo', 'repo', 'repo.search', 'fail', 'rpc_error', 'asks', 'none', 'big']),
      toolName: () => pick(['echo', 'none']),
      triggerName: () => pick(['page.updated', 'none']),
      path: () => pick(['SKILL.md', 'a/b.txt']),
      accountId: () =>
        // Small limits of its own would end what an account can do.
        path.endsWith('/limits') ? this.stranger.accountId : pick(['me', this.sender.accountId]),
      secretName: () => 'KEY_1',
      domainId: () => 'managed',
      id: () => pick(this.ids.id.slice(-5).reverse()),
      keyId: () => pick(this.ids.keyId.slice(-5).reverse()),
    };
    const names = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path').map(({ name }) => name);
    return Object.fromEntries(names.map((name) => [name, own[name]?.() ?? 'x']));
  }

  private target(
    random: Random,
    { path, operation }: NamedOperation,
    parameters: Record<string, string>,
    kind: Kind,
  ): string {
    const place = path.replace(/\{(\w+)\}/g, (_, name: string) => encoded(parameters[name] ?? ''));
    const query: string[] = [];
    for (const parameter of operation.parameters ?? []) {
      if (parameter.in !== 'query' || random.chance(0.6)) continue;
      const made = this.values.make(random, parameter.schema ?? {}, kind === 'huge' ? 'valid' : kind, parameter.name);
      if (isObject(made)) {
        for (const [name, value] of Object.entries(made))
          query.push(`${encoded(`${parameter.name}.${name}`)}=${encoded(asText(value))}`);
      } else query.push(`${parameter.name}=${encoded(asText(made))}`);
    }
    if (kind !== 'valid' && query.length > 0 && random.chance(0.2)) query.push(random.pick(query));
    if (kind === 'wrong types' && random.chance(0.15))
      query.push(`${encoded(oddText(random))}=${random.pick(['', '1', '%ff', '%'])}`);
    return query.length > 0 ? `${place}?${query.join('&')}` : place;
  }

  private key(
    random: Random,
    { operation, path, method }: NamedOperation,
    isSound: boolean,
  ): { key: string | null; isForeign: boolean } {
    if (path === '/metrics' && random.chance(0.5)) return { key: this.keys.metrics, isForeign: true };
    if (!needsKey(operation)) return { key: random.chance(0.5) ? null : this.sender.key, isForeign: false };
    // Operations of the operator, never on their own account.
    if (path === '/accounts' || path.endsWith('/verified') || path.endsWith('/limits')) {
      if (isSound || random.chance(0.7)) return { key: this.keys.operator, isForeign: true };
    }
    if (!isSound && random.chance(0.04))
      return { key: random.pick([null, 'slipway_wrong', '', this.stranger.key]), isForeign: true };
    if (!isSound && method === 'GET' && random.chance(0.03)) return { key: this.stranger.key, isForeign: true };
    return { key: this.sender.key, isForeign: false };
  }

  private async body(
    random: Random,
    { name, operation, method }: NamedOperation,
    kind: Kind,
  ): Promise<{ content?: Buffer | string; type?: string; request?: unknown; kind?: string }> {
    const media = operation.requestBody?.content;
    if (media === undefined) {
      // A body that nobody asked for is ignored.
      return random.chance(0.05) && method !== 'GET' ? { content: '{"a":1}', type: 'application/json' } : {};
    }
    if ('multipart/form-data' in media) return this.form(random, name);
    const [type, { schema = {}, example, examples = {} }] = random.pick(Object.entries(media));
    const given = [example, ...Object.values(examples).map(({ value }) => value)].filter(
      (value) => value !== undefined,
    );
    let request =
      given.length > 0 && random.chance(0.3) && kind !== 'valid'
        ? replaced(random, random.pick(given))
        : this.values.make(random, schema, kind);
    if (name.startsWith('PUT /connect/') || name === 'POST /connect/{namespace}') {
      request = this.connection(random, request, kind);
    }
    if (name === 'POST /servers/{qualifiedName}/transfer' && kind === 'valid') {
      request = {
        targetOrganizationId: 'me',
        targetNamespace: random.pick(this.sender.namespaces),
        targetSlug: random.pick(SERVERS),
      };
    }
    if (name.endsWith('.triggers/{triggerName}') && kind === 'valid') {
      const delivery = { url: 'https://127.0.0.1/hook', secret: `whsec_${Buffer.alloc(24, 1).toString('base64')}` };
      request = { delivery: method === 'POST' ? delivery : { url: delivery.url } };
    }
    if (type === 'application/x-protobuf') return { content: random.bytes(random.int(0, 200)), type, request };
    const text = JSON.stringify(request) ?? '';
    const content = kind === 'nearly valid' && random.chance(0.15) ? brokenText(random, text) : text;
    return { content, type, request: content === text ? request : undefined };
  }

  private connection(random: Random, made: unknown, kind: Kind): unknown {
    if (!isObject(made) || (kind !== 'valid' && random.chance(0.7))) return made;
    const place = { mcpUrl: this.places(random, 'mcpUrl') };
    const server = { server: `${this.sender.namespaces[0]}/alpha` };
    const target = random.pick<object>([
      place,
      place,
      { transport: 'uplink' },
      { ...server, mock: { enabled: true } },
      server,
    ]);
    const rest = { ...made };
    for (const name of ['mcpUrl', 'server', 'source', 'transport', 'mock']) delete rest[name];
    return { ...rest, ...target };
  }

  private async form(random: Random, name: string): Promise<{ content: Buffer; type: string; kind: string }> {
    const { parts, kind } = await this.parts(random, name);
    const { body, type, isWhole } = oddForm(random, parts);
    return { content: body, type, kind: isWhole ? kind : 'multipart' };
  }

  private async parts(random: Random, name: string): Promise<{ parts: Part[]; kind: string }> {
    if (name.endsWith('/icon')) {
      return {
        parts: [{ name: 'file', content: imageFile(random), filename: 'icon.svg', type: 'image/svg+xml' }],
        kind: 'SVG and images',
      };
    }
    if (name.endsWith('/upload')) {
      const isText = random.chance(0.6);
      const text = isText ? skillText(random) : '---\nname: review\ndescription: Reviews.\n---\n\n# How\n';
      const files = { [random.pick(['SKILL.md', 'SKILL.md', 'review/SKILL.md', 'readme.md'])]: text };
      const zip = random.chance(isText ? 0.2 : 0.9);
      const content = zip ? await zipFile(random, files) : await zipOf(files);
      return { parts: [{ name: 'archive', content, filename: 'skill.zip' }], kind: zip ? 'zip' : 'SKILL.md' };
    }
    switch (random.int(0, 3)) {
      case 0: {
        const bundle = await zipFile(random, { 'manifest.json': manifestText(random), 'index.js': '' });
        const payload = JSON.stringify({ type: 'stdio', runtime: 'node' });
        return {
          parts: [
            { name: 'payload', content: payload },
            { name: 'bundle', content: bundle, filename: 'b.mcpb' },
          ],
          kind: 'manifest',
        };
      }
      case 1: {
        const payload = {
          type: 'hosted',
          [random.pick(['x', 'configSchema', 'serverCard', 'stateful'])]: anyValue(random),
        };
        const code = random.pick([
          'export default {}',
          'throw 1',
          oddText(random),
          '',
          'export default function () { return 1 }',
        ]);
        return {
          parts: [
            { name: 'payload', content: JSON.stringify(payload) },
            { name: 'module', content: code, filename: 'm.js' },
          ],
          kind: 'payload',
        };
      }
      default: {
        const payload: Record<string, unknown> = { type: 'external', upstreamUrl: this.places(random, 'upstreamUrl') };
        const configSchema = {
          type: 'object',
          properties: { [oddText(random)]: anyValue(random), key: { type: 'string', 'x-from': { header: 'k' } } },
          required: [],
        };
        if (random.chance(0.5))
          payload[random.pick(['configSchema', 'serverCard', 'scanCredentials', 'upstreamUrl', 'type'])] =
            random.chance(0.5) ? configSchema : anyValue(random);
        const text = JSON.stringify(payload);
        return {
          parts: [{ name: 'payload', content: random.chance(0.9) ? text : brokenText(random, text) }],
          kind: 'payload',
        };
      }
    }
  }
}

/** Cuts a text or changes one character of it. */
function brokenText(random: Random, text: string): string {
  const at = random.int(0, text.length);
  return text.slice(0, at) + (random.chance(0.5) ? oddText(random) + text.slice(at + 1) : '');
}

/** A copy of a value with one of its leaves replaced. */
function replaced(random: Random, value: unknown): unknown {
  if (Array.isArray(value) && value.length > 0 && random.chance(0.9)) {
    const at = random.int(0, value.length - 1);
    return value.map((item: unknown, i) => (i === at ? replaced(random, item) : item));
  }
  if (isObject(value) && Object.keys(value).length > 0 && random.chance(0.9)) {
    const name = random.pick(Object.keys(value));
    return { ...value, [name]: replaced(random, value[name]) };
  }
  return anyValue(random);
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

/** Percent-encoded; what is not text (a lone surrogate) as the replacement character. */
export function encoded(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString());
}
