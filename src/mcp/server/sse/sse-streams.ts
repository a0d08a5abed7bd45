import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { InternalClient } from '../../../platform/internal-http/internal-client.js';
import { Vault } from '../../../platform/vault/vault.js';
import { acceptsType, namesType } from '../../../platform/text/media-type.js';
import { Cancellation } from '../../protocol/cancellation.js';
import { parseMessage } from '../../protocol/messages.js';
import { type CallObserver, type McpResponseSink, silentSink } from '../mcp-request.js';
import { McpSessionNotFoundError } from '../mcp-server.errors.js';
import { closed, type ResponseSink } from '../response-sink.js';
import { postToRemoteStream } from './remote-sse-streams.js';
import type { ClientSession } from '../sessions/session-ids.js';
import { SealedStreamIds } from '../sessions/sealed-stream-ids.js';

const STREAM_PARAM = 'slipwayStream';

export interface SseServer {
  serve(
    text: string,
    session: ClientSession | null,
    sink: McpResponseSink,
    cancellation: Cancellation,
    observer?: CallObserver,
  ): Promise<void>;
  /** Returns the session of an id that the MCP server has just issued. */
  sessionOf(id: string): ClientSession | null;
  /** @returns function that stops the notifications */
  listen(session: ClientSession, sink: McpResponseSink): (() => void) | null;
  leave(session: ClientSession): void;
}

/** A client of MCP 2024-11-05: one stream carries the responses to all messages that it posts; closing the stream closes its session. */
class SseClient {
  private session: ClientSession | null = null;
  private readonly running = new Set<Cancellation>();
  private stop: (() => void) | null = null;

  constructor(
    private readonly stream: Pick<McpResponseSink, 'event' | 'close'>,
    private readonly server: SseServer,
  ) {}

  /** Closes the stream if the target no longer exists. The promise never rejects. */
  async serveMessage(text: string, observer?: CallObserver): Promise<void> {
    const cancellation = new Cancellation();
    this.running.add(cancellation);
    const sink: McpResponseSink = {
      ...silentSink,
      reply: (_status, answer, sessionId) => {
        const session = sessionId === undefined || this.session ? null : this.server.sessionOf(sessionId);
        if (session) {
          this.session = session;
          this.stop = this.server.listen(session, {
            ...silentSink,
            event: (message) => this.stream.event(message),
            close: () => this.stream.close(),
          });
        }
        if (answer !== null && !cancellation.isCancelled) this.stream.event(answer);
      },
      event: (message) => this.stream.event(message),
    };
    try {
      await this.server.serve(text, this.session, sink, cancellation, observer);
    } catch (error) {
      observer?.failed(error as Error);
      this.stream.close();
    } finally {
      this.running.delete(cancellation);
    }
  }

  /** Cancels the calls after the client's stream has closed. */
  cancelCalls(): void {
    for (const cancellation of [...this.running]) cancellation.cancel();
    this.stop?.();
    if (this.session) this.server.leave(this.session);
  }
}

@Injectable()
export class SseStreams {
  private readonly streamIds: SealedStreamIds;
  private readonly clients = new Map<string, SseClient>();

  constructor(
    vault: Vault,
    private readonly env: Env,
    private readonly internalClient: InternalClient,
  ) {
    this.streamIds = new SealedStreamIds(vault, env);
  }

  /** Serves a stream until its client disconnects. The client posts to the address of this request with a parameter. */
  async serve(
    { url = '' }: IncomingMessage,
    response: ServerResponse,
    sink: ResponseSink,
    caller: string,
    server: SseServer,
  ): Promise<void> {
    const [path = '', search] = url.split('?', 2);
    const { pathname } = new URL(this.env.baseUrl);
    const name = this.streamIds.create();
    const query = new URLSearchParams(search);
    query.set(STREAM_PARAM, this.streamIds.seal(name, caller));
    const client = new SseClient(sink, server);
    this.clients.set(name, client);
    sink.openFor(`${pathname === '/' ? '' : pathname}${path}?${query.toString()}`);
    await closed(response);
    this.clients.delete(name);
    client.cancelCalls();
  }

  /** Posts to a stream, which any process can hold. @throws McpSessionNotFoundError */
  async post(
    sealed: string,
    caller: string,
    text: string,
    response: ServerResponse,
    observer?: CallObserver,
  ): Promise<void> {
    const ref = this.streamIds.open(sealed, caller);
    if (!ref) throw new McpSessionNotFoundError();
    const onTaken = () => void response.writeHead(202).end();
    if (this.streamIds.isOwn(ref)) return this.serveMessage(ref.name, text, onTaken, observer);
    const head = parseMessage(text);
    if (head) observer?.received(typeof head.method === 'string' ? head.method : null, head.params);
    await postToRemoteStream(this.internalClient, ref, text, onTaken, observer);
  }

  /**
   * Serves a message of a stream that this process must hold.
   *
   * @param onTaken called before the message is served
   * @throws McpSessionNotFoundError when the stream has closed
   */
  async serveMessage(name: string, text: string, onTaken: () => void, observer?: CallObserver): Promise<void> {
    const client = this.clients.get(name);
    if (!client) throw new McpSessionNotFoundError();
    onTaken();
    await client.serveMessage(text, observer);
  }
}

/** Returns the sealed name of the stream to which a message is posted; null for requests of other clients. */
export function sseStreamOf({ url = '' }: IncomingMessage): string | null {
  const mark = url.indexOf('?');
  return mark < 0 ? null : new URLSearchParams(url.slice(mark)).get(STREAM_PARAM);
}

/**
 * Returns true for a GET that opens a stream of HTTP+SSE: clients of newer revisions send a session id or their
 * revision, and browsers name HTML.
 */
export function opensSseStream({ method, headers }: IncomingMessage): boolean {
  const isPlain = headers['mcp-session-id'] === undefined && headers['mcp-protocol-version'] === undefined;
  const { accept } = headers;
  const isPage = namesType(accept, 'text/html') && !namesType(accept, 'text/event-stream');
  return method === 'GET' && isPlain && !isPage && acceptsType(accept, 'text/event-stream');
}
