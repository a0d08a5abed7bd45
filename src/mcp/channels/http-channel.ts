import type { Egress } from '../../platform/egress/egress.js';
import type { Cancellation } from '../cancellation.js';
import type { Channel, Listening, McpCall, McpReply } from '../channel.js';
import { deadlineIn, withinDeadline } from '../deadline.js';
import { CallerLeftError, UpstreamError, UpstreamFailure, UpstreamTimeoutError } from '../mcp-errors.js';
import { headerValue, namedBy, requestText, resultOf, withEnvelope } from '../messages.js';
import type { ServerHello } from '../protocol.js';
import { openSession, type HttpSession } from './http-session.js';
import { HttpWire, SessionLostError, type HttpTarget } from './http-wire.js';

/** A failed handshake is remembered this long, so that a dead upstream costs one dial however many callers wait. */
const FAILURE_MS = 1_000;

/** Methods that change nothing upstream. */
const READS = /^(?:ping|completion\/complete|[\w/]+\/(?:list|read|get))$/;

/** MCP over streamable HTTP, to legacy and modern servers. Answers may be JSON or event streams. */
export class HttpChannel implements Channel {
  private readonly wire: HttpWire;
  private session: HttpSession | null = null;
  private opening: Promise<HttpSession> | null = null;
  private failure: { error: Error; until: number } | null = null;
  private isClosed = false;

  constructor(
    egress: Egress,
    private readonly target: HttpTarget,
  ) {
    this.wire = new HttpWire(egress, target);
  }

  async open(timeoutMs: number): Promise<ServerHello> {
    return (this.session ?? (await this.waitForSession(timeoutMs))).hello;
  }

  async request(call: McpCall): Promise<McpReply> {
    const left = deadlineIn(call.timeoutMs);
    const session = this.session ?? (await this.waitForSession(call.timeoutMs, call.cancellation));
    try {
      return await this.send(session, call, left());
    } catch (error) {
      if (error instanceof SessionLostError) {
        if (this.session === session) this.session = null;
        return await this.send(await this.waitForSession(left(), call.cancellation), call, left(), true);
      }
      // What only reads may run again when its answer was lost; a tool may not, nor a method we do not know.
      const isLost = error instanceof UpstreamError && error.outcomeUnknown && READS.test(call.method);
      if (isLost && !call.cancellation?.isCancelled) return await this.send(session, call, left(), true);
      throw error;
    }
  }

  async listen(): Promise<Listening> {
    return { honoured: {}, close: async () => undefined };
  }

  async release(): Promise<void> {}

  async close(): Promise<void> {
    this.isClosed = true;
    const { session, opening } = this;
    this.session = null;
    if (session) await this.end(session);
    // A handshake under way is not waited for: its session ends when it is there.
    else void opening?.then((opened) => this.end(opened)).catch(() => undefined);
  }

  private async end(session: HttpSession): Promise<void> {
    this.session = null;
    if (session.id) await this.wire.endSession(session.headers);
  }

  /** The session, opened once however many callers wait. Leaving does not disturb the handshake the others wait for. */
  private waitForSession(timeoutMs: number, cancellation?: Cancellation): Promise<HttpSession> {
    if (this.session) return Promise.resolve(this.session);
    if (this.isClosed) return Promise.reject(new UpstreamError('The connection was changed or deleted meanwhile.'));
    if (this.failure && Date.now() < this.failure.until) return Promise.reject(this.failure.error);
    this.failure = null;
    this.opening ??= openSession(this.wire)
      .then((session) => (this.session = session))
      .catch((error: Error) => {
        this.failure = { error, until: Date.now() + FAILURE_MS };
        throw error;
      })
      .finally(() => (this.opening = null));
    return withinDeadline(
      this.opening,
      timeoutMs,
      `${this.target.url.host} did not open a session in time.`,
      cancellation,
    );
  }

  private async send(session: HttpSession, call: McpCall, timeoutMs: number, isRepeat = false): Promise<McpReply> {
    const isLegacy = session.hello.era === 'legacy';
    const id = this.wire.nextId;
    try {
      const { reply } = await this.wire.ask({
        ...call,
        era: session.hello.era,
        ...(isLegacy ? { headers: session.headers } : modernForm(session, call)),
        timeoutMs,
        mayLoseSession: session.id !== null && !isRepeat,
      });
      if (!isLegacy) refuseInputRequest(reply);
      return reply;
    } catch (error) {
      const isOpen = error instanceof UpstreamTimeoutError || error instanceof CallerLeftError;
      if (isOpen && isLegacy) this.cancel(session, id);
      throw error instanceof UpstreamFailure && call.method === 'tools/call' ? error.ofCall() : error;
    }
  }

  /** Tells a legacy server that nobody waits any more; closing the socket alone does not mean that to it. */
  private cancel(session: HttpSession, requestId: number): void {
    const params = JSON.stringify({ requestId, reason: 'nobody waits for the answer any more' });
    this.wire.aside(session.headers, requestText(null, 'notifications/cancelled', params));
  }
}

/** Headers and params of a request to a modern server, which repeats in headers what it is about. */
function modernForm(
  { headers, hello }: HttpSession,
  { method, params }: McpCall,
): { headers: Record<string, string>; params: string } {
  const named = namedBy.get(method);
  const name = named && params ? (JSON.parse(params) as Record<string, unknown>)[named] : undefined;
  return {
    headers: {
      ...headers,
      'mcp-method': method,
      ...(typeof name === 'string' ? { 'mcp-name': headerValue(name) } : {}),
    },
    params: withEnvelope(params, hello.protocolVersion),
  };
}

function refuseInputRequest(reply: McpReply): void {
  if (!reply.result || !reply.text.includes('"input_required"')) return;
  if ((resultOf(reply) as { resultType?: unknown }).resultType !== 'input_required') return;
  throw new UpstreamError('The MCP server asks its user for input, which this connection cannot pass on.');
}
