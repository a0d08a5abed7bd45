import { Logger } from '@nestjs/common';
import type { CallerProfile, McpCall, McpReply } from '../../protocol/channel.js';
import { CallerLeftError, UpstreamFailure, UpstreamTimeoutError } from '../../protocol/mcp-errors.js';
import { parseMessage, requestText, resultOf } from '../../protocol/messages.js';
import { rpcCode, type UpstreamIdentity } from '../../protocol/protocol.js';
import { helloOfInitialize, initializeParams } from '../../protocol/session.js';
import { HandshakeRefusedError } from '../protocol-adapter.js';
import type { StreamAnswer } from './event-stream.js';
import type { HttpWire } from './http-wire.js';
import type { LegacySession, SessionEars } from '../session-slots.js';
import { UpstreamRequestResponder } from '../upstream-request-responder.js';
import { refusalText } from '../refusal.js';

/** Refusals of `initialize` behind which a modern server may stand. */
const modernHints: ReadonlySet<number> = new Set([
  rpcCode.unsupportedVersion,
  rpcCode.methodNotFound,
  rpcCode.headerMismatch,
]);

/** How long a session waits for the stream on which its server may ask its caller things, before it does without. */
const STREAM_WAIT_MS = 2_000;

/** That stream is opened again after 1 s, then 2 s, …, and given up after this many failures in a row. */
const STREAM_RETRY_MS = 1_000;
const STREAM_RETRIES_MAX = 5;

/**
 * Opens a session over streamable HTTP: `initialize` and its notification, which some servers insist on before anything
 * else. For a caller who can be asked, the server's own stream too, if it has one.
 *
 * @throws UpstreamFailure
 */
export async function openStreamable(
  wire: HttpWire,
  profile: CallerProfile | undefined,
  ears: SessionEars,
): Promise<LegacySession> {
  const { url, connectTimeoutMs: timeoutMs } = wire.target;
  const base = { ...wire.headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const call = { method: 'initialize', params: initializeParams(profile?.capabilities) };
  const name = profile ? wire.nameOf(profile.key) : {};
  const { reply, headers } = await wire.ask(call, { era: 'legacy', headers: { ...base, ...name }, timeoutMs });
  if (reply.error) {
    const { code, message } = reply.error;
    throw new HandshakeRefusedError(refusalText(wire.target, message), modernHints.has(code));
  }
  const hello = helloOfInitialize(resultOf(reply), url);
  const id = typeof headers['mcp-session-id'] === 'string' ? headers['mcp-session-id'] : null;
  const isKept = Object.keys(name).some((header) => headers[header] !== undefined);
  const session = new StreamableSession(wire, hello, { id, isKept }, base, ears, canBeAsked(profile));
  await session.begin(timeoutMs);
  return session;
}

/** A caller that only wants a session of its own is asked nothing, so nobody has to listen for questions. */
function canBeAsked(profile: CallerProfile | undefined): boolean {
  return profile !== undefined && Object.keys(profile.capabilities).length > 0;
}

/** What the upstream said of a session as it opened. */
interface SessionRef {
  /** Null without sessions. */
  id: string | null;
  /** It keeps it by the name it was opened with: whoever opens it again, from any process, goes on with it. */
  isKept: boolean;
}

class StreamableSession implements LegacySession {
  private readonly headers: Record<string, string>;
  private readonly streamHeaders: Record<string, string>;
  /** The questions of the calls that run, newest last: what the server asks by its own stream is for the last of them. */
  private readonly inFlight: UpstreamRequestResponder[] = [];
  private stream: StreamAnswer | null = null;
  private retry: NodeJS.Timeout | undefined;
  private isEnded = false;
  private readonly logger = new Logger('mcp');

  constructor(
    private readonly wire: HttpWire,
    readonly hello: UpstreamIdentity,
    private readonly ref: SessionRef,
    base: Record<string, string>,
    private readonly ears: SessionEars,
    private readonly isInteractive: boolean,
  ) {
    const { id } = ref;
    this.headers = {
      ...base,
      'mcp-protocol-version': hello.protocolVersion,
      ...(id === null ? {} : { 'mcp-session-id': id }),
    };
    const { 'content-type': _, ...streamHeaders } = this.headers;
    this.streamHeaders = { ...streamHeaders, accept: 'text/event-stream' };
  }

  async begin(timeoutMs: number): Promise<void> {
    try {
      await this.wire.tell(this.headers, 'notifications/initialized', timeoutMs);
    } catch (error) {
      void this.end();
      throw error;
    }
    if (this.isInteractive) await this.keepStream(0);
  }

  async request(call: McpCall, timeoutMs: number, isRepeat: boolean): Promise<McpReply> {
    const { wire, headers } = this;
    const id = wire.nextId;
    const questions = this.isInteractive ? this.begun(call) : undefined;
    try {
      const { reply } = await wire.ask(call, {
        era: 'legacy',
        headers,
        timeoutMs,
        mayLoseSession: this.ref.id !== null && !isRepeat,
        isResumable: true,
        questions,
      });
      return reply;
    } catch (error) {
      if (error instanceof UpstreamTimeoutError || error instanceof CallerLeftError) this.cancel(id);
      throw error instanceof UpstreamFailure && call.method === 'tools/call' ? error.ofCall() : error;
    } finally {
      if (questions) this.inFlight.splice(this.inFlight.indexOf(questions), 1);
    }
  }

  async startListening(timeoutMs: number, onEnd: () => void): Promise<boolean> {
    // Servers without sessions answer a stream that never says anything.
    if (this.ref.id === null || this.isEnded) return false;
    if (this.stream) return true;
    const answer = await this.wire.stream({
      method: 'GET',
      headers: this.streamHeaders,
      timeoutMs,
      onMessage: (data) => this.hear(data),
      onEnd: () => {
        this.stream = null;
        if (!this.isEnded) onEnd();
      },
    });
    if (answer.text !== null) return false;
    if (this.isEnded) answer.close();
    else this.stream = answer;
    return true;
  }

  stopListening(): void {
    this.stream?.close();
    this.stream = null;
  }

  async end(forGood = false): Promise<void> {
    this.isEnded = true;
    clearTimeout(this.retry);
    this.stopListening();
    if (this.ref.id !== null && (forGood || !this.ref.isKept)) await this.wire.endSession(this.headers);
  }

  private begun({ onRequest }: McpCall): UpstreamRequestResponder {
    const questions = new UpstreamRequestResponder(
      this.wire.answers(this.headers),
      this.wire.target.url.host,
      onRequest,
    );
    this.inFlight.push(questions);
    return questions;
  }

  /** Tells the server that nobody waits any more; closing the socket alone does not mean that to it. */
  private cancel(requestId: number): void {
    const params = JSON.stringify({ requestId, reason: 'nobody waits for the answer any more' });
    this.wire.aside(this.headers, requestText(null, 'notifications/cancelled', params));
  }

  private hear(data: string): void {
    const head = parseMessage(data);
    if (typeof head?.method !== 'string') return;
    if (head.id === undefined) return this.ears.onNotification(data, head.method);
    const questions =
      this.inFlight.at(-1) ?? new UpstreamRequestResponder(this.wire.answers(this.headers), this.wire.target.url.host);
    questions.take(data, head.method);
  }

  /** Holds the server's own stream open while the session lives. A server that has none is left in peace. */
  private async keepStream(failures: number): Promise<void> {
    const again = (failed: number) => {
      if (this.isEnded || failed > STREAM_RETRIES_MAX) return;
      const ms = STREAM_RETRY_MS * 2 ** failed;
      this.retry = setTimeout(() => void this.keepStream(failed), ms).unref();
    };
    try {
      await this.startListening(STREAM_WAIT_MS, () => again(0));
    } catch (error) {
      // Whatever it is: nobody waits for this stream who could be told.
      this.logger.debug({ msg: "a server's own stream did not open", err: error });
      again(failures + 1);
    }
  }
}
