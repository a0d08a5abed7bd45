import { readdirSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from '@jest/globals';
import { isObject, type ApiDocument, type NamedOperation, type Schema } from './api-document.js';
import { uniqueName } from '../app.js';
import { zipOf } from '../zips.js';

/** A parsed body of any form. */
type Json = ReturnType<typeof JSON.parse>;

export interface AskOptions {
  /** The API key; the walk's own unless given, null for none. */
  bearer?: string | null;
  query?: string;
  headers?: Record<string, string>;
}

/** A file `test/contract/openapi/<module>.walk.ts`. */
export interface WalkFile {
  /** Asks for every documented answer of the module's operations, successes and failures. */
  default: (walk: ApiWalk) => Promise<void>;
  /** Routes of the module that are served and are not in the document. */
  undocumented?: string[];
  /** Bodies of routes that take no empty one, for a walk through all routes. */
  bodies?: Record<string, object>;
}

/** Every walk, by the name of its module. */
export async function loadWalks(): Promise<[module: string, file: WalkFile][]> {
  const folder = path.join(import.meta.dirname, '../../contract/openapi');
  const names = readdirSync(folder).filter((name) => name.endsWith('.walk.ts'));
  const walks: [string, WalkFile][] = [];
  // One after another: Jest's loader fails when files that are loaded at once import the same one.
  for (const name of names) {
    const file = (await import(pathToFileURL(path.join(folder, name)).href)) as WalkFile;
    walks.push([name.replace('.walk.ts', ''), file]);
  }
  return walks;
}

/** The bearer of the metrics page, which the service under test has turned on. */
export const METRICS_TOKEN = 'metrics-token-of-this-test';

/** A body that is larger than an ordinary route accepts. */
export const tooLarge = JSON.stringify({ displayName: 'x', description: 'x'.repeat(2 ** 20) });

/** A form: texts as fields, bytes as files. */
export function formOf(parts: Record<string, string | Buffer>): FormData {
  const form = new FormData();
  for (const [name, content] of Object.entries(parts)) {
    if (typeof content === 'string') form.set(name, content);
    else form.set(name, new Blob([new Uint8Array(content)]), `${name}.bin`);
  }
  return form;
}

/** Sends requests to a running service and holds each answer against the document. */
export class ApiWalk {
  /** The successes and failures that each operation answered. */
  private readonly seen = new Map<string, Set<number>>();
  private stranger: { bearer: string } | null = null;
  private readonly parts: { close(): Promise<unknown> }[] = [];

  constructor(
    readonly url: string,
    readonly key: string,
    readonly document: ApiDocument,
  ) {}

  /**
   * Sends a request as the operator and checks that status and body are those of the document. Of a request that succeeds,
   * the body too is as documented, and fails without a required member and with one more if the document refuses others.
   *
   * @returns the parsed body; its text unless it is JSON; undefined without a body
   */
  async ask(
    name: string,
    status: number,
    parameters: Record<string, string> = {},
    body?: unknown,
    { bearer = this.key, query = '', headers = {} }: AskOptions = {},
  ): Promise<Json> {
    const operation = this.document.operations.find((one) => one.name === name);
    if (!operation) throw new Error(`${name} is not documented.`);
    const path = operation.path.replace(/\{(\w+)\}/g, (_, param: string) =>
      encodeURIComponent(parameters[param] ?? ''),
    );
    const response = await fetch(`${this.url}${path}${query}`, {
      method: operation.method,
      headers: {
        ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
        ...(body === undefined || body instanceof FormData ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined || typeof body === 'string' || body instanceof FormData ? body : JSON.stringify(body),
    });
    const text = await response.text();
    expect({ name, status: response.status, text }).toMatchObject({ status });
    const documented = operation.operation.responses[status];
    expect({ name, status, isDocumented: documented !== undefined }).toMatchObject({ isDocumented: true });
    this.record(name, status);
    if (status < 300 && isObject(body) && !(body instanceof FormData)) {
      await this.requireHonestBody(operation, parameters, body, { bearer, query, headers });
    }
    if (documented?.content === undefined) {
      expect(text).toBe('');
      return undefined;
    }
    const type = (response.headers.get('content-type') ?? '').split(';')[0];
    const schema = documented.content[type]?.schema;
    expect({ name, status, type, isDocumented: schema !== undefined }).toMatchObject({ isDocumented: true });
    if (type !== 'application/json') return text;
    const parsed: unknown = JSON.parse(text);
    const departures = this.document.departures(schema as Schema, parsed);
    expect({ name, status, departures }).toMatchObject({ departures: [] });
    return parsed;
  }

  private async requireHonestBody(
    { name, operation }: NamedOperation,
    parameters: Record<string, string>,
    body: Record<string, unknown>,
    options: AskOptions,
  ): Promise<void> {
    const schema = operation.requestBody?.content['application/json']?.schema ?? {};
    const departures = this.document.departures(schema, body);
    expect({ name, body, departures }).toMatchObject({ departures: [] });
    const documented = schema.$ref === undefined ? schema : this.document.resolve(schema.$ref).schema;
    for (const member of documented.required ?? []) {
      await this.ask(name, 400, parameters, { ...body, [member]: undefined }, options);
    }
    if (documented.additionalProperties === false) {
      await this.ask(name, 400, parameters, { ...body, undocumentedMember: 1 }, options);
    }
  }

  /** Counts an answer that `ask` could not read, such as an endless stream. */
  record(name: string, status: number): void {
    this.seen.set(name, (this.seen.get(name) ?? new Set()).add(status));
  }

  /** Returns a part that a walk has started, and closes it after all walks, also after a failed one. */
  own<T extends { close(): Promise<unknown> }>(part: T): T {
    this.parts.push(part);
    return part;
  }

  async close(): Promise<void> {
    await Promise.all(this.parts.map((part) => part.close()));
  }

  /** A new namespace of the operator's. */
  async namespace(): Promise<string> {
    const name = uniqueName('ns');
    await this.ask('PUT /namespaces/{name}', 201, { name });
    return name;
  }

  /** The key of an account that owns nothing. */
  async other(): Promise<{ bearer: string }> {
    this.stranger ??= await this.makeAccount();
    return this.stranger;
  }

  private async makeAccount(): Promise<{ bearer: string }> {
    const account = await this.ask('POST /accounts', 201, {}, { name: uniqueName('account'), kind: 'organization' });
    const made = await this.ask('POST /accounts/{accountId}/api-keys', 201, { accountId: account.id }, { name: 'x' });
    return { bearer: made.key as string };
  }

  /** The operations that never answered with success. */
  unproven(): NamedOperation[] {
    return this.document.operations.filter(
      ({ name }) => ![...(this.seen.get(name) ?? [])].some((status) => status < 300),
    );
  }
}

/** The payload of an upload, and the smallest bundle a release takes. */
export async function smallBundle(): Promise<{ payload: string; bundle: Buffer }> {
  const manifest = { manifest_version: '0.3', name: 'weather', version: '1.0.0', description: 'Forecasts.' };
  const mcpConfig = { command: 'node', args: ['${__dirname}/index.js'] };
  const server = { type: 'node', entry_point: 'index.js', mcp_config: mcpConfig };
  const contents = JSON.stringify({ ...manifest, author: { name: 'Acme' }, server });
  const payload = JSON.stringify({ type: 'stdio', runtime: 'node' });
  return { payload, bundle: await zipOf({ 'manifest.json': contents, 'index.js': '' }) };
}
