import { randomUUID } from 'node:crypto';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { text } from 'node:stream/consumers';
import { until } from '../until.js';
import { checkLegacyVersion, checkModern } from './upstream-eras.js';
import { CutOff, Exchange, RpcError, toAnswer, type RpcMessage } from './upstream-exchange.js';
import { listen, shut } from './upstream-net.js';
import { UpstreamRpc, type RpcOptions } from './upstream-rpc.js';

export { RAW_TOOL_RESULT, textResult, type ToolCall, type ToolDef } from './upstream-tools.js';
export { RpcError } from './upstream-exchange.js';

/** How an upstream behaves. Without options: no sessions, JSON answers, the default tools, 2025-11-25 and older. */
export interface UpstreamOptions extends RpcOptions {
  /** `initialize` mints a session id; later requests need it, DELETE ends it. */
  sessions?: boolean;
  /** Answers requests as an event stream; `tools/call` sends the headers before the tool runs, as SDK servers do. */
  sse?: boolean;
  /** Headers every request to the endpoint must carry, else 401 with a challenge. */
  requireHeaders?: Record<string, string>;
  /** How an unknown session is refused: 404 with -32001 (default), or 400 with -32000 as many servers do. */
  forgottenSessionStatus?: 404 | 400;
}

/** One HTTP request as it arrived, whatever its path. It is recorded when its body is complete (or broke off). */
export interface RecordedRequest {
  /** The HTTP method. */
  method: string;
  /** Path and query. */
  path: string;
  headers: IncomingHttpHeaders;
  /** The parsed JSON body; undefined when there is none or it is not JSON. */
  body: unknown;
  /** The body as it came. */
  raw: string;
  /** The client left before it had the whole answer. */
  aborted: boolean;
  /** When the answer was complete or the connection gone, in epoch milliseconds. Unset while the answer is due. */
  closedAt?: number;
}

/** A running upstream, with all it saw. */
export interface Upstream {
  /** The MCP endpoint, `http://127.0.0.1:<port>/mcp`. */
  readonly url: string;
  readonly port: number;
  /** Every request in order of arrival. */
  readonly requests: RecordedRequest[];
  /** The session ids that are alive. */
  readonly sessions: Set<string>;
  /** TCP connections accepted so far. */
  readonly connections: number;
  /** How many requests carried this JSON-RPC method. */
  count(rpcMethod: string): number;
  /** Ends all sessions, as a restarted server does. */
  forgetSessions(): void;
  /** Lets the calls answer that wait in `hold` or `slow` now; later calls wait anew. */
  release(): void;
  /** Resolves when the predicate holds. */
  waitFor(predicate: (upstream: Upstream) => boolean): Promise<void>;
  /** Stops at once and cuts what is open. */
  close(): Promise<void>;
}

/** Starts a real, hand-written MCP server over streamable HTTP on a free port of 127.0.0.1. */
export async function startUpstream(options: UpstreamOptions = {}): Promise<Upstream> {
  const upstream = new McpUpstream(options);
  await upstream.start();
  return upstream;
}

class McpUpstream implements Upstream {
  port = 0;
  connections = 0;
  readonly requests: RecordedRequest[] = [];
  readonly sessions = new Set<string>();
  private readonly rpc: UpstreamRpc;
  private readonly server: Server;

  constructor(private readonly options: UpstreamOptions) {
    this.rpc = new UpstreamRpc(options);
    this.server = createServer((req, res) => void this.receive(req, res));
    this.server.on('connection', () => {
      this.connections++;
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  async start(): Promise<void> {
    this.port = await listen(this.server);
  }

  count(rpcMethod: string): number {
    return this.requests.filter(({ body }) => (body as RpcMessage | null | undefined)?.method === rpcMethod).length;
  }

  forgetSessions(): void {
    this.sessions.clear();
  }

  release(): void {
    this.rpc.release();
  }

  async waitFor(predicate: (upstream: Upstream) => boolean): Promise<void> {
    const seen = () => this.requests.map(({ body, method }) => (body as RpcMessage | undefined)?.method ?? method);
    await until(() => predicate(this), 'the upstream saw that').catch((error: Error) => {
      throw new Error(`${error.message}. The upstream saw: ${seen().join(', ')}`, { cause: error });
    });
  }

  async close(): Promise<void> {
    await shut(this.server);
  }

  private async receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const exchange = new Exchange(req, res);
    const { method = '', url: path = '', headers } = req;
    const record: RecordedRequest = { method, path, headers, body: undefined, raw: '', aborted: false };
    res.once('close', () => {
      record.closedAt = Date.now();
      record.aborted = !res.writableFinished && !exchange.isCutByUs;
    });
    try {
      record.raw = await text(req);
      record.body = parse(record.raw);
    } catch {
      // The client left while it was still sending.
    }
    this.requests.push(record);
    if (!res.destroyed) await this.route(exchange, res, record);
  }

  private async route(
    exchange: Exchange,
    res: ServerResponse,
    { method, path, headers, body }: RecordedRequest,
  ): Promise<void> {
    if (path.split('?')[0] !== '/mcp')
      return void res.writeHead(404, { 'content-type': 'text/plain' }).end('Not found');
    const required = Object.entries(this.options.requireHeaders ?? {});
    if (required.some(([name, value]) => headers[name.toLowerCase()] !== value)) return this.challenge(res);
    const session = headers['mcp-session-id'] as string | undefined;
    try {
      if (method === 'DELETE' && this.options.sessions) {
        this.checkSession(session);
        this.sessions.delete(session ?? '');
        return void res.writeHead(200).end();
      }
      if (method !== 'POST') {
        res.setHeader('allow', this.options.sessions ? 'POST, DELETE' : 'POST');
        throw new RpcError(-32000, 'Method not allowed.', undefined, 405, true);
      }
      await this.post(exchange, res, checkPost(headers, body), session);
    } catch (error) {
      if (exchange.signal.aborted) return;
      const refusal = error instanceof RpcError ? error : new RpcError(-32603, String(error));
      exchange.answer(refusal.status, toAnswer((body as RpcMessage | undefined)?.id, refusal));
    }
  }

  private async post(exchange: Exchange, res: ServerResponse, message: RpcMessage, session?: string): Promise<void> {
    const isRequest = typeof message.method === 'string' && message.id !== undefined;
    if (this.options.modernOnly) {
      if (isRequest) checkModern(exchange.req, message);
    } else {
      if (this.options.sessions) this.checkLegacySession(message, session);
      checkLegacyVersion(exchange.req);
    }
    if (!isRequest) {
      if (message.method === undefined) this.rpc.accept(message);
      return void res.writeHead(202).end();
    }
    if (this.options.sse && message.method === 'tools/call') exchange.open();
    try {
      const result = await this.rpc.handle(message, exchange);
      const minted = message.method === 'initialize' && this.options.sessions ? this.mint() : {};
      if (this.options.sse) exchange.open(minted);
      exchange.answer(200, toAnswer(message.id, result), minted);
    } catch (error) {
      if (!(error instanceof CutOff)) throw error;
      exchange.cut(toAnswer(message.id, { content: [{ type: 'text', text: 'This text never arrives whole.' }] }));
    }
  }

  private checkLegacySession(message: RpcMessage, session: string | undefined): void {
    if (session === undefined && message.method === 'initialize') return;
    this.checkSession(session);
    if (message.method === 'initialize') {
      throw new RpcError(-32600, 'Invalid Request: Server already initialized', undefined, 400, true);
    }
  }

  private checkSession(session: string | undefined): void {
    if (session === undefined) throw new RpcError(-32000, 'Bad Request: Server not initialized', undefined, 400, true);
    if (this.sessions.has(session)) return;
    throw this.options.forgottenSessionStatus === 400
      ? new RpcError(-32000, 'Bad Request: No valid session ID provided', undefined, 400, true)
      : new RpcError(-32001, 'Session not found', undefined, 404, true);
  }

  private mint(): Record<string, string> {
    const id = randomUUID();
    this.sessions.add(id);
    return { 'mcp-session-id': id };
  }

  private challenge(res: ServerResponse): void {
    const metadata = `http://127.0.0.1:${this.port}/.well-known/oauth-protected-resource/mcp`;
    res.writeHead(401, {
      'content-type': 'application/json',
      'www-authenticate': `Bearer resource_metadata="${metadata}"`,
    });
    res.end(JSON.stringify({ error: 'invalid_token', error_description: 'Missing or wrong credentials' }));
  }
}

/** Refuses what no SDK server takes: a client that cannot read both answers, another content type, a batch, no JSON. */
function checkPost(headers: IncomingHttpHeaders, body: unknown): RpcMessage {
  const { accept = '', 'content-type': contentType = '' } = headers;
  if (!accept.includes('application/json') || !accept.includes('text/event-stream')) {
    const message = 'Not Acceptable: Client must accept both application/json and text/event-stream';
    throw new RpcError(-32000, message, undefined, 406, true);
  }
  if (!contentType.startsWith('application/json')) {
    const message = 'Unsupported Media Type: Content-Type must be application/json';
    throw new RpcError(-32000, message, undefined, 415, true);
  }
  if (body === undefined) throw new RpcError(-32700, 'Parse error', undefined, 400, true);
  const message = body as RpcMessage | null;
  if (typeof message !== 'object' || message === null || Array.isArray(message) || message.jsonrpc !== '2.0') {
    throw new RpcError(-32600, 'Invalid Request', undefined, 400, true);
  }
  return message;
}

function parse(raw: string): unknown {
  try {
    return JSON.parse(raw) as unknown;
  } catch {
    return undefined;
  }
}
