import type { IncomingHttpHeaders } from 'node:http';
import { Logger } from '@nestjs/common';
import type { CallerProfile, McpCall, McpReply } from '../../protocol/channel.js';
import { ERRAND_MS } from '../../protocol/deadline.js';
import {
  CallerLeftError,
  UpstreamAuthRequiredError,
  type UpstreamError,
  UpstreamTimeoutError,
} from '../../protocol/mcp-errors.js';
import { parseMessage, requestText, resultOf } from '../../protocol/messages.js';
import { rpcCode, type UpstreamIdentity } from '../../protocol/protocol.js';
import { canBeAsked, identityOfInitialize, initializeParams } from '../../protocol/session.js';
import { HandshakeRefusedError, refusalText } from '../protocol-adapter.js';
import type { StreamAnswer } from './http-exchange.js';
import type { HttpWire, WireManner } from './http-wire.js';
import { onlyReads, SessionLostError } from '../may-resend.js';
import type { LegacySession, SessionHandlers } from '../session-slots.js';
import { cancelledText } from '../pipe-session.js';
import { GOOD_STREAM_MS, reopenMs } from '../reopen-wait.js';
import type { UpstreamRequestResponder } from '../upstream-request-responder.js';

const modernHints: ReadonlySet<number> = new Set([
  rpcCode.unsupportedVersion,
  rpcCode.methodNotFound,
  rpcCode.headerMismatch,
]);

/**
 * Time a session waits for its GET stream, which carries server requests to the caller, before it continues without it.
 */
const STREAM_WAIT_MS = 2_000;

/** Timeout of the `ping` that shows whether a server still knows a session. */
const PING_MS = 5_000;

/** Statuses with which servers reject the stream of a session they do not find: 404, and 400 in the SDK's examples. */
const LOST: ReadonlySet<number> = new Set([400, 404]);

/** Statuses of an unavailable or overloaded server, which might have a stream. */
const AWAY: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** A GET stream that cannot be opened after this many consecutive waits is given up. */
const STREAM_RETRIES_MAX = 5;

/**
 * Opens a session. Some servers require `notifications/initialized` before anything else. For a caller that can answer server requests,
 * opens the GET stream too, if the server has one.
 *
 * @throws UpstreamFailure
 */
export async function openStreamable(
  wire: HttpWire,
  profile: CallerProfile | undefined,
  handlers: SessionHandlers,
): Promise<LegacySession> {
  const { url, connectTimeoutMs: timeoutMs } = wire.target;
  const base = { ...wire.headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const call = { method: 'initialize', params: initializeParams(profile?.capabilities) };
  const name = profile ? wire.nameOf(profile.key) : {};
  let responseHeaders: IncomingHttpHeaders = {};
  const reply = await wire.request(call, {
    era: 'legacy',
    headers: { ...base, ...name },
    timeoutMs,
    onHeaders: (headers) => (responseHeaders = headers),
  });
  if (reply.error) {
    const { code, message } = reply.error;
    throw new HandshakeRefusedError(refusalText(wire.target, message), modernHints.has(code));
  }
  const id = typeof responseHeaders['mcp-session-id'] === 'string' ? responseHeaders['mcp-session-id'] : null;
  const identity = {
    ...identityOfInitialize(resultOf(reply), url),
    ...(id === null && { hasNoStream: true as const }),
  };
  const isRestored = Object.keys(name).some((header) => responseHeaders[header] !== undefined);
  // The GET stream brings requests and log messages to a caller that takes them.
  const isResponding =
    profile !== undefined && !profile.isShared && (profile.level !== undefined || canBeAsked(profile.capabilities));
  const session = new StreamableSession(wire, identity, {
    id,
    isRestored,
    headers: base,
    handlers,
    isInteractive: isResponding,
  });
  await session.begin();
  return session;
}

interface SessionOptions {
  /** The `Mcp-Session-Id`; null without sessions. */
  id: string | null;
  /** True if the upstream restores the session by its name, so that any process can reopen it. */
  isRestored: boolean;
  headers: Record<string, string>;
  handlers: SessionHandlers;
  /** True if the upstream can send requests and log messages to the caller. */
  isInteractive: boolean;
}

class StreamableSession implements LegacySession {
  private readonly headers: Record<string, string>;
  private readonly streamHeaders: Record<string, string>;
  /** Responders of the running calls, newest last: server requests on the GET stream go to the last one. */
  private readonly inFlight: UpstreamRequestResponder[] = [];
  private stream: StreamAnswer | null = null;
  private onStreamEnd: (retryMs: number | null) => void = () => undefined;
  private retry: NodeJS.Timeout | undefined;
  private probing: Promise<void> | null = null;
  private hasAnswered = false;
  private hadStream = false;
  private isEnded = false;
  private readonly logger = new Logger('mcp');

  constructor(
    private readonly wire: HttpWire,
    readonly identity: UpstreamIdentity,
    private readonly options: SessionOptions,
  ) {
    const { id } = options;
    this.headers = {
      ...options.headers,
      'mcp-protocol-version': identity.protocolVersion,
      ...(id === null ? {} : { 'mcp-session-id': id }),
    };
    const { 'content-type': _, ...streamHeaders } = this.headers;
    this.streamHeaders = { ...streamHeaders, accept: 'text/event-stream' };
  }

  get isStateful(): boolean {
    return this.options.id !== null;
  }

  /** Sends the notification; a server that fails at it might still handle requests. @throws UpstreamAuthRequiredError */
  async begin(): Promise<void> {
    try {
      const body = requestText(null, 'notifications/initialized', undefined);
      await this.wire.post(this.wire.url, this.headers, body, { timeoutMs: ERRAND_MS });
    } catch (error) {
      this.logger.debug({ msg: 'an upstream did not take notifications/initialized', err: error });
      if (error instanceof UpstreamAuthRequiredError) {
        void this.close();
        throw error;
      }
    }
    if (this.options.isInteractive) await this.keepStream(0);
  }

  request(call: McpCall, timeoutMs: number, isRepeat: boolean): Promise<McpReply> {
    const { wire } = this;
    const headers = call.session ? { ...this.headers, 'mcp-session-id': call.session } : this.headers;
    const id = wire.nextId;
    const responder = this.options.isInteractive ? wire.responder(headers, call.onRequest) : undefined;
    if (responder) this.inFlight.push(responder);
    const manner: WireManner = {
      era: 'legacy',
      headers,
      timeoutMs,
      mayLoseSession: this.options.id !== null && (!isRepeat || call.session !== undefined),
      isResumable: true,
      responder,
    };
    return wire.request(call, manner).then(
      (reply) => {
        if (responder) this.removeResponder(responder);
        this.hasAnswered = true;
        if (call.session === '' && this.options.id !== null) reply.session = this.options.id;
        return reply;
      },
      async (error: unknown) => {
        if (responder) this.removeResponder(responder);
        // Authorization is required without a challenge, in a session that had access.
        const isBarred = error instanceof UpstreamAuthRequiredError && error.challenges.length === 0;
        const outcome = error instanceof SessionLostError ? error.outcome : isBarred ? error : null;
        // The session of a task might belong to another process.
        if (outcome !== null && manner.mayLoseSession && !call.session && (this.hasAnswered || !isBarred)) {
          await this.probe();
          const isHarmless = isBarred || (error as SessionLostError).wasRefused || onlyReads(call.method);
          if (this.isEnded && isHarmless) throw new SessionLostError();
        }
        if (outcome !== null && !(outcome instanceof Error)) return outcome;
        if (outcome !== null) throw outcome;
        // Closing the socket does not cancel a request in these versions.
        if (error instanceof UpstreamTimeoutError || error instanceof CallerLeftError) {
          wire.sendOneWay(headers, cancelledText(id));
        }
        throw error;
      },
    );
  }

  private removeResponder(responder: UpstreamRequestResponder): void {
    this.inFlight.splice(this.inFlight.indexOf(responder), 1);
  }

  notify(text: string): void {
    this.wire.sendOneWay(this.headers, text);
  }

  async startListening(timeoutMs: number, onEnd: (retryMs: number | null) => void): Promise<boolean> {
    // Servers without sessions open a GET stream that never carries a message.
    if (this.options.id === null || this.isEnded) return false;
    if (this.stream) return true;
    let isOver = false;
    const answer = await this.wire.stream({
      method: 'GET',
      headers: this.streamHeaders,
      timeoutMs,
      onMessage: (data) => {
        const head = parseMessage(data);
        if (typeof head?.method !== 'string') return;
        if (head.id === undefined) return this.options.handlers.onNotification(data, head.method);
        const responder = this.inFlight.at(-1) ?? this.wire.responder(this.headers);
        const forward: McpCall['onRequest'] = (rpcMethod, params) =>
          this.options.handlers.onRequest(rpcMethod, params, responder.forward);
        responder.handleRequest(data, head.method, this.options.isInteractive ? forward : undefined);
      },
      onEnd: (_error, retryMs) => {
        isOver = true;
        this.stream = null;
        if (!this.isEnded) onEnd(retryMs);
      },
    });
    if (answer.text !== null) {
      if (LOST.has(answer.status)) throw new SessionLostError();
      if (AWAY.has(answer.status)) throw this.wire.statusError(answer);
      return false;
    }
    this.hadStream = true;
    if (this.isEnded) answer.close();
    else if (!isOver) {
      this.stream = answer;
      this.onStreamEnd = onEnd;
    }
    return true;
  }

  stopListening(): void {
    // The stream also brings requests to the caller.
    if (!this.options.isInteractive) this.closeStream();
  }

  async close(forGood = false): Promise<void> {
    this.isEnded = true;
    clearTimeout(this.retry);
    this.closeStream();
    if (this.options.id !== null && (forGood || !this.options.isRestored)) await this.wire.endSession(this.headers);
  }

  /**
   * Checks whether the session exists. Concurrent calls that doubt the session wait for the same result, so that the next ones run in a working session.
   */
  private async probe(): Promise<void> {
    if (this.probing === null && this.options.handlers.mayProbe()) {
      this.probing = this.dropIfLost().finally(() => (this.probing = null));
    }
    await this.probing;
  }

  async ping(): Promise<boolean | null> {
    const manner = { era: 'legacy', headers: this.headers, timeoutMs: PING_MS } as const;
    try {
      const { status, reply, showsLoss } = await this.wire.probe({ method: 'ping' }, manner);
      if (showsLoss) return false;
      if (AWAY.has(status)) return null;
      if (reply && (reply.error === null || reply.error.code === rpcCode.methodNotFound)) return true;
      return reply || status >= 400 ? false : null;
    } catch (error) {
      if (error instanceof UpstreamAuthRequiredError) return false;
      this.logger.debug({ msg: 'an upstream session in doubt could not be probed', err: error });
      return null;
    }
  }

  private async dropIfLost(): Promise<void> {
    const isKnown = await this.ping();
    if (isKnown) this.options.handlers.onKnown();
    if (isKnown !== false) return;
    // The session is not deleted upstream, since calls might still run in it.
    const { stream } = this;
    this.isEnded = true;
    clearTimeout(this.retry);
    this.closeStream();
    this.options.handlers.onLost(this);
    if (stream) this.onStreamEnd(null);
  }

  private closeStream(): void {
    this.stream?.close();
    this.stream = null;
  }

  /** Keeps the stream open, and gives up if the server does not offer one. */
  private async keepStream(failures: number): Promise<void> {
    const openedAt = performance.now();
    const again = (failed: number, ms: number) => {
      if (!this.isEnded) this.retry = setTimeout(() => void this.keepStream(failed), ms).unref();
    };
    try {
      await this.startListening(STREAM_WAIT_MS, (retryMs) => {
        const ends = performance.now() - openedAt > GOOD_STREAM_MS ? 0 : failures;
        again(ends + 1, reopenMs(ends, retryMs));
      });
    } catch (error) {
      if (error instanceof SessionLostError) {
        if (this.hadStream) this.options.handlers.onLost(this);
        return;
      }
      this.logger.debug({ msg: 'the GET stream of an upstream session could not be opened', err: error });
      const { retryAfterSeconds } = error as Partial<UpstreamError>;
      if (failures < STREAM_RETRIES_MAX) again(failures + 1, reopenMs(failures, null, retryAfterSeconds));
    }
  }
}
