import { Logger } from '@nestjs/common';
import type {
  Channel,
  ClientAnswer,
  Listening,
  ListenFilter,
  McpCall,
  McpReply,
  UpstreamListener,
} from '../../../mcp/protocol/channel.js';
import {
  CallerLeftError,
  UplinkDisconnectedError,
  UpstreamError,
  UpstreamTimeoutError,
} from '../../../mcp/protocol/mcp-errors.js';
import { STREAM_MS_MAX } from '../../../mcp/client/http/http-exchange.js';
import { parseMessage, replyTo } from '../../../mcp/protocol/messages.js';
import { rpcCode, type UpstreamIdentity } from '../../../mcp/protocol/protocol.js';
import { wasSent, type InternalAnswer, type InternalCalls } from '../../../platform/internal-http/internal-calls.js';
import { fromWire } from '../../../mcp/protocol/wired-failure.js';
import type { InternalAsk, InternalLine } from './internal-frames.js';
import type { TunnelName } from './uplink-leases.js';

/** The process that was asked does not hold the tunnel any more; nothing was sent to the local server. */
export class TunnelMovedError extends Error {}

/** The process that holds the tunnel keeps the time; one that is frozen does not. */
const GRACE_MS = 2_000;

/** Looks at one line: what it came to, or undefined while more is to come. */
type Reader<T> = (line: InternalLine) => T | undefined;

/**
 * A tunnel in another process. What the local server asks in the middle of a call comes as a line of its answer, and what
 * its caller says to that goes back in a request of its own.
 */
export class RemoteUplinkChannel implements Channel {
  private readonly logger = new Logger('uplink');
  private readonly path: string;

  constructor(
    private readonly calls: InternalCalls,
    private readonly url: string,
    { connectionId, tunnel }: TunnelName,
  ) {
    this.path = `/internal/uplink/${connectionId}/${tunnel}`;
  }

  async open(timeoutMs: number): Promise<UpstreamIdentity> {
    const read: Reader<UpstreamIdentity> = (line) => (line.line === 'hello' ? line.hello : undefined);
    return this.ask({ ask: 'open', timeoutMs }, '', read).value;
  }

  async request(call: McpCall): Promise<McpReply> {
    const { method, params, timeoutMs, cancellation, onNotification, profile, onRequest } = call;
    if (cancellation?.isCancelled) throw new CallerLeftError();
    const answer = this.ask<McpReply>(
      {
        ask: 'request',
        method,
        timeoutMs,
        hasParams: params !== undefined,
        wantsNotifications: onNotification !== undefined,
        profileKey: profile && onRequest ? profile.key : null,
      },
      params ?? '',
      (line) => {
        if (line.line === 'notification') onNotification?.(line.text, line.method);
        if (line.line === 'question') void this.answered(line, onRequest, answer);
        return line.line === 'reply' ? toReply(line.text) : undefined;
      },
    );
    const onLeft = () => answer.leave(new CallerLeftError());
    cancellation?.notify(onLeft);
    return answer.value.finally(() => cancellation?.forget(onLeft));
  }

  async listen(filter: ListenFilter, listener: UpstreamListener, timeoutMs: number): Promise<Listening> {
    let isOver = false;
    const answer = this.ask<ListenFilter>({ ask: 'listen', filter, timeoutMs }, '', (line) => {
      if (line.line === 'notification' && !isOver) listener.onNotification(line.text, line.method);
      return line.line === 'listening' ? line.honoured : undefined;
    });
    const honoured = await answer.value;
    void answer.ended.then(() => {
      if (!isOver) listener.onEnd(new UplinkDisconnectedError());
    });
    return {
      honoured,
      close: async () => {
        isOver = true;
        answer.leave(new CallerLeftError());
      },
    };
  }

  /** All callers share the one session of the local server. */
  async release(): Promise<void> {}

  /** The tunnel belongs to the process that holds it. */
  async close(): Promise<void> {}

  /** Has a question answered. Never rejects: a caller that is gone has broken off its call. */
  private async answered(
    { question, method, params }: Extract<InternalLine, { line: 'question' }>,
    onRequest: McpCall['onRequest'],
    call: RemoteAnswer<McpReply>,
  ): Promise<void> {
    let breakOff: () => void = () => undefined;
    try {
      const asking = onRequest?.(method, params).catch(() => undefined);
      const answer: ClientAnswer = (await call.hold(asking)) ?? unasked;
      const ask: InternalAsk = { ask: 'answer', question };
      const posted = this.calls.post(this.url, this.path, ask, JSON.stringify(answer), (leave) => (breakOff = leave));
      // With its call it is of no use any more.
      void call.ended.then(() => breakOff());
      const taken = await posted;
      await taken.lines(() => undefined);
    } catch (error) {
      this.logger.debug({ msg: 'an answer did not reach the process that holds the tunnel', err: error });
    }
  }

  private ask<T>(what: InternalAsk & { timeoutMs: number }, params: string, read: Reader<T>): RemoteAnswer<T> {
    return new RemoteAnswer(what, read, (whenLeft) => this.calls.post(this.url, this.path, what, params, whenLeft));
  }
}

const unasked: ClientAnswer = { error: { code: rpcCode.internalError, message: 'The client could not be asked' } };

/** What another process answers, line by line. */
class RemoteAnswer<T> {
  /** Rejects with a TunnelMovedError or an UpstreamFailure. */
  readonly value: Promise<T>;
  /** Settles when nothing more will come. Never rejects. */
  readonly ended: Promise<void>;
  private readonly logger = new Logger('uplink');
  private readonly startedAt = Date.now();
  private timer: NodeJS.Timeout;
  private isSettled = false;
  private held = 0;
  private resolve: (value: T) => void = () => undefined;
  private reject: (error: Error) => void = () => undefined;
  private breakOff: () => void = () => undefined;

  constructor(
    private readonly what: InternalAsk & { timeoutMs: number },
    private readonly read: Reader<T>,
    post: (whenLeft: (leave: () => void) => void) => Promise<InternalAnswer>,
  ) {
    this.value = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.timer = setTimeout(() => this.expire(), what.timeoutMs + GRACE_MS);
    this.ended = this.follow(post((leave) => (this.breakOff = leave)));
  }

  /** Breaks the request off. A value that is not there yet is this error. */
  leave(reason: Error): void {
    this.settle(() => this.reject(reason));
    this.breakOff();
  }

  /** While `work` goes on it is not the other process that is waited for, and then it has its time anew. Must not reject. */
  async hold<W>(work: W): Promise<Awaited<W>> {
    this.held += 1;
    const done = await work;
    this.held -= 1;
    if (!this.isSettled) this.timer.refresh();
    return done;
  }

  private expire(): void {
    const isHeld = this.held > 0 && Date.now() - this.startedAt < STREAM_MS_MAX + GRACE_MS;
    if (isHeld) this.timer = setTimeout(() => this.expire(), this.what.timeoutMs + GRACE_MS);
    else this.leave(new UpstreamTimeoutError('The process that holds the tunnel did not answer in time.', true));
  }

  private async follow(asked: Promise<InternalAnswer>): Promise<void> {
    try {
      const answer = await asked;
      if (answer.status === 404) this.settle(() => this.reject(new TunnelMovedError()));
      await answer.lines((text) => this.onLine(JSON.parse(text) as InternalLine));
    } catch (error) {
      this.logger.debug({ msg: 'a call to another process broke off', err: error });
      this.settle(() => this.reject(lost(this.what, wasSent(error))));
    }
    this.settle(() => this.reject(lost(this.what, true)));
  }

  private onLine(line: InternalLine): void {
    if (!this.isSettled) this.timer.refresh();
    if (line.line === 'failure') return this.settle(() => this.reject(fromWire(line.failure)));
    const found = this.read(line);
    if (found !== undefined) this.settle(() => this.resolve(found));
  }

  private settle(outcome: () => void): void {
    if (this.isSettled) return;
    this.isSettled = true;
    clearTimeout(this.timer);
    outcome();
  }
}

/** A process that nobody reaches is dead or about to be: its lease tells, a little later. */
function lost(what: InternalAsk, isSent: boolean): UplinkDisconnectedError {
  const error = new UplinkDisconnectedError(isSent);
  return what.ask === 'request' && what.method === 'tools/call' ? error.ofCall() : error;
}

/** The spans are found anew here: they are not worth sending. @throws UpstreamError */
function toReply(text: string): McpReply {
  const head = parseMessage(text);
  const reply = head && replyTo(head.id as number, text, head, 'legacy');
  if (!reply) throw new UpstreamError('Another process sent an answer that is no JSON-RPC.', undefined, true);
  return reply;
}
