/**
 * A session of MCP 2025-11-25 or older over one message pipe that all its callers share: the event stream and POST
 * address of HTTP+SSE, or the tunnel of an uplink.
 *
 * Request ids and progress tokens come from one counter of the pipe, never from a caller; responses and
 * `notifications/progress` find their call by them. Other notifications, and requests of the peer
 * (`sampling/createMessage` and the like), name no call. They go to the newest call only if all running calls have the
 * same caller; otherwise a notification goes to the owner of the session, as every list change does, and a request is
 * rejected with -32601, since it might concern another caller's call.
 *
 * When a call times out or its caller disconnects, the peer gets `notifications/cancelled`, except for `initialize`. A
 * late response is dropped.
 */
import type { McpCall, McpReply } from '../protocol/channel.js';
import { members, slice, splice } from '../protocol/json-text.js';
import { ERRAND_MS } from '../protocol/deadline.js';
import { isChange } from '../protocol/list-pages.js';
import {
  asCallError,
  CallerLeftError,
  strayAnswer,
  tooLate,
  unreadable,
  UpstreamAuthRequiredError,
  UpstreamError,
  UpstreamTimeoutError,
} from '../protocol/mcp-errors.js';
import {
  errorAnswer,
  numericId,
  progressTokenIn,
  replyTo,
  requestText,
  resultOf,
  type RpcHead,
} from '../protocol/messages.js';
import { rpcCode, type UpstreamIdentity } from '../protocol/protocol.js';
import { identityOfInitialize, initializeParams } from '../protocol/session.js';
import { SessionLostError } from './may-resend.js';
import type { LegacySession, SessionHandlers } from './session-slots.js';
import { SilenceTimer } from './silence-timer.js';
import { UpstreamRequestResponder } from './upstream-request-responder.js';

/** Methods during which servers send requests to their clients. */
const ASKS: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

/** A transport of messages, which passes received messages to {@link PipeSession.receive}. */
export interface Pipe {
  readonly host: string;
  /** Returns the next id, which is also the progress token. */
  takeId(): number;
  /** @throws UpstreamFailure, SessionLostError when the peer no longer knows the session */
  send(text: string, call: McpCall, timeoutMs: number): Promise<void>;
  /** This method never throws. */
  notify(text: string): void;
  /** Sends a response to a request of the peer. Never throws. */
  sendResponse(text: string): void;
  /** @param message the upstream's message */
  toRejection(message: string): Error;
  toClosedError(): Error;
  /** Closes the pipe; called once. */
  close(): void;
}

export class PipeSession implements LegacySession {
  identity: UpstreamIdentity;
  readonly isStateful = true;
  /** The reason why the pipe closed; null while it is open. */
  loss: Error | null = null;
  private readonly running = new Map<number, RunningCall>();
  private onListeningEnd: (() => void) | null = null;

  /**
   * @param capabilities those of the session's client; without any, no request of the peer is forwarded
   * @param handlers may be completed later; without `onRequest`, requests that no running call can answer are rejected
   */
  constructor(
    readonly pipe: Pipe,
    private readonly capabilities: Record<string, unknown> | undefined,
    private readonly handlers: Partial<SessionHandlers>,
  ) {}

  get size(): number {
    return this.running.size;
  }

  /** @throws UpstreamFailure */
  async begin(timeoutMs: number): Promise<void> {
    const { pipe } = this;
    const call = { method: 'initialize', params: initializeParams(this.capabilities), timeoutMs };
    const reply = await this.request(call, timeoutMs, true);
    if (reply.error) throw pipe.toRejection(reply.error.message);
    this.identity = identityOfInitialize(resultOf(reply), pipe);
    await pipe
      .send(requestText(null, 'notifications/initialized', undefined), call, ERRAND_MS)
      .catch((error: Error) => {
        if (error instanceof UpstreamAuthRequiredError) throw error;
      });
  }

  async request(call: McpCall, timeoutMs: number, isRepeat: boolean): Promise<McpReply> {
    if (this.loss) throw isRepeat ? this.loss : new SessionLostError();
    if (call.cancellation?.isCancelled) throw new CallerLeftError();
    const id = this.pipe.takeId();
    try {
      return await new Promise<McpReply>((resolve, reject) => {
        const sent = this.capabilities ? call : { ...call, onRequest: undefined };
        const running = new RunningCall(this, id, sent, timeoutMs, { resolve, reject });
        running.onOver = () => this.running.delete(id);
        this.running.set(id, running);
        running.send();
      });
    } catch (error) {
      throw asCallError(error instanceof SessionLostError && isRepeat ? this.pipe.toClosedError() : error, call);
    }
  }

  notify(text: string): void {
    if (!this.loss) this.pipe.notify(text);
  }

  readonly answer = (text: string): void => {
    if (!this.loss) this.pipe.sendResponse(text);
  };

  startListening(_timeoutMs: number, onEnd: (retryMs: number | null) => void): Promise<boolean> {
    this.onListeningEnd = () => onEnd(null);
    return Promise.resolve(this.loss === null);
  }

  stopListening(): void {
    this.onListeningEnd = null;
  }

  async close(): Promise<void> {
    this.fail(new UpstreamError('The connection was changed or deleted meanwhile.', { outcomeUnknown: true }));
  }

  /** Closes the pipe, and fails all running calls. */
  fail(error: Error): void {
    if (this.loss) return;
    this.loss = error;
    this.pipe.close();
    for (const call of [...this.running.values()]) call.fail(this.pipe.toClosedError());
    this.handlers.onLost?.(this);
    this.onListeningEnd?.();
  }

  failCall(id: number | null, error: Error): void {
    const [only, ...more] = this.running.values();
    const call = id === null ? (more.length === 0 ? only : undefined) : this.running.get(id);
    call?.fail(error);
  }

  /** @returns true for the response to a call */
  receive(head: RpcHead, text: string): boolean {
    const { method } = head;
    if (typeof method !== 'string') {
      const id = numericId(head.id) as number;
      const [only, ...more] = this.running.keys();
      // Late responses have ids that Slipway issued; any other can only be meant for the running call.
      const isStray = !(id > 0) && more.length === 0 && ('result' in head || 'error' in head);
      const callId = isStray && only !== undefined ? only : id;
      const call = this.running.get(callId);
      const reply = call && replyTo(callId, text, head, 'legacy');
      if (reply) call.succeed(reply);
      else
        call?.fail(
          strayAnswer(this.pipe.host, callId, head) ??
            unreadable(`${this.pipe.host} sent a response that is not JSON-RPC.`),
        );
      return call !== undefined;
    }
    if (head.id !== undefined) this.requested(text, method);
    else if (method === 'notifications/progress') {
      const token = (head.params as { progressToken?: unknown } | null | undefined)?.progressToken;
      this.running.get(token as number)?.progress(text);
    } else {
      const running = [...this.running.values()];
      const call = isChange(method) || !haveOneOwner(running) ? undefined : running.at(-1);
      if (call) call.notify(text, method);
      else this.handlers.onNotification?.(text, method);
    }
    return false;
  }

  /**
   * Forwards a request to the newest call whose caller can answer. Pings are handled here. A request is rejected when there is no
   * such call, or when it might concern a call of another caller, who alone may see it.
   */
  private requested(text: string, method: string): void {
    const asking = [...this.running.values()].filter(({ canRespond, mayAsk }) => canRespond || mayAsk);
    const able = asking.filter(({ canRespond }) => canRespond);
    const call = method !== 'ping' && haveOneOwner(asking) ? able.at(-1) : undefined;
    if (call) return call.requested(text, method);
    const { onRequest } = this.handlers;
    const refuse = () =>
      Promise.resolve(
        errorAnswer(
          `Several clients call this server: it is not clear who should answer ${method}`,
          rpcCode.methodNotFound,
        ),
      );
    const ask: McpCall['onRequest'] =
      this.capabilities && onRequest && ((rpcMethod, params) => onRequest(rpcMethod, params, undefined));
    new UpstreamRequestResponder(this.answer, able.length > 0 ? refuse : ask).handleRequest(text, method);
  }
}

/** Returns false for calls of several callers, or of anonymous ones. */
function haveOneOwner(calls: RunningCall[]): boolean {
  return calls.length === 1 || calls.every(({ owner }) => owner !== undefined && owner === calls[0]?.owner);
}

class RunningCall {
  private readonly responder: UpstreamRequestResponder;
  onOver: () => void = () => undefined;
  private readonly timer: SilenceTimer;
  /** Progress token of the caller as JSON text; null without one. */
  private token: string | null = null;

  constructor(
    private readonly session: PipeSession,
    private readonly id: number,
    private readonly call: McpCall,
    private readonly timeoutMs: number,
    private readonly outcome: { resolve(reply: McpReply): void; reject(error: Error): void },
  ) {
    this.responder = new UpstreamRequestResponder(session.answer, call.onRequest);
    this.timer = new SilenceTimer(timeoutMs, () => this.onDeadline());
    call.cancellation?.notify(this.onLeft);
  }

  get owner(): string | undefined {
    return this.call.profile?.key;
  }

  get canRespond(): boolean {
    return this.call.onRequest !== undefined;
  }

  get mayAsk(): boolean {
    return ASKS.has(this.call.method);
  }

  /** Sends the call with our progress token instead of the caller's. */
  send(): void {
    const { method, params } = this.call;
    const span = params === undefined ? null : progressTokenIn(params);
    if (params !== undefined && span) this.token = slice(params, span);
    const ownParams = params !== undefined && span ? splice(params, span, String(this.id)) : params;
    const { session, call, timeoutMs } = this;
    session.pipe.send(requestText(this.id, method, ownParams), call, timeoutMs).catch((error: unknown) => {
      this.fail(error as Error);
      if (error instanceof SessionLostError) session.fail(session.pipe.toClosedError());
    });
  }

  progress(text: string): void {
    const params = members(text).get('params');
    const span = params && members(text, params[0]).get('progressToken');
    if (span && this.token !== null) this.notify(splice(text, span, this.token), 'notifications/progress');
  }

  notify(text: string, method: string): void {
    const { onNotification } = this.call;
    if (!onNotification) return;
    this.timer.restart();
    onNotification(text, method);
  }

  requested(text: string, method: string): void {
    if (this.call.onNotification) this.timer.restart();
    this.responder.handleRequest(text, method);
  }

  succeed(reply: McpReply): void {
    this.settle();
    this.outcome.resolve(reply);
  }

  fail(error: Error): void {
    this.settle();
    this.outcome.reject(error);
  }

  private onDeadline(): void {
    const { timeoutMs, timer, call } = this;
    const { isOver } = timer;
    if (this.responder.isHolding(timeoutMs) && !isOver) return timer.restart();
    const late = tooLate(this.session.pipe, {
      timeoutMs,
      isExtended: call.onNotification !== undefined,
      isOver,
      isOpening: call.method === 'initialize',
    });
    this.giveUp(new UpstreamTimeoutError(late, true));
  }

  private readonly onLeft = (): void => this.giveUp(new CallerLeftError());

  private giveUp(error: Error): void {
    // MCP forbids cancelling `initialize`.
    if (this.call.method !== 'initialize') this.session.notify(cancelledText(this.id));
    this.fail(error);
  }

  private settle(): void {
    this.timer.stop();
    this.call.cancellation?.forget(this.onLeft);
    this.onOver();
  }
}

export function cancelledText(requestId: number): string {
  const params = JSON.stringify({ requestId, reason: 'The caller no longer waits for the response' });
  return requestText(null, 'notifications/cancelled', params);
}
