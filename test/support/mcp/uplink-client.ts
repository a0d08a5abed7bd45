import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import type { TestAccount, TestApp } from '../app.js';
import { until } from '../until.js';

/** A JSON-RPC message, as tests read it. */
export type Message = ReturnType<typeof JSON.parse>;

/** Answers one request of the service: a result, an Error, or null for no answer at all. */
export type Answer = (message: Message, client: UplinkClient) => object | Error | null | Promise<object | Error | null>;

export interface UplinkOptions {
  /** Takes over from a local server that is paired. */
  force?: boolean;
  /** Answers of the local server, by method, beside `initialize` and `tools/list`. */
  answers?: Record<string, Answer>;
  /** Its name; default `local`. */
  name?: string;
  capabilities?: object;
  /** The names of its tools; default `echo`. */
  tools?: string[];
  /** In place of the connection's own path. */
  path?: string;
  headers?: Record<string, string>;
}

/** The handshake was answered with something else than 101. */
export class PairingRefused extends Error {
  constructor(
    readonly status: number,
    readonly reason: string,
    readonly body: Message,
  ) {
    super(`${status} ${reason}`);
  }
}

/** A local server and its end of the tunnel in one, as the published client behaves on the wire. */
export class UplinkClient {
  /** Every message that came, in order. */
  readonly received: Message[] = [];
  /** Code and reason of the closed socket. */
  readonly closed: Promise<{ code: number; reason: string }>;

  constructor(
    readonly socket: WebSocket,
    private readonly options: UplinkOptions,
  ) {
    socket.on('message', (data: Buffer) => void this.onMessage(JSON.parse(data.toString())));
    this.closed = once(socket, 'close').then(([code, reason]) => ({ code: Number(code), reason: String(reason) }));
  }

  /** Sends a message; text and bytes as they are. */
  send(message: object | string | Buffer): void {
    const isRaw = typeof message === 'string' || Buffer.isBuffer(message);
    this.socket.send(isRaw ? message : JSON.stringify({ jsonrpc: '2.0', ...message }));
  }

  /** The messages of this method. */
  of(method: string): Message[] {
    return this.received.filter((message) => message.method === method);
  }

  /** Ends the tunnel as the published client does. */
  async close(): Promise<void> {
    this.socket.close(1000, 'closing');
    await this.closed;
  }

  private async onMessage(message: Message): Promise<void> {
    this.received.push(message);
    if (message.id === undefined || message.method === undefined) return;
    const answer = await this.answerTo(message);
    if (answer === null || this.socket.readyState !== WebSocket.OPEN) return;
    if (answer instanceof Error) this.send({ id: message.id, error: { code: -32000, message: answer.message } });
    else this.send({ id: message.id, result: answer });
  }

  private answerTo(message: Message): ReturnType<Answer> {
    const { name = 'local', capabilities = { tools: { listChanged: true } }, tools = ['echo'] } = this.options;
    const scripted = this.options.answers?.[message.method];
    if (scripted) return scripted(message, this);
    if (message.method === 'initialize') {
      return { protocolVersion: '2025-11-25', capabilities, serverInfo: { name, version: '1.0.0' } };
    }
    if (message.method === 'tools/list') {
      return { tools: tools.map((tool) => ({ name: tool, inputSchema: { type: 'object' } })) };
    }
    if (message.method === 'tools/call') {
      return { content: [{ type: 'text', text: JSON.stringify(message.params.arguments) }] };
    }
    return new Error(`no ${message.method} here`);
  }
}

/** Opens the tunnel of the connection at `path`, without waiting for what the service makes of it. */
export async function openTunnel(
  app: Pick<TestApp, 'url'>,
  account: Pick<TestAccount, 'key'> | undefined,
  path: string,
  options: UplinkOptions = {},
): Promise<UplinkClient> {
  const { force = false, headers = {} } = options;
  const key: Record<string, string> = account ? { authorization: `Bearer ${account.key}` } : {};
  const url = `${app.url.replace('http', 'ws')}${options.path ?? path}${force ? '?force=1' : ''}`;
  const socket = new WebSocket(url, { headers: { ...key, ...headers } });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
    socket.once('unexpected-response', (_request, response: IncomingMessage) => {
      void (async () => {
        let text = '';
        for await (const chunk of response) text += String(chunk);
        reject(new PairingRefused(response.statusCode ?? 0, response.statusMessage ?? '', JSON.parse(text)));
      })().catch(reject);
    });
  });
  // Like the published client: not before its socket is open, and so too late for what comes together with that.
  return new UplinkClient(socket, options);
}

/** {@link openTunnel}, and the connection is `connected`. */
export async function pair(
  app: TestApp,
  account: TestAccount,
  path: string,
  options: UplinkOptions = {},
): Promise<UplinkClient> {
  const client = await openTunnel(app, account, path, options);
  await untilState(app, account, path, 'connected', options.name ?? 'local');
  return client;
}

/** The status of the connection at `path`, once its state is this one; of a named server, once it is that one. */
export async function untilState(
  app: TestApp,
  account: TestAccount,
  path: string,
  state: string,
  serverName?: string,
): Promise<Message> {
  const connection = await until(async () => {
    const { body } = await app.as(account).get(path);
    return body.status?.state === state && (serverName === undefined || body.serverInfo?.name === serverName)
      ? body
      : null;
  }, `the connection is ${state}`);
  return connection.status;
}
