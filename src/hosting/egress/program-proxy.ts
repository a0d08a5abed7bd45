import { createServer, STATUS_CODES, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Server as NetServer, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Egress } from '../../platform/egress/egress.js';
import { sendOut } from './outbound-request.js';
import { OutboundRules, type OutboundKind } from './outbound-rules.js';
import { OutboundDeniedError, OutboundError, outboundErrorOf } from './outbound.errors.js';
import { Semaphore } from './semaphore.js';
import { requireWebSocket, upgradeOut } from './upgrade.js';
import type { ProxyLimits } from './proxy-limits.js';

/** A line for the program's log. */
interface RefusalLine {
  at: number;
  level: 'warn';
  message: string;
}

/**
 * Tells a program's author what was refused, at most so many lines a minute: code that tries in a loop must not drown its
 * own log. What was left out is counted in the next line.
 */
class RefusalLines {
  private told = 0;
  private leftOut = 0;
  private minuteEnds = 0;

  constructor(
    private readonly perMinute: number,
    private readonly tell: (line: RefusalLine) => void,
  ) {}

  add(message: string): void {
    const now = Date.now();
    if (now >= this.minuteEnds) {
      this.minuteEnds = now + 60_000;
      this.told = 0;
    }
    if (this.told >= this.perMinute) {
      this.leftOut++;
      return;
    }
    this.told++;
    const more = this.leftOut === 0 ? '' : ` (${this.leftOut} refusals before this one were not written down)`;
    this.leftOut = 0;
    this.tell({ at: now, level: 'warn', message: `Outbound request refused: ${message}${more}` });
  }
}

/** What a program's way out is given. */
export interface ProgramProxyOptions {
  /** Hosts it may ask for, such as `api.example.com`, `*.example.com` or `db.example.com:5432`; null: every one. */
  allow: string[] | null;
  /** Hears what was refused, at most 20 lines a minute. Must not throw. */
  told: (line: RefusalLine) => void;
}

/** How often, at least, sockets are looked at that send no request to its end. */
const CHECK_MS = 5_000;

/** Longer than the 5 s that workerd keeps a socket, so that it is the side that closes and loses no request. */
const KEEP_MS = 30_000;

const ABSOLUTE = /^https?:\/\//i;
const AUTHORITY = /^(\[[0-9a-f:.]+\]|[^:/?#@[\]\\\s]+):([1-9]\d{0,4})$/i;

/** Where a proxy listens: a path for a unix socket, or a socket that listens already, which it closes. */
export type ProxyPlace = string | NetServer;

/** Starts a proxy; `egress` is its own from now on, and is closed with it. */
export async function openProgramProxy(
  place: ProxyPlace,
  options: ProgramProxyOptions,
  egress: Egress,
  limits: ProxyLimits,
): Promise<ProgramProxy> {
  const proxy = new ProgramProxy(options, egress, limits);
  await proxy.listen(place);
  return proxy;
}

/**
 * The way out of one program. What comes in was written by a tenant, whatever it claims to be: no request, and no answer
 * it arranged for itself, may end the process, hold more than {@link ProxyLimits} or reach what is not public.
 */
export class ProgramProxy {
  private readonly server: Server;
  private readonly rules: OutboundRules;
  private readonly places: Semaphore;
  private readonly lines: RefusalLines;
  /** All sockets of the program, and the far ends of its tunnels. */
  private readonly sockets = new Set<Duplex>();
  /** The last answer on a socket. */
  private readonly answers = new WeakMap<Duplex, ServerResponse>();
  private isClosed = false;

  constructor(
    { allow, told }: ProgramProxyOptions,
    private readonly egress: Egress,
    private readonly limits: ProxyLimits,
  ) {
    this.rules = new OutboundRules(allow);
    this.places = new Semaphore(limits.atOnceMax, limits.waitingMax, limits.waitMs);
    this.lines = new RefusalLines(limits.linesPerMinute, told);
    this.server = this.createServer();
  }

  /** @throws what the system says of the path */
  listen(place: ProxyPlace): Promise<void> {
    return new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(place, () => {
        this.server.off('error', reject).on('error', () => undefined);
        resolve();
      });
    });
  }

  /** Ends every socket now, and the proxy. Never rejects. */
  async close(): Promise<void> {
    this.isClosed = true;
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const socket of this.sockets) socket.destroy();
    await Promise.allSettled([closed, this.egress.close()]);
  }

  /** workerd sends no `Host` with a URL in absolute form, which is otherwise a fault. */
  private createServer(): Server {
    const { headerBytes, headersMs, totalMs, socketsMax } = this.limits;
    const server = createServer({
      requireHostHeader: false,
      insecureHTTPParser: false,
      maxHeaderSize: headerBytes,
      headersTimeout: headersMs,
      requestTimeout: totalMs,
      connectionsCheckingInterval: Math.min(CHECK_MS, headersMs),
      keepAliveTimeout: KEEP_MS,
    });
    server.maxConnections = socketsMax;
    server.on('connection', (socket) => this.keep(socket));
    server.on('drop', () => this.lines.add(`this program has ${socketsMax} connections open, as many as may be.`));
    server.on('clientError', (error, socket) => this.refuseBytes(error, socket));
    server.on('request', (req, res) => this.alone(req.socket, () => this.request(req, res)));
    server.on('upgrade', (req: IncomingMessage, near: Socket, head: Buffer) =>
      this.alone(near, () => this.upgrade(req, near, head)),
    );
    server.on('connect', (req: IncomingMessage, near: Socket, head: Buffer) =>
      this.alone(near, () => this.connect(req, near, head)),
    );
    return server;
  }

  private keep<T extends Duplex>(socket: T): T {
    this.sockets.add(socket);
    if (this.isClosed) socket.destroy();
    return socket.on('error', () => undefined).once('close', () => this.sockets.delete(socket));
  }

  /**
   * Works on one request of a socket at a time. workerd sends the next one after the answer to the last: a pile of them
   * would have no bound, and one that changes the protocol would meet a socket that is being written to.
   */
  private alone(socket: Socket, work: () => Promise<void>): void {
    if (socket.destroyed || this.answers.get(socket)?.writableEnded === false) socket.destroy();
    else work().catch(() => socket.destroy());
  }

  private async request(req: IncomingMessage, res: ServerResponse): Promise<void> {
    res.on('error', () => undefined);
    req.on('error', () => undefined);
    this.answers.set(req.socket, res);
    await this.answer(req, res, async () => {
      const url = this.target(req, 'http');
      await this.inPlace(() => sendOut(url, req, res, this.egress, this.limits), url.hostname);
    });
  }

  private async upgrade(req: IncomingMessage, near: Socket, head: Buffer): Promise<void> {
    const res = await this.detached(req, near);
    await this.answer(req, res, async () => {
      const url = this.target(req, 'http');
      requireWebSocket(req);
      await this.inPlace(async () => {
        const far = this.keep(await this.egress.open(url));
        const isAgreed = await upgradeOut({ url, req, res, near, far }, this.limits);
        if (isAgreed) await this.join(res, near, far, head);
      }, url.hostname);
    });
  }

  private async connect(req: IncomingMessage, near: Socket, head: Buffer): Promise<void> {
    const res = await this.detached(req, near);
    await this.answer(req, res, async () => {
      const url = this.target(req, 'tcp');
      await this.inPlace(async () => {
        const far = this.keep(await this.egress.open(url));
        near.write('HTTP/1.1 200 Connection Established\r\n\r\n');
        await this.join(res, near, far, head);
      }, url.hostname);
    });
  }

  /** The last answer may have been heard before its end was noticed here. */
  private async detached(req: IncomingMessage, near: Socket): Promise<ServerResponse> {
    const last = this.answers.get(near);
    if (last && !last.closed) await new Promise((resolve) => last.once('close', resolve));
    return detached(req, near);
  }

  private join(res: ServerResponse, near: Socket, far: Socket, head: Buffer): Promise<void> {
    res.detachSocket(near);
    far.write(head);
    return tunnel(near, far, { idleMs: this.limits.tunnelIdleMs, totalMs: this.limits.tunnelTotalMs });
  }

  /** The URL a request is for, when it may go there as far as can be told from its name. */
  private target({ url = '' }: IncomingMessage, kind: OutboundKind): URL {
    if (!(kind === 'http' ? ABSOLUTE : AUTHORITY).test(url)) {
      throw new OutboundError(400, 'This is a proxy: ask for https://host/path, or CONNECT host:port.');
    }
    const target = this.checked(kind === 'http' ? url : `http://${url}/`);
    this.rules.judge(target, kind);
    return target;
  }

  private checked(url: string): URL {
    try {
      return this.egress.check(url);
    } catch (error) {
      throw outboundErrorOf(error, hostOf(url));
    }
  }

  private async inPlace(work: () => Promise<void>, host: string): Promise<void> {
    const release = await this.places.take();
    try {
      await work();
    } catch (error) {
      throw outboundErrorOf(error, host);
    } finally {
      release();
    }
  }

  /** Whatever `work` throws becomes an answer, or the end of one that has begun. Never rejects. */
  private async answer(req: IncomingMessage, res: ServerResponse, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const { status, message } = outboundErrorOf(error, hostOf(req.url ?? ''));
      if (error instanceof OutboundDeniedError) this.lines.add(message);
      if (res.headersSent || res.destroyed || !res.socket) req.socket.destroy();
      else res.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${message}\n`);
    }
  }

  /** What is no request gets an answer only when no other one is being written on its socket. */
  private refuseBytes(error: NodeJS.ErrnoException, socket: Duplex): void {
    const [status, message] = this.faultOf(error.code ?? '');
    if (status === 431) this.lines.add(message);
    if (socket.writable && this.answers.get(socket)?.writableEnded !== false) {
      const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-type: text/plain`;
      socket.write(`${head}\r\ncontent-length: ${message.length + 1}\r\n\r\n${message}\n`);
    }
    socket.destroy();
  }

  private faultOf(code: string): [status: number, message: string] {
    if (code === 'HPE_HEADER_OVERFLOW') {
      return [
        431,
        `The request has more than ${this.limits.headerBytes} bytes of headers: send what is long in the body.`,
      ];
    }
    if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return [408, 'The request did not end in time.'];
    return [400, 'The request is not sound HTTP.'];
  }
}

function hostOf(url: string): string {
  try {
    return new URL(url).hostname;
  } catch {
    return '';
  }
}

/** An answer on a socket that the server has let go of, which closes after it. */
function detached(req: IncomingMessage, socket: Socket): ServerResponse {
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  res.on('error', () => undefined);
  res.on('finish', () => socket.destroySoon());
  res.assignSocket(socket);
  return res;
}

/**
 * Joins two sockets until both are closed; a side that ends in order may still be answered. They are cut after `idleMs`
 * without a byte, after `totalMs` in any case, and when one of them fails. A side that does not read makes the other wait.
 * Resolves when both are closed; never rejects.
 */
async function tunnel(near: Socket, far: Socket, limits: { idleMs: number; totalMs: number }): Promise<void> {
  const cut = (): void => {
    near.destroy();
    far.destroy();
  };
  if (near.destroyed || far.destroyed) cut();
  const timer = setTimeout(cut, limits.totalMs);
  for (const side of [near, far]) side.on('error', cut).setTimeout(limits.idleMs, cut);
  near.once('close', () => far.destroySoon()).pipe(far);
  far.once('close', () => near.destroySoon()).pipe(near);
  await Promise.all([closing(near), closing(far)]);
  clearTimeout(timer);
}

function closing(side: Socket): Promise<void> {
  if (side.closed) return Promise.resolve();
  return new Promise((resolve) => side.once('close', resolve));
}
