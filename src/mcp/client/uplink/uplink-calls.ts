import type { ClientAnswer, McpCall, McpReply } from '../../protocol/channel.js';
import { members, slice, splice } from '../../protocol/json-text.js';
import { CallerLeftError, UplinkBusyError, UpstreamError, UpstreamTimeoutError } from '../../protocol/mcp-errors.js';
import { progressTokenIn, replyTo, requestText, type RpcHead } from '../../protocol/messages.js';
import { rpcCode } from '../../protocol/protocol.js';
import { STREAM_MS_MAX } from '../http/http-exchange.js';

/** A duplex pipe of whole messages to a peer, as a channel needs it; what carries it is not known here. */
export interface FramePort {
  /** Settles when the peer reads messages; what is sent before may be lost. Never rejects. */
  readonly ready: Promise<void>;
  /** Queues one message. Never throws; on a closed port it does nothing. */
  send(text: string): void;
  /** Bytes that wait for the peer to read them. */
  readonly bufferedBytes: number;
  /**
   * Ends the pipe because the peer broke the rules.
   *
   * @param code a WebSocket close code (RFC 6455 section 7.4.1): 1007 for what is no JSON, 1008 for everything else
   * @param reason at most 123 bytes of UTF-8
   */
  refuse(code: 1007 | 1008, reason: string): void;
  /** Ends the pipe in order. */
  close(): void;
}

/** Calls one local server has at once: it runs on somebody's desk, and each may hold 16 MB here. */
export const IN_FLIGHT_MAX = 256;

/** With more than this unread by the peer nothing is added, so that one tunnel holds 20 MB at most (a message is up to 16). */
export const UNREAD_BYTES_MAX = 4 * 1024 * 1024;

/**
 * The requests under way over one tunnel. The tunnel has a single space of ids and of progress tokens for all callers, so
 * both are ours: one counter, never derived from what a caller sent.
 */
export class UplinkCalls {
  private readonly running = new Map<number, RunningCall>();
  private lastId = 0;

  constructor(private readonly port: FramePort) {}

  /**
   * Sends a request and waits for its answer.
   *
   * @throws UplinkBusyError when it was not sent, UpstreamTimeoutError, CallerLeftError, or what {@link end} was given
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

  /** Hands an answer to whom it belongs; answers that nobody waits for any more are dropped. */
  answered(head: RpcHead, text: string): void {
    const call = typeof head.id === 'number' ? this.running.get(head.id) : undefined;
    if (!call) return;
    const reply = replyTo(head.id as number, text, head, 'legacy');
    if (reply) call.succeed(reply);
    else call.fail(new UpstreamError('The local server sent an answer that is no JSON-RPC.', undefined, true));
  }

  /** Hands a progress notification to the call its token names, under the caller's own token. */
  progressed({ params }: RpcHead, text: string): void {
    const token = (params as { progressToken?: unknown } | undefined)?.progressToken;
    if (typeof token === 'number') this.running.get(token)?.progress(text);
  }

  /** Hands on what the server says without naming a call: only while one call runs it is clear whose it is. */
  said(text: string, method: string): void {
    const [only, ...others] = this.running.values();
    if (only && others.length === 0) only.notify(text, method);
  }

  /**
   * Whom the local server means when it asks something without naming a call: the call begun last whose caller can be asked.
   * Null when nobody can, or several callers could: what one is asked must not be shown to another.
   */
  get askable(): AskableCall | null {
    const askable = [...this.running.values()].filter(({ call }) => call.onRequest);
    const last = askable.at(-1);
    return askable.every(({ call }) => call.profile?.key === last?.call.profile?.key) ? (last ?? null) : null;
  }

  /** Fails everything that runs. */
  end(reason: () => Error): void {
    for (const call of [...this.running.values()]) call.fail(reason());
  }

  private cancel(requestId: number, reason: string): void {
    const params = JSON.stringify({ requestId, reason });
    this.port.send(requestText(null, 'notifications/cancelled', params));
  }
}

/** A call under way whose caller can be asked. */
export interface AskableCall {
  /** Asks the caller; its own time stands still until there is an answer. Never rejects. */
  ask(method: string, params: string | undefined): Promise<ClientAnswer>;
}

interface Outcome {
  resolve(reply: McpReply): void;
  reject(error: Error): void;
  over(): void;
  abandon(reason: string): void;
}

/** One request under way. */
class RunningCall implements AskableCall {
  private readonly startedAt = Date.now();
  private timer: NodeJS.Timeout;
  /** The caller's progress token as JSON text; null when it gave none. */
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

  /** The params with our progress token in place of the caller's. */
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
