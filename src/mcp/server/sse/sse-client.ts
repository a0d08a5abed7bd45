import { Cancellation } from '../../protocol/cancellation.js';
import { type CallObserver, type McpResponseSink, silentSink } from '../mcp-request.js';
import type { ClientSession } from '../sessions/session-ids.js';

/** Functions of the MCP server that a client of HTTP+SSE uses. */
export interface SseServer {
  /** Answers a message through the sink. */
  serve(
    text: string,
    session: ClientSession | null,
    sink: McpResponseSink,
    cancellation: Cancellation,
    observer?: CallObserver,
  ): Promise<void>;
  /** Reads a session id that the MCP server has just issued. */
  sessionOf(id: string): ClientSession | null;
  /** Begins the notifications of a session. @returns function that ends them */
  listen(session: ClientSession, sink: McpResponseSink): (() => void) | null;
  /** Ends the session of a client that has left. */
  leave(session: ClientSession): void;
}

/**
 * A client of HTTP+SSE (MCP 2024-11-05): one stream carries the answers to all messages that it posts, and ends its session.
 */
export class SseClient {
  /** Session after `initialize`; null before. */
  private session: ClientSession | null = null;
  private readonly running = new Set<Cancellation>();
  private stop: (() => void) | null = null;

  constructor(
    private readonly stream: Pick<McpResponseSink, 'event' | 'end'>,
    private readonly server: SseServer,
  ) {}

  /** Serves one posted message; a target that is gone ends the stream. Never rejects. */
  async take(text: string, observer?: CallObserver): Promise<void> {
    const cancellation = new Cancellation();
    this.running.add(cancellation);
    const sink: McpResponseSink = {
      ...silentSink,
      reply: (_status, answer, sessionId) => {
        this.begin(sessionId);
        // A cancelled request is not answered.
        if (answer !== null && !cancellation.isCancelled) this.stream.event(answer);
      },
      event: (message) => this.stream.event(message),
    };
    try {
      await this.server.serve(text, this.session, sink, cancellation, observer);
    } catch (error) {
      observer?.failed(error as Error);
      this.stream.end();
    } finally {
      this.running.delete(cancellation);
    }
  }

  /** Cancels what runs for the client, whose stream has ended. */
  leave(): void {
    for (const cancellation of [...this.running]) cancellation.cancel();
    this.stop?.();
    if (this.session) this.server.leave(this.session);
  }

  private begin(id: string | undefined): void {
    const session = id === undefined || this.session ? null : this.server.sessionOf(id);
    if (!session) return;
    this.session = session;
    this.stop = this.server.listen(session, {
      ...silentSink,
      event: (message) => this.stream.event(message),
      end: () => this.stream.end(),
    });
  }
}
