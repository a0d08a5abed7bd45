/**
 * Streamable HTTP (MCP 2025-11-25) on a unix socket in front of a bundle. `initialize` starts a session with a process
 * of its own; its `Mcp-Session-Id` routes every further request there.
 *
 * The query of the `initialize` has the caller's configuration values, which become arguments and environment of the
 * process.
 *
 * JSON-RPC errors with their HTTP status: unknown session 404, request without a session 400 or 405, missing
 * configuration 400 (-32602), no free slot or a bundle that is being replaced 503, a body that is too large 413.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { readWithin } from '../../platform/egress/follow.js';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import { repeat, type Repeat } from '../../platform/schedule/repeat.js';
import { isObject } from '../../platform/text/json.js';
import { HostedFailure, ProgramBusyError } from '../hosting.errors.js';
import type { Launch } from '../sandbox/sandbox.js';
import { BundleSession, MESSAGE_BYTES_MAX, type SessionHandlers, type SessionLimits } from './bundle-session.js';
import { exactJsonIn } from '../../platform/text/exact-json.js';

const SWEEP_MS_MAX = 5_000;

export interface BundleServerOptions {
  /** @throws InvalidInputError, HostedFailure */
  command(query: URLSearchParams): Promise<Launch>;
  limits: SessionLimits;
  idleMs: number;
  /** Returns the release of the slot. @throws ProgramBusyError */
  place(): () => void;
  handlers: Omit<SessionHandlers, 'onEnd'>;
}

export class BundleServer {
  private readonly sessions = new Map<string, BundleSession>();
  private readonly server: Server;
  private readonly sweeper: Repeat;
  private isClosed = false;

  constructor(private readonly options: BundleServerOptions) {
    this.server = createServer((request, response) => void this.serve(request, response));
    this.server.on('clientError', (_error, socket) => socket.destroy());
    const everyMs = Math.min(SWEEP_MS_MAX, options.idleMs / 2);
    this.sweeper = repeat(everyMs, () => {
      const before = Date.now() - options.idleMs;
      for (const session of this.sessions.values()) if (!session.isBusy && session.lastUsed < before) session.stop();
    });
  }

  get size(): number {
    return this.sessions.size;
  }

  async listen(path: string): Promise<void> {
    await once(this.server.listen(path), 'listening');
    this.server.on('error', (error) =>
      this.options.handlers.log('warn', { msg: 'the server of a bundle failed', err: error }),
    );
  }

  /** Closes the sessions, or kills them if `now` is true. Resolves after the processes have exited. */
  async close(now: boolean): Promise<void> {
    this.isClosed = true;
    this.sweeper.stop();
    const sessions = [...this.sessions.values()];
    for (const session of sessions) {
      if (now) session.kill();
      else session.stop();
    }
    await Promise.all(sessions.map(({ ended }) => ended));
    this.server.closeAllConnections();
    this.server.close();
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => request.destroy());
    try {
      const id = request.headers['mcp-session-id'];
      const session = typeof id === 'string' ? this.sessions.get(id) : undefined;
      if (id !== undefined && !session) return refuse(response, 404, -32001, 'Session not found: initialize again.');
      if (request.method !== 'POST') {
        if (!session) return refuse(response, 405, -32000, 'Only POST opens a session.');
        return await session.serve(request, response);
      }
      const text = await readWithin(request, MESSAGE_BYTES_MAX);
      if (text === null) return refuse(response, 413, -32700, 'The message is too large.');
      const body = exactJsonIn(text.toString('utf8'));
      if (body === undefined) return refuse(response, 400, -32700, 'The message is not JSON.');
      if (session) return await session.serve(request, response, body);
      if (!(isObject(body) && body.method === 'initialize'))
        return refuse(response, 400, -32000, 'No session: initialize first.');
      await (await this.open(request)).serve(request, response, body);
    } catch (error) {
      this.failed(error, response);
    }
  }

  /** @throws ProgramBusyError; HostedFailure of the command; errors of `spawn` for impossible arguments, such as zero bytes */
  private async open(request: IncomingMessage): Promise<BundleSession> {
    if (this.isClosed) throw replacedError();
    const query = new URL(request.url ?? '/', 'http://bundle').searchParams;
    const leave = this.options.place();
    try {
      const launch = await this.options.command(query);
      if (this.isClosed) throw replacedError();
      const session: BundleSession = new BundleSession(launch, this.options.limits, {
        ...this.options.handlers,
        onEnd: () => {
          this.sessions.delete(session.id);
          leave();
        },
      });
      this.sessions.set(session.id, session);
      return session;
    } catch (error) {
      leave();
      throw error;
    }
  }

  private failed(error: unknown, response: ServerResponse): void {
    if (response.headersSent) return void response.destroy();
    if (error instanceof InvalidInputError) return refuse(response, 400, -32602, error.message);
    if (error instanceof HostedFailure) return refuse(response, 503, -32000, error.message);
    this.options.handlers.log('error', { msg: 'a request to a bundle failed', err: error });
    refuse(response, 500, -32603, 'The server could not process the request.');
  }
}

function replacedError(): ProgramBusyError {
  return new ProgramBusyError('The server is being replaced by a newer version: try again.');
}

function refuse(response: ServerResponse, status: number, code: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } }));
}
