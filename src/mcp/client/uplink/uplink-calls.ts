import type { ClientAnswer, McpCall, McpReply } from '../../protocol/channel.js';
import { members, slice, splice } from '../../protocol/json-text.js';
import { CallerLeftError, UplinkBusyError, UpstreamError, UpstreamTimeoutError } from '../../protocol/mcp-errors.js';
import { progressTokenIn, replyTo, requestText, type RpcHead } from '../../protocol/messages.js';
import { rpcCode } from '../../protocol/protocol.js';
import { STREAM_MS_MAX } from '../http/http-exchange.js';

/** Duplex pipe of whole messages to a peer, independent of its transport. */
export interface FramePort {
  /** Settles when the peer reads messages; earlier messages may be lost. Never rejects. */
  readonly ready: Promise<void>;
  /** Queues one message. Never throws; without effect on a closed port. */
  send(text: string): void;
  /** Bytes that the peer has not read yet. */
  readonly bufferedBytes: number;
  /**
   * Closes the pipe because of a protocol violation.
   *
   * @param code WebSocket close code (RFC 6455 section 7.4.1): 1007 for invalid JSON, 1008 otherwise
   * @param reason at most 123 bytes of UTF-8
   */
  refuse(code: 1007 | 1008, reason: string): void;
  /** Closes the pipe normally. */
  close(): void;
}

/** Limit of concurrent calls per local server: it runs on a desktop, and each call may hold 16 MB here. */
export const IN_FLIGHT_MAX = 256;

/**
 * Limit of bytes unread by the peer before new calls are refused; bounds a tunnel to 20 MB, as a message has up to 16.
 */
export const UNREAD_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Running requests of one tunnel. All callers share its space of ids and progress tokens, so both come from one
 * counter, never from a caller.
 */
export class UplinkCalls {
  private readonly running = new Map<number, RunningCall>();
  private lastId = 0;

  constructor(private readonly port: FramePort) {}

  /**
   * Sends a request and waits for its answer.
   *
   * @throws UplinkBusyError when it was not sent, UpstreamTimeoutError, CallerLeftError, or the error passed to {@link
   * end}
   */
  run(call: McpCall): Promise<McpReply> {
    if (call.cancellation?.isCancelled) return Promise.reject(new CallerLeftError());
    if (this.running.size >= IN_FLIGHT_MAX) {
      const message = `${IN_FLIGHT_MAX} calls run through this uplink already: try again when some of them have ended.`;
      return Promise.reject(new UplinkBusyError(message));
    }
    if (this.port.bufferedBytes > UNREAD_BYTES_MAX) {
      const message = 'The local server does not read what it was sent: try again when it has caught up.';
      return Promise.reject(new UplinkBusyError(message));
    }
    const id = (this.lastId += 1);
    return new Promise((resolve, reject) => {
      const running = new RunningCall(call, {
        resolve,
        reject,
        over: () => this.running.delete(id),
        abandon: (reason) => this.cancel(id, reason),
      });
      this.running.set(id, running);
      this.port.send(requestText(id, call.method, running.underToken(id)));
    });
  }

  /** Delivers an answer to its call. Late answers are dropped. */
  answered(head: RpcHead, text: string): boolean {
    const call = typeof head.id === 'number' ? this.running.get(head.id) : undefined;
    if (!call) return false;
    const reply = replyTo(head.id as number, text, head, 'legacy');
    if (reply) call.succeed(reply);
    else call.fail(new UpstreamError('The local server sent an answer that is no JSON-RPC.', undefined, true));
    return true;
  }

  /** Delivers a progress notification to the call of its token, with the caller's own token. */
  progressed({ params }: RpcHead, text: string): void {
    const token = (params as { progressToken?: unknown } | undefined)?.progressToken;
    if (typeof token === 'number') this.running.get(token)?.progress(text);
  }

  /** Delivers a notification that names no call, only if exactly one call runs. */
  said(text: string, method: string): void {
    const [only, ...others] = this.running.values();
    if (only && others.length === 0) only.notify(text, method);
  }

  /**
   * Call that receives a server request which names no call: the newest call whose caller can answer. Null when there
   * is none, or when several callers could answer, since a request for one must not be shown to another.
   */
  get askable(): AskableCall | null {
    const askable = [...this.running.values()].filter(({ call }) => call.onRequest);
    const last = askable.at(-1);
    return askable.every(({ call }) => call.profile?.key === last?.call.profile?.key) ? (last ?? null) : null;
  }

  /** Fails all running calls. */
  end(reason: () => Error): void {
    for (const call of [...this.running.values()]) call.fail(reason());
  }

  private cancel(requestId: number, reason: string): void {
    const params = JSON.stringify({ requestId, reason });
    this.port.send(requestText(null, 'notifications/cancelled', params));
  }
}

/** A running call whose caller can answer server requests. */
export interface AskableCall {
  /** Sends a request to the caller; the call's timeout is paused until the answer. Never rejects. */
  ask(method: string, params: string | undefined): Promise<ClientAnswer>;
}

interface Outcome {
  resolve(reply: McpReply): void;
  reject(error: Error): void;
  over(): void;
  abandon(reason: string): void;
}

/** One running request. */
class RunningCall implements AskableCall {
  private readonly startedAt = Date.now();
  private timer: NodeJS.Timeout;
  /** Progress token of the caller as JSON text; null without one. */
  private token: string | null = null;
  private questions = 0;
  private isOver = false;

  constructor(
    readonly call: McpCall,
    private readonly outcome: Outcome,
  ) {
    this.timer = setTimeout(this.onDeadline, call.timeoutMs);
    call.cancellation?.notify(this.onLeft);
  }

  /** Params with our progress token instead of the caller's. */
  underToken(ours: number): string | undefined {
    const { params } = this.call;
    const span = params === undefined ? null : progressTokenIn(params);
    if (params === undefined || span === null) return params;
    this.token = slice(params, span);
    return splice(params, span, String(ours));
  }

  progress(text: string): void {
    const params = members(text).get('params');
    const span = params && members(text, params[0]).get('progressToken');
    if (span && this.token !== null) this.notify(splice(text, span, this.token), 'notifications/progress');
  }

  async ask(method: string, params: string | undefined): Promise<ClientAnswer> {
    const failed: ClientAnswer = { error: { code: rpcCode.internalError, message: 'The question was not answered' } };
    this.questions += 1;
    const answer = (await this.call.onRequest?.(method, params).catch(() => failed)) ?? failed;
    this.questions -= 1;
    if (!this.isOver) this.timer.refresh();
    return answer;
  }

  notify(text: string, method: string): void {
    const { onNotification } = this.call;
    if (!onNotification) return;
    if (Date.now() - this.startedAt < STREAM_MS_MAX) this.timer.refresh();
    onNotification(text, method);
  }

  succeed(reply: McpReply): void {
    this.settle();
    this.outcome.resolve(reply);
  }

  fail(error: Error): void {
    this.settle();
    this.outcome.reject(error);
  }

  private readonly onDeadline = (): void => {
    if (this.questions > 0 && Date.now() - this.startedAt < STREAM_MS_MAX) {
      this.timer = setTimeout(this.onDeadline, this.call.timeoutMs);
      return;
    }
    const seconds = Number((this.call.timeoutMs / 1000).toPrecision(2));
    this.outcome.abandon('the time for the answer is over');
    this.fail(new UpstreamTimeoutError(`The local server did not answer within ${seconds} s.`, true));
  };

  private readonly onLeft = (): void => {
    this.outcome.abandon('nobody waits for the answer any more');
    this.fail(new CallerLeftError());
  };

  private settle(): void {
    this.isOver = true;
    clearTimeout(this.timer);
    this.call.cancellation?.forget(this.onLeft);
    this.outcome.over();
  }
}
