import { parseUrl } from '../../../config/parse-url.js';
import type { CallerProfile, McpCall } from '../../protocol/channel.js';
import { withinDeadline } from '../../protocol/deadline.js';
import { UpstreamError, notMcp } from '../../protocol/mcp-errors.js';
import { parseMessage } from '../../protocol/messages.js';
import { HandshakeRefusedError, refusalText } from '../protocol-adapter.js';
import type { StreamAnswer } from './http-exchange.js';
import { type HttpWire, showsLoss } from './http-wire.js';
import { SessionLostError } from '../may-resend.js';
import { type Pipe, PipeSession } from '../pipe-session.js';
import type { LegacySession, SessionHandlers } from '../session-slots.js';

/**
 * Opens a session of 2024-11-05: one GET stream carries all server messages, and a POST endpoint takes client messages.
 *
 * @param endpointMs timeout of the `endpoint` event
 * @param onStream called once the stream is open, whatever happens next
 * @throws UpstreamFailure
 */
export async function openSse(
  wire: HttpWire,
  profile: CallerProfile | undefined,
  handlers: SessionHandlers,
  endpointMs = wire.target.connectTimeoutMs,
  onStream?: () => void,
): Promise<LegacySession> {
  const pipe = new SsePipe(wire);
  const session = new PipeSession(pipe, profile?.capabilities, handlers);
  try {
    await pipe.open(session, endpointMs, onStream);
    await session.begin(wire.target.connectTimeoutMs);
  } catch (error) {
    await session.close();
    throw error;
  }
  return session;
}

class SsePipe implements Pipe {
  readonly host: string;
  private readonly headers: Record<string, string>;
  private stream: StreamAnswer | null = null;
  private endpoint: URL;

  constructor(private readonly wire: HttpWire) {
    this.host = wire.target.url.host;
    this.headers = { ...wire.headers, 'content-type': 'application/json' };
  }

  /**
   * Opens the stream. The POST address must have the same origin; otherwise another site would receive our headers. The session closes
   * with the stream, which carries all responses.
   */
  async open(session: PipeSession, timeoutMs: number, onStream?: () => void): Promise<void> {
    const { headers, target } = this.wire;
    const { url } = target;
    let opened!: Promise<StreamAnswer>;
    const endpointPath = new Promise<string>((resolve, reject) => {
      opened = this.wire.stream({
        method: 'GET',
        headers: { ...headers, accept: 'text/event-stream' },
        timeoutMs,
        onMessage: (data) => {
          const head = parseMessage(data);
          return head !== null && session.receive(head, data);
        },
        onOther: (event, data) => event === 'endpoint' && resolve(data),
        onEnd: (error) => {
          const reason = error ?? this.toClosedError();
          reject(reason);
          session.fail(reason);
        },
      });
    });
    endpointPath.catch(() => undefined);
    const stream = await opened;
    if (stream.text !== null) {
      throw stream.status >= 200 && stream.status < 300
        ? notMcp(url, stream.contentType, stream.text)
        : this.wire.statusError(stream);
    }
    this.stream = stream;
    onStream?.();
    const late = `${url.host} opened an event stream and named no endpoint: is the path right?`;
    const endpoint = parseUrl(await withinDeadline(endpointPath, timeoutMs, late), url);
    if (endpoint?.origin !== url.origin) {
      const text = `${url.host} names an endpoint that is not on the same site: it is not used.`;
      throw new UpstreamError(text, { outcomeUnknown: false, failure: 'not our MCP' });
    }
    this.endpoint = endpoint;
  }

  takeId(): number {
    return this.wire.takeId();
  }

  /** Sends a message. Its reply arrives on the stream, and the response to the POST only confirms receipt. */
  async send(text: string, { cancellation, timing, method }: McpCall, timeoutMs: number): Promise<void> {
    try {
      await this.wire.post(this.endpoint, this.headers, text, { timeoutMs, cancellation, timing });
    } catch (error) {
      const status = error instanceof UpstreamError && method !== 'initialize' ? error.status : null;
      const isForgotten = status === 404 || (status !== null && showsLoss(status, (error as Error).message, null));
      throw isForgotten ? new SessionLostError() : error;
    }
  }

  notify(text: string): void {
    this.wire.sendOneWay(this.headers, text, this.endpoint);
  }

  sendResponse(text: string): void {
    this.wire.postResponse(this.headers, text, this.endpoint);
  }

  toRejection(message: string): Error {
    return new HandshakeRefusedError(refusalText(this.wire.target, message), false);
  }

  toClosedError(): UpstreamError {
    return new UpstreamError(`${this.host} closed the event stream that carries its replies.`, {
      outcomeUnknown: true,
    });
  }

  close(): void {
    this.stream?.close();
    this.stream = null;
  }
}
