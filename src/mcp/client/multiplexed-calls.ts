/**
 * Running requests over one message pipe that all callers share: an HTTP+SSE session, or the tunnel of an uplink.
 *
 * Request ids and progress tokens come from one counter of the pipe, never from a caller; answers and
 * `notifications/progress` find their call by them, and the caller's own token is put back. Other notifications, and
 * requests of the peer (`sampling/createMessage` and the like), name no call. They go to the newest call only if all
 * running calls have the same caller; otherwise a notification is not delivered, and a request is refused with -32601,
 * because it may concern the call of another.
 *
 * A call ends with its answer, its timeout (messages restart it if the caller listens), the leaving of its caller, or
 * the end of the pipe. Except for `initialize`, the peer is told by `notifications/cancelled`. A late answer is
 * dropped.
 */
import type { McpCall, McpReply } from '../protocol/channel.js';
import { members, slice, splice } from '../protocol/json-text.js';
import { CallerLeftError, tooLate, unreadable, UpstreamTimeoutError } from '../protocol/mcp-errors.js';
import { errorAnswer, progressTokenIn, replyTo, requestText, type RpcHead } from '../protocol/messages.js';
import { rpcCode } from '../protocol/protocol.js';
import { SilenceTimer } from './silence-timer.js';
import { UpstreamRequestResponder } from './upstream-request-responder.js';

/** Methods during which servers ask their clients. */
const ASKS: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

/** The far end of a message pipe that all calls share: an HTTP+SSE session, or the tunnel of an uplink. */
export interface Peer {
  /** Name in error texts. */
  readonly host: string;
  /** Allocates a request id, also used as progress token. */
  takeId(): number;
  /** Sends a request. The call fails with an error passed to `fail`. */
  sendRequest(text: string, call: McpCall, timeoutMs: number, fail: (error: Error) => void): void;
  /** Sends a notification. */
  notify(text: string): void;
  /** Sends an answer to a request of the peer. */
  answer(text: string): void;
  /** Answers a request of the peer while no call runs that could; absent where it is refused. */
  onRequest?: McpCall['onRequest'];
}

/** Running requests to one peer. */
export class MultiplexedCalls {
  private readonly running = new Map<number, RunningCall>();

  constructor(private readonly peer: Peer) {}

  get size(): number {
    return this.running.size;
  }

  /**
   * Sends a request and waits for its answer.
   *
   * @throws UpstreamTimeoutError, CallerLeftError, or the error passed to {@link end} or by the peer
   */
  run(call: McpCall, timeoutMs = call.timeoutMs): Promise<McpReply> {
    if (call.cancellation?.isCancelled) return Promise.reject(new CallerLeftError());
    const id = this.peer.takeId();
    return new Promise((resolve, reject) => {
      const running = new RunningCall(this.peer, id, call, timeoutMs, { resolve, reject });
      running.onOver = () => this.running.delete(id);
      this.running.set(id, running);
      running.send();
    });
  }

  /** Delivers an answer to its call. @returns false for a late one, which is dropped */
  answered(head: RpcHead, text: string): boolean {
    const call = typeof head.id === 'number' ? this.running.get(head.id) : undefined;
    if (!call) return false;
    const reply = replyTo(head.id as number, text, head, 'legacy');
    if (reply) call.succeed(reply);
    else call.fail(unreadable(`${this.peer.host} sent an answer that is not JSON-RPC.`));
    return true;
  }

  /** Delivers a progress notification to the call of its token, with the caller's own token. */
  progressed({ params }: RpcHead, text: string): void {
    const token = (params as { progressToken?: unknown } | undefined)?.progressToken;
    if (typeof token === 'number') this.running.get(token)?.progress(text);
  }

  /** Delivers a notification that names no call if all running calls have one caller. @returns false otherwise */
  notified(text: string, method: string): boolean {
    const running = [...this.running.values()];
    const call = haveOneOwner(running) ? running.at(-1) : undefined;
    call?.notify(text, method);
    return call !== undefined;
  }

  /**
   * Forwards a request of the peer, which names no call, to the newest call whose caller can answer. Answers a ping here, and
   * a request when there is no such call, or when it may concern a call of another caller, to whom alone it may be shown.
   */
  requested(text: string, method: string): void {
    const asking = [...this.running.values()].filter(({ canRespond, mayAsk }) => canRespond || mayAsk);
    const able = asking.filter(({ canRespond }) => canRespond);
    const call = method !== 'ping' && haveOneOwner(asking) ? able.at(-1) : undefined;
    if (call) return call.requested(text, method);
    const { peer } = this;
    // The request may concern the call of another caller.
    const refuse = () =>
      Promise.resolve(
        errorAnswer(
          `Several clients call this server: it is not clear who should answer ${method}`,
          rpcCode.methodNotFound,
        ),
      );
    const forward = able.length > 0 ? refuse : peer.onRequest;
    new UpstreamRequestResponder((answer) => peer.answer(answer), forward).take(text, method);
  }

  /** Fails all running calls. */
  end(reason: () => Error): void {
    for (const call of [...this.running.values()]) call.fail(reason());
  }
}

/** False for calls of several callers, or of callers without an identity. */
function haveOneOwner(calls: RunningCall[]): boolean {
  return calls.length === 1 || calls.every(({ owner }) => owner !== undefined && owner === calls[0]?.owner);
}

/** One running request. */
class RunningCall {
  private readonly responder: UpstreamRequestResponder;
  onOver: () => void = () => undefined;
  private readonly timer: SilenceTimer;
  /** Progress token of the caller as JSON text; null without one. */
  private token: string | null = null;

  constructor(
    private readonly peer: Peer,
    private readonly id: number,
    private readonly call: McpCall,
    private readonly timeoutMs: number,
    private readonly outcome: { resolve(reply: McpReply): void; reject(error: Error): void },
  ) {
    this.responder = new UpstreamRequestResponder((answer) => peer.answer(answer), call.onRequest);
    this.timer = new SilenceTimer(timeoutMs, () => this.onDeadline());
    call.cancellation?.notify(this.onLeft);
  }

  /** Profile key of the caller. */
  get owner(): string | undefined {
    return this.call.profile?.key;
  }

  get canRespond(): boolean {
    return this.call.onRequest !== undefined;
  }

  /** True if the peer may ask its client during the call. */
  get mayAsk(): boolean {
    return ASKS.has(this.call.method);
  }

  /** Sends the request, with our progress token in place of the caller's. */
  send(): void {
    const { method, params } = this.call;
    const span = params === undefined ? null : progressTokenIn(params);
    if (params !== undefined && span) this.token = slice(params, span);
    const ownParams = params !== undefined && span ? splice(params, span, String(this.id)) : params;
    this.peer.sendRequest(requestText(this.id, method, ownParams), this.call, this.timeoutMs, (error) =>
      this.fail(error),
    );
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

  /** Forwards a request of the peer to the caller. */
  requested(text: string, method: string): void {
    if (this.call.onNotification) this.timer.restart();
    this.responder.take(text, method);
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
    const late = tooLate(this.peer, {
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
    if (this.call.method !== 'initialize') this.peer.notify(cancelledText(this.id));
    this.fail(error);
  }

  private settle(): void {
    this.timer.stop();
    this.call.cancellation?.forget(this.onLeft);
    this.onOver();
  }
}

/** `notifications/cancelled` for a request whose caller no longer waits. */
export function cancelledText(requestId: number): string {
  const params = JSON.stringify({ requestId, reason: 'The caller no longer waits for the answer' });
  return requestText(null, 'notifications/cancelled', params);
}
