/**
 * The HTTP server in front of Express. Each request gets its canonical path, an `x-request-id` (that of the client if
 * it is harmless) and the headers that forbid browsers to run an answer. Then it goes to CORS, the authorization
 * server, the fast path, or Express.
 *
 * Sockets: connections of one address and in all (`HTTP_CONNECTIONS_…`), unread answers (`response-backlog.ts`) and the
 * time of a request are bounded; who is over a bound is cut off or gets no further requests executed. Pipelined
 * requests, and those with a body and without a key, take turns of two per event loop, because refusing many at once
 * delays the calls of others. WebSocket handshakes go to `upgrade`; any other `Upgrade` is read anew as if it had not
 * been asked for (RFC 9110 section 7.8).
 *
 * Shutdown: no new connections; after 25 s running calls are answered with an error, a second later sockets are closed.
 */
import { randomUUID } from 'node:crypto';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { NestApplicationOptions } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import express from 'express';
import type { Env } from '../../config/env.js';
import { KeyedLimiter } from '../limits/keyed-limiter.js';
import { canonicalPath } from './canonical-path.js';
import { clientAddress, isTrusted, peerOf, plainAddress } from './client-address.js';
import { closeIfUnread, hasBody } from './body/unread-body.js';
import { answerCors } from './cors.js';
import { ResponseBacklog } from './response-backlog.js';
import { repeat } from '../schedule/repeat.js';
import { PerTickQueue } from '../schedule/paced-work.js';
import { tracing } from '../telemetry/tracing.js';

/** A request id of a client or proxy is kept when it is harmless to log and to send back. */
const REQUEST_ID = /^[A-Za-z0-9._-]{8,128}$/;

/** For every answer that is not a page: browsers run nothing of it, load nothing for it, and show it in no frame. */
const NO_PAGE = "sandbox; default-src 'none'; frame-ancestors 'none'";

/** Longer than the 60 s of common proxies, so that the proxy closes first and never meets a closing socket. */
const KEEP_ALIVE_MS = 65_000;

/** Time for the errors of calls that did not finish to reach their clients. */
const FAREWELL_MS = 1_000;

/**
 * Requests of one turn of the event loop among those that can wait: pipelined ones, and those with a body and without a key.
 * To refuse an unfinished body takes about 0.3 ms, most of it in the kernel. Beside 1,200 that arrive together the p95 of a
 * neighbour's calls was 190 to 440 ms, and 20 with this bound (`npm run bench:hostile -- --only s2`). Beside pipelined requests
 * for public documents the p95 of its reads was 67 ms, and 17 with it (`--only n1`).
 */
const PATIENT_PER_TURN = 2;

/** Interval at which requests that take too long to arrive are looked for. */
const CHECK_MS = 1_000;

/** Node 20 does not close a kept-alive socket that was busy when `close()` was called, so such sockets are closed here. */
const IDLE_SWEEP_MS = 100;

/** The parts of an authorized request that its log line names. */
type GrantedRequest = IncomingMessage & { grant?: { caller: { accountId: string }; namespace?: { name: string } } };

/** Express with our code in front. */
export class SlipwayAdapter extends ExpressAdapter {
  /** The OAuth authorization server, before the routes; true when it took the request. */
  authorizationServer: (request: IncomingMessage, response: ServerResponse) => boolean = () => false;

  /** Looks at a request before Express does; true when it took it. */
  fastPath: (request: IncomingMessage, response: ServerResponse) => boolean = () => false;

  /**
   * Takes over the socket of a WebSocket handshake; `head` is what came behind it. Null: a handshake is a request like any
   * other.
   */
  upgrade: ((request: IncomingMessage, socket: Duplex, head: Buffer) => void) | null = null;

  /** True while this process drains: answers close their connections, so that no request meets a closing socket. */
  isDraining = () => false;

  /** Logs each finished request. Null: requests cost nothing to log. */
  log: ((fields: object) => void) | null = null;

  /** Measures every request, before routing. Null: measuring costs nothing. */
  meter: ((request: IncomingMessage, response: ServerResponse) => void) | null = null;

  /** Called when running requests did not finish at shutdown: it answers them. */
  failPendingCalls = () => undefined as void;

  /** Sockets that sent no request yet: Node does not count them as idle, and some clients open one more than they use. */
  private readonly unused = new Set<Socket>();

  /** Time for running requests to finish at shutdown, below the 30 s after which supervisors kill. */
  finishMs = 25_000;

  /** @param env bounds of connections, bodies and answers */
  constructor(private readonly env: Env) {
    const app = express();
    // Before super(), which makes the router: it reads its settings then and never again.
    app.enable('case sensitive routing');
    super(app);
  }

  override initHttpServer(_options: NestApplicationOptions): void {
    const app = this.getInstance<(request: IncomingMessage, response: ServerResponse) => void>();
    const { env } = this;
    const backlog = new ResponseBacklog(env);
    const connections = new KeyedLimiter(env.httpConnectionsPerAddressMax, Infinity);
    const patient = new PerTickQueue(PATIENT_PER_TURN);
    const options = { requestTimeout: env.httpRequestTimeoutMs, connectionsCheckingInterval: CHECK_MS };
    const server = http.createServer(options, (request, response) => {
      this.unused.delete(request.socket);
      if (!backlog.admit(request, response)) return;
      closeIfUnread(request, response);
      if (this.isDraining()) response.shouldKeepAlive = false;
      backlog.address(request);
      const asked = request.url ?? '/';
      request.url = canonicalPath(asked);
      if (request.url !== asked) askedUrls.set(request, asked);
      response.setHeader('x-request-id', identify(request));
      response.setHeader('x-content-type-options', 'nosniff');
      response.setHeader('content-security-policy', NO_PAGE);
      const { log } = this;
      if (log) {
        const startedAt = performance.now();
        const { method, url = '' } = request;
        const address = clientAddress(request, env.trustProxy);
        response.once('close', () => {
          const { grant } = request as GrantedRequest;
          log({
            msg: `${method} ${url.split('?')[0]} ${response.writableFinished ? response.statusCode : 'left'}`,
            requestId: request.headers['x-request-id'],
            address,
            ...(grant && { account: grant.caller.accountId, namespace: grant.namespace?.name }),
            ms: Math.round(performance.now() - startedAt),
          });
        });
      }
      this.meter?.(request, response);
      // A request without a socket was sent before the answer to the one before: its sender can wait.
      if (!response.socket || (request.headers.authorization === undefined && hasBody(request))) {
        patient.run(() => this.route(app, request, response));
      } else this.route(app, request, response);
    });
    server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      this.unused.delete(socket);
      if (!this.upgrade || request.headers.upgrade?.toLowerCase() !== 'websocket') {
        // Some clients offer HTTP/2 with every request (`Upgrade: h2c`), and are to be answered as if they had not (RFC 9110
        // section 7.8). Node emits `upgrade` for any protocol, so the request is read anew.
        const { method, url, httpVersion, rawHeaders } = request;
        const lines = [`${method} ${url} HTTP/${httpVersion}`];
        for (let i = 0; i < rawHeaders.length; i += 2) {
          const name = rawHeaders[i] ?? '';
          if (!/^(connection|upgrade|http2-settings)$/i.test(name)) lines.push(`${name}: ${rawHeaders[i + 1]}`);
        }
        socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
        server.emit('connection', socket);
        return;
      }
      request.url = canonicalPath(request.url ?? '/');
      identify(request);
      this.upgrade(request, socket, head);
    });
    server.on('connection', (socket: Socket) => {
      // A request for another protocol is read anew on its socket, which comes here a second time then.
      if (this.unused.has(socket) || socket.bytesRead > 0) return;
      const address = plainAddress(socket.remoteAddress ?? '');
      const leave = isTrusted(address, env.trustProxy) ? () => undefined : connections.enter(peerOf(address));
      if (!leave) return socket.destroy();
      backlog.watch(socket);
      this.unused.add(socket);
      socket.once('close', () => {
        this.unused.delete(socket);
        leave();
      });
    });
    server.maxConnections = env.httpConnectionsMax;
    server.keepAliveTimeout = KEEP_ALIVE_MS;
    this.httpServer = server;
  }

  /**
   * Stops accepting and lets what runs finish. After 25 s calls are answered with an error; a second later the rest is cut
   * off.
   */
  override async close(): Promise<void> {
    const server = this.getHttpServer() as http.Server;
    const timers = [
      setTimeout(() => this.failPendingCalls(), this.finishMs),
      setTimeout(() => server.closeAllConnections(), this.finishMs + FAREWELL_MS),
    ];
    const sweep = repeat(IDLE_SWEEP_MS, () => {
      server.closeIdleConnections();
      for (const socket of this.unused) socket.destroy();
    });
    try {
      await super.close();
    } finally {
      sweep.stop();
      timers.forEach(clearTimeout);
    }
  }

  private route(
    app: (request: IncomingMessage, response: ServerResponse) => void,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    const traced = tracing();
    if (traced) return traced.handle(request, response, () => this.handle(app, request, response));
    this.handle(app, request, response);
  }

  private handle(
    app: (request: IncomingMessage, response: ServerResponse) => void,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    if (answerCors(request, response, this.env) || this.authorizationServer(request, response)) return;
    if (!this.fastPath(request, response)) app(request, response);
  }
}

/** Request targets that differ from the canonical one in `url`. */
const askedUrls = new WeakMap<IncomingMessage, string>();

/** The request target as its client spelled it, such as the short form of a connection's address. */
export function askedUrl(request: IncomingMessage): string {
  return askedUrls.get(request) ?? request.url ?? '/';
}

/** Gives the request an id, unless its client did. @returns the id */
function identify({ headers }: IncomingMessage): string {
  const asked = headers['x-request-id'];
  return (headers['x-request-id'] = typeof asked === 'string' && REQUEST_ID.test(asked) ? asked : randomUUID());
}
