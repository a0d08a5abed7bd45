/**
 * The HTTP server in front of Express. Each request gets its canonical path, an `x-request-id` (the client's if it is
 * harmless) and the headers that forbid browsers to run a response. Then it goes to CORS, the authorization server, the
 * fast path, or Express.
 *
 * Connections of one address and in all (`HTTP_CONNECTIONS_…`), unread responses (`response-backlog.ts`) and the time
 * of a request are limited; above a limit connections are cut off or their further requests not executed. Two pipelined
 * requests, or requests with a body and without a key, run per turn of the event loop, because rejecting many at the
 * same time delays other calls.
 *
 * Shutdown: no new connections; after 25 s running calls get an error, a second later sockets are closed.
 */
import { randomUUID } from 'node:crypto';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { NestApplicationOptions } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import express from 'express';
import type { Env } from '../../config/env.js';
import type { Tuning } from '../../config/tuning.js';
import { KeyedLimiter } from '../limits/keyed-limiter.js';
import { canonicalPath } from './canonical-path.js';
import { clientAddress, isTrusted, peerOf, plainAddress } from './client-address.js';
import { InvalidInputError, TooLargeError, TooSlowError } from '../errors/domain-error.js';
import { errorAnswer } from '../errors/error-body.js';
import { familyOf } from '../errors/error-form.decorator.js';
import { closeIfUnread, hasBody } from './body/unread-body.js';
import { answerCors } from './cors.js';
import { ResponseBacklog } from './response-backlog.js';
import { repeat } from '../schedule/repeat.js';
import { PerTickQueue } from '../schedule/paced-work.js';
import { tracing } from '../telemetry/tracing.js';
import { setImmediate as immediate, setTimeout as wait } from 'node:timers/promises';

/** Request ids of a client or proxy that are harmless to log and to send back. */
const REQUEST_ID = /^[A-Za-z0-9._-]{8,128}$/;

/** Policy of every response that is not a page: browsers do not run it, load content for it, or show it in a frame. */
const NO_PAGE = "sandbox; default-src 'none'; frame-ancestors 'none'";

/** Keep-alive time, longer than the 60 s of common proxies, so that the proxy closes first and never uses a closing socket. */
const KEEP_ALIVE_MS = 65_000;

/** Time for clients to receive the errors of unfinished calls. */
const FAREWELL_MS = 1_000;

/**
 * Low-priority requests per turn of the event loop: pipelined ones, and those with a body and without a key. Rejecting
 * an unfinished body takes about 0.3 ms, mostly in the kernel. When 1,200 arrive together, the p95 of a neighbour's
 * calls was 190 to 440 ms, and 20 with this limit (`node bench/hostile.mjs --only s2`). During pipelined requests for
 * public documents, the p95 of its reads was 67 ms, and 17 with it (`--only n1`).
 */
const PATIENT_PER_TURN = 2;

const CHECK_MS = 1_000;

/** Interval of closing idle sockets: Node 20 does not close a kept-alive socket that was busy when `close()` was called. */
const IDLE_SWEEP_MS = 100;

/** Longest time to accept connections that the kernel has already set up before closing, which would reset them. */
const LAST_ACCEPTS_MS_MAX = 500;

/** Turns of the event loop without a new connection after which none is left to accept. */
const QUIET_TURNS = 4;

/** Time for the first request of a connection accepted last. */
const FIRST_REQUEST_MS = 1_000;

type GrantedRequest = IncomingMessage & { grant?: { caller: { accountId: string }; namespace?: { name: string } } };

export interface ServerParts {
  /** Receives a request before Express; returns true when it handles the request. */
  take?: (request: IncomingMessage, response: ServerResponse) => boolean;
  /**
   * Takes over the socket of a WebSocket handshake; `head` is the data after it. Without this function a handshake is a
   * request like any other.
   */
  upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** True while this process drains: responses close their connections, so that no request meets a closing socket. */
  isDraining?: () => boolean;
  log?: (fields: object) => void;
  /** Called before routing. */
  meter?: (request: IncomingMessage, response: ServerResponse) => void;
  /** Server of this worker's own port, whose connections are handed to the HTTP server. */
  internal?: Server;
  failPendingCalls?: () => void;
}

export class SlipwayAdapter extends ExpressAdapter {
  /**
   * Sockets without a request so far: Node does not count them as idle, and some clients open one more than they use.
   */
  private readonly unused = new Set<Socket>();

  /** Time for running requests to finish at shutdown, below the 30 s after which supervisors kill. */
  finishMs = 25_000;

  /**
   * @param tuning limits of connections, bodies and responses
   * @param parts filled when the application is created, which is after its adapter
   */
  constructor(
    private readonly env: Env,
    private readonly tuning: Tuning,
    private readonly parts: ServerParts,
  ) {
    const app = express();
    // Before super(): the router that it creates reads its settings only then.
    app.enable('case sensitive routing');
    super(app);
  }

  override initHttpServer(_options: NestApplicationOptions): void {
    const app = this.getInstance<(request: IncomingMessage, response: ServerResponse) => void>();
    const { env, tuning } = this;
    const backlog = new ResponseBacklog(tuning.httpUnreadBytes, env.trustProxy);
    const connections = new KeyedLimiter(env.httpConnectionsPerAddressMax, Infinity);
    const patient = new PerTickQueue(PATIENT_PER_TURN);
    const options = { requestTimeout: tuning.httpRequestTimeoutMs, connectionsCheckingInterval: CHECK_MS };
    const server = http.createServer(options, (request, response) => {
      this.unused.delete(request.socket);
      if (!backlog.admit(request, response)) return;
      closeIfUnread(request, response);
      const { isDraining, log, meter } = this.parts;
      if (isDraining?.()) response.shouldKeepAlive = false;
      backlog.address(request);
      const rawUrl = request.url ?? '/';
      request.url = canonicalPath(rawUrl);
      if (request.url !== rawUrl) askedUrls.set(request, rawUrl);
      response.setHeader('x-request-id', identify(request));
      response.setHeader('x-content-type-options', 'nosniff');
      response.setHeader('content-security-policy', NO_PAGE);
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
      meter?.(request, response);
      // A request without a socket was sent before the previous response: it can wait.
      if (!response.socket || (request.headers.authorization === undefined && hasBody(request))) {
        patient.run(() => this.route(app, request, response));
      } else this.route(app, request, response);
    });
    server.on('clientError', (error, socket) => refuseUnread(error, socket as Socket, tuning));
    server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      this.unused.delete(socket);
      const { upgrade } = this.parts;
      if (!upgrade || request.headers.upgrade?.toLowerCase() !== 'websocket') {
        // Some clients offer HTTP/2 with every request (`Upgrade: h2c`), which must be ignored (RFC 9110 section 7.8).
        // Node emits `upgrade` for any protocol, so the request is read again.
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
      upgrade(request, socket, head);
    });
    server.on('connection', (socket: Socket) => {
      // A request for another protocol is read again on its socket, which then arrives here a second time.
      if (this.unused.has(socket) || socket.bytesRead > 0) return;
      const address = plainAddress(socket.remoteAddress ?? '');
      const leave = isTrusted(address, env.trustProxy) ? () => undefined : connections.acquire(peerOf(address));
      if (!leave) return socket.destroy();
      backlog.watch(socket);
      this.unused.add(socket);
      socket.once('close', () => {
        this.unused.delete(socket);
        leave();
      });
    });
    server.maxConnections = tuning.httpConnectionsMax;
    server.keepAliveTimeout = KEEP_ALIVE_MS;
    this.httpServer = server;
  }

  /**
   * Closes the server, and serves earlier connections: closing them unread would reset them, and a client could not know whether its
   * request was executed. After 25 s calls get an error; a second later the rest is cut off.
   */
  override async close(): Promise<void> {
    const server = this.getHttpServer() as http.Server;
    const serveLast = await this.acceptLast(server);
    const closedAt = performance.now();
    const { internal } = this.parts;
    const isInternalClosed = internal && new Promise<unknown>((resolve) => internal.close(resolve));
    const timers = [
      setTimeout(() => this.parts.failPendingCalls?.(), this.finishMs),
      setTimeout(() => server.closeAllConnections(), this.finishMs + FAREWELL_MS),
    ];
    const sweep = repeat(IDLE_SWEEP_MS, () => {
      server.closeIdleConnections();
      if (performance.now() - closedAt > FIRST_REQUEST_MS) for (const socket of this.unused) socket.destroy();
    });
    try {
      const isClosed = super.close();
      serveLast();
      await Promise.all([isClosed, isInternalClosed]);
    } finally {
      sweep.stop();
      timers.forEach(clearTimeout);
    }
  }

  /**
   * Accepts connections until none arrives for a moment, without responding: a client that waits opens no further connection,
   * which closing the port would reset. @returns a function that serves these connections
   */
  private async acceptLast(server: http.Server): Promise<() => void> {
    if (!server.listening) return () => undefined;
    const listeners = server.listeners('connection');
    const sockets: Socket[] = [];
    let quietTurns = 0;
    server.removeAllListeners('connection').on('connection', (socket) => {
      sockets.push(socket.on('error', () => undefined));
      quietTurns = 0;
    });
    Object.assign(server, { pauseOnConnect: true });
    const from = performance.now();
    // A turn of the loop accepts between its timers and its immediates. On a busy machine, elapsed time says nothing
    // about the queue.
    for (; quietTurns < QUIET_TURNS && performance.now() - from < LAST_ACCEPTS_MS_MAX; quietTurns += 1) {
      await wait(5);
      await immediate();
    }
    return () => {
      server.removeAllListeners('connection');
      for (const listener of listeners) server.on('connection', listener as (socket: Socket) => void);
      for (const socket of sockets) {
        server.emit('connection', socket);
        socket.resume();
      }
    };
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
    if (!answerCors(request, response, this.env) && !this.parts.take?.(request, response)) app(request, response);
  }
}

/** Request targets as sent, if they differ from the canonical `url`. */
const askedUrls = new WeakMap<IncomingMessage, string>();

/** Returns the target as the client spelled it, such as the short form of a connection's address. */
export function askedUrl(request: IncomingMessage): string {
  return askedUrls.get(request) ?? request.url ?? '/';
}

/** Keeps the id that the client sent, if it is harmless. @returns the id */
function identify({ headers }: IncomingMessage): string {
  const sentId = headers['x-request-id'];
  return (headers['x-request-id'] = typeof sentId === 'string' && REQUEST_ID.test(sentId) ? sentId : randomUUID());
}

/** Responds to a request that Node could not read, or did not receive in time, as Node does, but with a body. */
function refuseUnread(
  error: Error & { code?: string; rawPacket?: Buffer },
  socket: Socket & { _httpMessage?: { _headerSent: boolean } | null },
  { httpRequestTimeoutMs }: Tuning,
): void {
  if (socket.writable && !socket._httpMessage?._headerSent) {
    const [status, failure] =
      error.code === 'HPE_HEADER_OVERFLOW'
        ? [431, new TooLargeError(`The headers of the request exceed ${http.maxHeaderSize / 1_024} KB.`)]
        : error.code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW'
          ? [413, new TooLargeError('The chunk extensions of the request exceed 16 KB.')]
          : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
            ? [408, new TooSlowError(httpRequestTimeoutMs)]
            : [400, new InvalidInputError('The request is not valid HTTP/1.1.')];
    const [, method, path = '/'] = /^([A-Z]+) ([^ ?]+)/.exec(error.rawPacket?.toString('latin1', 0, 2_048) ?? '') ?? [];
    const body = JSON.stringify(errorAnswer(failure, familyOf(canonicalPath(path), method)).body);
    const head = [
      `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}`,
      'connection: close',
      'content-type: application/json; charset=utf-8',
      `content-length: ${Buffer.byteLength(body)}`,
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  }
  socket.destroy(error);
}
