/**
 * Egress proxy of one program: HTTP requests in absolute form, WebSocket upgrades, and `CONNECT` for raw TCP. TLS to
 * the target is opened here for requests.
 *
 * All input comes from a tenant: no request, and no response it arranges, can crash the process, exceed `ProxyLimits`
 * or reach an address that is not open to this program. Names are checked by `OutboundRules` (the server's
 * `egressAllow`), addresses by the egress policy when the socket is opened.
 *
 * Responses of the proxy itself are text: 400 for anything but proxy requests, 403 for a forbidden host, 408 for a slow
 * request, 431 for a large head, 502 and 504 for targets that fail, 503 without a free slot.
 */
import { once } from 'node:events';
import { createServer, STATUS_CODES, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Server as NetServer, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { parseUrl } from '../../config/parse-url.js';
import type { Egress } from '../../platform/egress/egress.js';
import { KeyedLimiter, NoSlotError } from '../../platform/limits/keyed-limiter.js';
import { requireWebSocket, sendOut, upgradeOut } from './outbound-request.js';
import { OutboundRules, type OutboundKind } from './outbound-rules.js';
import { OutboundError, outboundErrorOf } from './outbound.errors.js';
import type { ProxyLimits } from './proxy-limits.js';

interface RefusalLine {
  at: number;
  level: 'warn';
  message: string;
}

class RefusalLines {
  private inMinute = 0;
  private leftOut = 0;
  private minuteEnds = 0;

  constructor(
    private readonly perMinute: number,
    private readonly onLine: (line: RefusalLine) => void,
  ) {}

  add(message: string): void {
    const now = Date.now();
    if (now >= this.minuteEnds) {
      this.minuteEnds = now + 60_000;
      this.inMinute = 0;
    }
    if (this.inMinute >= this.perMinute) {
      this.leftOut++;
      return;
    }
    this.inMinute++;
    const more = this.leftOut === 0 ? '' : ` (${this.leftOut} refusals before this one were not written down)`;
    this.leftOut = 0;
    this.onLine({ at: now, level: 'warn', message: `Outbound request refused: ${message}${more}` });
  }
}

export interface ProgramProxyOptions {
  /** Allowed hosts, such as `api.example.com`, `*.example.com` or `db.example.com:5432`; null for every one. */
  allow: string[] | null;
  /** Receives rejections, at most 20 lines a minute. Must not throw. */
  onRefused: (line: RefusalLine) => void;
}

const CHECK_MS = 5_000;

/** Idle time of a socket, longer than workerd's 5 s, so that workerd closes idle sockets and loses no request. */
const KEEP_MS = 30_000;

const ABSOLUTE = /^https?:\/\//i;
const AUTHORITY = /^(\[[0-9a-f:.]+\]|[^:/?#@[\]\\\s]+):([1-9]\d{0,4})$/i;

/** A path of a unix socket, or a listening socket, which the proxy closes. */
export type ProxyPlace = string | NetServer;

export class ProgramProxy {
  private readonly server: Server;
  private readonly rules: OutboundRules;
  private readonly slots: KeyedLimiter;
  private readonly lines: RefusalLines;
  private readonly sockets = new Set<Duplex>();
  private readonly answers = new WeakMap<Duplex, ServerResponse>();
  private isClosed = false;

  private constructor(
    { allow, onRefused }: ProgramProxyOptions,
    private readonly egress: Egress,
    private readonly internal: Egress | null,
    private readonly limits: ProxyLimits,
  ) {
    this.rules = new OutboundRules(allow);
    this.slots = KeyedLimiter.fair(limits.atOnceMax, limits.waitMs);
    this.lines = new RefusalLines(limits.linesPerMinute, onRefused);
    this.server = this.createServer();
  }

  /**
   * Starts a proxy, which owns and closes both ways out.
   *
   * @param internal for hosts that the list names with their port; null: `egress` for all
   * @throws system errors of the path
   */
  static async open(
    place: ProxyPlace,
    options: ProgramProxyOptions,
    egress: Egress,
    limits: ProxyLimits,
    internal: Egress | null = null,
  ): Promise<ProgramProxy> {
    const proxy = new ProgramProxy(options, egress, internal, limits);
    await once(proxy.server.listen(place), 'listening');
    proxy.server.on('error', () => undefined);
    return proxy;
  }

  /** Closes every socket and the proxy immediately. Never rejects. */
  async close(): Promise<void> {
    this.isClosed = true;
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const socket of this.sockets) socket.destroy();
    await Promise.allSettled([closed, this.egress.close(), this.internal?.close()]);
  }

  /** Accepts requests without `Host`: workerd omits it with a URL in absolute form. */
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
    server.on('connection', (socket) => this.track(socket));
    server.on('drop', () => this.lines.add(`this program has ${socketsMax} connections open, as many as may be.`));
    server.on('clientError', (error, socket) => this.refuseBytes(error, socket));
    server.on('request', (req, res) => this.serveAlone(req.socket, () => this.request(req, res)));
    server.on('upgrade', (req: IncomingMessage, near: Socket, head: Buffer) =>
      this.serveAlone(near, () => this.upgrade(req, near, head)),
    );
    server.on('connect', (req: IncomingMessage, near: Socket, head: Buffer) =>
      this.serveAlone(near, () => this.connect(req, near, head)),
    );
    return server;
  }

  private track<T extends Duplex>(socket: T): T {
    this.sockets.add(socket);
    if (this.isClosed) socket.destroy();
    return socket.on('error', () => undefined).once('close', () => this.sockets.delete(socket));
  }

  /**
   * Processes one request per socket at a time. workerd does not pipeline; a pipeline would be unbounded, and an
   * upgrade would meet a socket that is being written to.
   */
  private serveAlone(socket: Socket, work: () => Promise<void>): void {
    if (socket.destroyed || this.answers.get(socket)?.writableEnded === false) socket.destroy();
    else work().catch(() => socket.destroy());
  }

  private async request(req: IncomingMessage, res: ServerResponse): Promise<void> {
    res.on('error', () => undefined);
    req.on('error', () => undefined);
    this.answers.set(req.socket, res);
    await this.respond(req, res, async () => {
      const { url, egress } = this.target(req, 'http');
      await this.inSlot(() => sendOut(url, req, res, egress, this.limits), url.hostname);
    });
  }

  private async upgrade(req: IncomingMessage, near: Socket, head: Buffer): Promise<void> {
    const res = await this.detach(req, near);
    await this.respond(req, res, async () => {
      const { url, egress } = this.target(req, 'http');
      requireWebSocket(req);
      await this.inSlot(async () => {
        const far = this.track(await egress.open(url));
        const isAgreed = await upgradeOut({ url, req, res, near, far }, this.limits);
        if (isAgreed) await this.join(res, near, far, head);
      }, url.hostname);
    });
  }

  private async connect(req: IncomingMessage, near: Socket, head: Buffer): Promise<void> {
    const res = await this.detach(req, near);
    await this.respond(req, res, async () => {
      const { url, egress } = this.target(req, 'tcp');
      await this.inSlot(async () => {
        const far = this.track(await egress.open(url));
        near.write('HTTP/1.1 200 Connection Established\r\n\r\n');
        await this.join(res, near, far, head);
      }, url.hostname);
    });
  }

  /** Waits for the end of the last response, which the client may have read before it is noticed here. */
  private async detach(req: IncomingMessage, near: Socket): Promise<ServerResponse> {
    const last = this.answers.get(near);
    if (last && !last.closed) await new Promise((resolve) => last.once('close', resolve));
    return createResponse(req, near);
  }

  private join(res: ServerResponse, near: Socket, far: Socket, head: Buffer): Promise<void> {
    res.detachSocket(near);
    far.write(head);
    return tunnel(near, far, { idleMs: this.limits.tunnelIdleMs, totalMs: this.limits.tunnelTotalMs });
  }

  private target({ url = '' }: IncomingMessage, kind: OutboundKind): { url: URL; egress: Egress } {
    if (!(kind === 'http' ? ABSOLUTE : AUTHORITY).test(url)) {
      throw new OutboundError(400, 'This is a proxy: ask for https://host/path, or CONNECT host:port.');
    }
    const text = kind === 'http' ? url : `http://${url}/`;
    const parsed = parseUrl(text);
    const egress = this.internal && parsed && this.rules.namesWithPort(parsed) ? this.internal : this.egress;
    try {
      const target = egress.check(text);
      this.rules.requireAllowed(target, kind);
      return { url: target, egress };
    } catch (error) {
      throw outboundErrorOf(error, hostOf(text));
    }
  }

  /** Runs `work` in a slot. The number of sockets limits the waiting requests. */
  private async inSlot(work: () => Promise<void>, host: string): Promise<void> {
    try {
      await this.slots.run([], work);
    } catch (error) {
      if (!(error instanceof NoSlotError)) throw outboundErrorOf(error, host);
      const { atOnceMax, waitMs } = this.limits;
      throw new OutboundError(
        503,
        `The program has ${atOnceMax} requests in progress, which is the limit, and none finished in ${waitMs} ms. ` +
          'Send fewer concurrent ones, and read or cancel every response.',
        true,
      );
    }
  }

  /** Responds with the error that `work` throws, or cuts off a response that has begun. */
  private async respond(req: IncomingMessage, res: ServerResponse, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const { status, message, isLogged } = outboundErrorOf(error, hostOf(req.url ?? ''));
      if (isLogged) this.lines.add(message);
      if (res.headersSent || res.destroyed || !res.socket) req.socket.destroy();
      else res.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${message}\n`);
    }
  }

  private refuseBytes(error: NodeJS.ErrnoException, socket: Duplex): void {
    let [status, message] = [400, 'The request is not sound HTTP.'];
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') [status, message] = [408, 'The request did not end in time.'];
    if (error.code === 'HPE_HEADER_OVERFLOW') {
      status = 431;
      message = `The request has more than ${this.limits.headerBytes} bytes of headers: send what is long in the body.`;
      this.lines.add(message);
    }
    if (socket.writable && this.answers.get(socket)?.writableEnded !== false) {
      const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-type: text/plain`;
      socket.write(`${head}\r\ncontent-length: ${message.length + 1}\r\n\r\n${message}\n`);
    }
    socket.destroy();
  }
}

function hostOf(url: string): string {
  return parseUrl(url)?.hostname ?? '';
}

/** Returns a response object for a socket that the server has detached; the socket closes after the response. */
function createResponse(req: IncomingMessage, socket: Socket): ServerResponse {
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  res.on('error', () => undefined);
  res.on('finish', () => socket.destroySoon());
  res.assignSocket(socket);
  return res;
}

/**
 * Pipes two sockets until both are closed; half-closed sockets may still receive. Destroys them after `idleMs` without
 * a byte, after `totalMs` in any case, and when one fails. Resolves when both are closed; never rejects.
 */
async function tunnel(near: Socket, far: Socket, limits: { idleMs: number; totalMs: number }): Promise<void> {
  const destroyBoth = (): void => {
    near.destroy();
    far.destroy();
  };
  if (near.destroyed || far.destroyed) destroyBoth();
  const timer = setTimeout(destroyBoth, limits.totalMs);
  for (const side of [near, far]) side.on('error', destroyBoth).setTimeout(limits.idleMs, destroyBoth);
  near.once('close', () => far.destroySoon()).pipe(far);
  far.once('close', () => near.destroySoon()).pipe(near);
  await Promise.all([closing(near), closing(far)]);
  clearTimeout(timer);
}

function closing(side: Socket): Promise<void> {
  if (side.closed) return Promise.resolve();
  return new Promise((resolve) => side.once('close', resolve));
}
