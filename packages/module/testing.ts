/**
 * A running Slipway for the tests of a module: a built Slipway in a process of its own, with a database of its own and the
 * module loaded. `SLIPWAY_HOME` names its folder, a checkout or `/app` of the image. Works with any test runner.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';

const WAIT_MS_MAX = 60_000;
const START_MS_MAX = 180_000;
const serverInfo = { name: 'test-upstream', version: '1.0.0' };
const secret = (encoding: BufferEncoding): string => randomBytes(32).toString(encoding);

export interface TestServiceOptions {
  /** Folder of the module's package, built. Default: the current folder. */
  module?: string;
  /** Settings of the service in addition to its address, database and keys. */
  settings?: Record<string, string>;
}

export interface TestAccount {
  id: string;
  name: string;
  /** An API key with all rights of the account. */
  key: string;
}

export interface TestResponse<Body = Record<string, unknown>> {
  status: number;
  headers: Headers;
  text: string;
  /** The parsed JSON; undefined for anything else. */
  body: Body;
}

export interface TestTool {
  description?: string;
  inputSchema?: object;
  /** Returns the text, or the whole result, of a call. */
  call(args: Record<string, unknown>): string | object | Promise<string | object>;
}

export interface TestUpstream {
  url: string;
  /** The tool calls that arrived, in order. */
  calls: { name: string; arguments: Record<string, unknown> }[];
}

/** Repeats a function until it neither throws nor returns a falsy value, and returns its result. */
export async function eventually<T>(fn: () => T | Promise<T>, timeoutMs: number = WAIT_MS_MAX): Promise<T> {
  for (const deadline = Date.now() + timeoutMs; ; await wait(50)) {
    const isLast = Date.now() > deadline;
    try {
      const result = await fn();
      if (result) return result;
      if (isLast) throw new Error(`Not within ${timeoutMs} ms: the last result was ${String(result)}.`);
    } catch (error) {
      if (isLast) throw error;
    }
  }
}

/** Starts a service with the module. */
export async function startSlipway(options: TestServiceOptions = {}): Promise<TestService> {
  const service = new TestService();
  return service.start(options).catch(async (error: unknown) => {
    await service.stop();
    throw error;
  });
}

export class TestService {
  url: string = '';
  /** Everything that the service has written, to both outputs. */
  output: string = '';
  readonly operator: TestAccount = { id: 'me', name: 'operator', key: `slipway_${secret('base64url')}` };
  private readonly ends: (() => unknown)[] = [];

  /** Called by {@link startSlipway}. */
  async start({ module = '', settings }: TestServiceOptions): Promise<this> {
    const main = join(resolve(process.env.SLIPWAY_HOME ?? ''), 'dist/src/main.js');
    if (!existsSync(main)) throw new Error('Set SLIPWAY_HOME to the folder of a Slipway after `npm run build`.');
    const dataDir = await mkdtemp(join(tmpdir(), 'slipway-module-'));
    this.ends.push(async () => {
      const [elsewhere] = (await readFile(join(dataDir, 'pg-location'), 'utf8').catch(() => '')).split('\n');
      for (const folder of [elsewhere || dataDir, dataDir]) await rm(folder, { recursive: true, force: true });
    });
    // The embedded Postgres runs as another user if this process runs as root.
    await chmod(dataDir, 0o777);
    const child = spawn(process.execPath, [main], {
      cwd: dataDir,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...{ PATH: process.env.PATH, PORT: '0', DATA_DIR: dataDir, LOG_FORMAT: 'json' },
        ...{ BOOTSTRAP_API_KEY: this.operator.key, ENCRYPTION_KEYS: `test:${secret('base64')}` },
        ...{ SLIPWAY_MODULES: resolve(module), ...(await this.createDatabase(main)), ...settings },
      },
    });
    const write = (part: string) => (this.output += part);
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', write);
    const ended = once(child, 'close');
    const terminate = () => child.kill('SIGTERM');
    process.once('exit', terminate);
    this.ends.push(async () => {
      process.removeListener('exit', terminate);
      terminate();
      setTimeout(() => child.kill('SIGKILL'), WAIT_MS_MAX).unref();
      await ended;
    });
    const urlOf = () => /"msg":"Slipway listens","url":"([^"]+)"/.exec(this.output)?.[1];
    await eventually(() => urlOf() ?? (child.exitCode ?? child.signalCode) !== null, START_MS_MAX);
    this.url = urlOf() ?? '';
    if (this.url === '') throw new Error(`Slipway did not start:\n${this.output}`);
    return this;
  }

  /** Creates an account with an API key. */
  async account(name: string = `test-${randomBytes(6).toString('hex')}`): Promise<TestAccount> {
    const create = async (path: string, body: object) => {
      const response = await this.request<{ id: string; key: string }>(this.operator, 'POST', path, body);
      if (response.status !== 201) throw new Error(`POST ${path}: ${response.status} ${response.text}`);
      return response.body;
    };
    const { id } = await create('/accounts', { name, kind: 'user' });
    return { id, name, key: (await create(`/accounts/${id}/api-keys`, { name: 'test' })).key };
  }

  /** Sends a REST request as an account, or without a key. */
  async request<Body = Record<string, unknown>>(
    account: TestAccount | null,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<TestResponse<Body>> {
    const headers = { ...(account && { authorization: `Bearer ${account.key}` }), 'content-type': 'application/json' };
    return toResponse(
      await fetch(this.url + path, { method, headers, body: body === undefined ? null : JSON.stringify(body) }),
    );
  }

  /** Opens a browser and signs an account in. */
  async browser({ key }: TestAccount): Promise<TestBrowser> {
    const browser = new TestBrowser(this.url);
    const { status } = await browser.submit('/login', { key });
    if (status !== 303) throw new Error(`The account could not sign in: ${status}`);
    return browser;
  }

  /** Starts an MCP server, of the Streamable HTTP transport without sessions. */
  async upstream(tools: Record<string, TestTool>): Promise<TestUpstream> {
    const calls: TestUpstream['calls'] = [];
    const server = createServer((request, response) => {
      response.setHeader('content-type', 'application/json');
      if (request.method !== 'POST') response.writeHead(405).end();
      else void text(request).then(async (body) => response.end(await replyTo(body, tools, calls)));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    this.ends.push(() => server.close().closeAllConnections());
    return { url: `http://127.0.0.1:${(server.address() as { port: number }).port}/mcp`, calls };
  }

  /** Stops the service and its upstreams, and removes their data. */
  async stop(): Promise<void> {
    for (const end of this.ends.splice(0).reverse()) await end();
  }

  /** Creates a database in `SLIPWAY_TEST_DATABASE_URL`, for an image, which has no embedded Postgres. */
  private async createDatabase(main: string): Promise<{ DATABASE_URL?: string }> {
    const server = process.env.SLIPWAY_TEST_DATABASE_URL;
    if (!server) return {};
    const pg = createRequire(main)('pg') as { Pool: new (options: object) => Pool };
    const name = `slipway_module_${randomBytes(6).toString('hex')}`;
    const pool = new pg.Pool({ connectionString: server, max: 1 });
    this.ends.push(() => pool.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`).finally(() => pool.end()));
    await pool.query(`CREATE DATABASE ${name}`);
    return { DATABASE_URL: Object.assign(new URL(server), { pathname: `/${name}` }).href };
  }
}

/** A browser with cookies. It follows no redirects. */
export class TestBrowser {
  private readonly cookies: Map<string, string> = new Map();

  constructor(private readonly url: string) {}

  get(path: string): Promise<TestResponse<undefined>> {
    return this.send(path, 'none');
  }

  /** Sends the fields of a form with the form token of the page that has the form. */
  async submit(path: string, fields: Record<string, string>, page: string = path): Promise<TestResponse<undefined>> {
    const [, token = ''] = /name="form-token" value="([^"]+)"/.exec((await this.get(page)).text) ?? [];
    return this.send(path, 'same-origin', { 'form-token': token, ...fields });
  }

  private async send(path: string, site: string, form?: Record<string, string>): Promise<TestResponse<undefined>> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { accept: 'text/html', cookie, 'sec-fetch-site': site };
    const sent = form ? { method: 'POST', body: new URLSearchParams(form) } : {};
    const response = await fetch(this.url + path, { ...sent, headers, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return toResponse(response);
  }
}

type Pool = { query(sql: string): Promise<unknown>; end(): Promise<void> };
type Params = { protocolVersion?: string } & TestUpstream['calls'][number];

async function replyTo(body: string, tools: Record<string, TestTool>, calls: TestUpstream['calls']): Promise<string> {
  const { id, method, params } = JSON.parse(body) as { id?: unknown; method: string; params: Params };
  if (id === undefined) return '';
  const reply = (part: object) => JSON.stringify({ jsonrpc: '2.0', id, ...part });
  if (method === 'ping') return reply({ result: {} });
  if (method === 'initialize') {
    return reply({ result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo } });
  }
  if (method === 'tools/list') {
    const inputSchema = { type: 'object' };
    return reply({ result: { tools: Object.keys(tools).map((name) => ({ inputSchema, ...tools[name], name })) } });
  }
  const tool = method === 'tools/call' ? tools[params.name] : undefined;
  if (!tool) return reply({ error: { code: -32601, message: 'Method not found' } });
  calls.push({ name: params.name, arguments: params.arguments ?? {} });
  try {
    const result = await tool.call(params.arguments ?? {});
    return reply({ result: typeof result === 'string' ? { content: [{ type: 'text', text: result }] } : result });
  } catch (error) {
    return reply({ error: { code: -32603, message: String(error) } });
  }
}

async function toResponse<Body>(response: Response): Promise<TestResponse<Body>> {
  const { status, headers } = response;
  const content = await response.text();
  const isJson = /\bjson\b/.test(headers.get('content-type') ?? '');
  return { status, headers, text: content, body: (isJson ? JSON.parse(content) : undefined) as Body };
}
