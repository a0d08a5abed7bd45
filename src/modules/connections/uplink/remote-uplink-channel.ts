import { Logger } from '@nestjs/common';
import type {
  Channel,
  ClientAnswer,
  Listening,
  ListenFilter,
  ListenOptions,
  McpCall,
  McpReply,
  UpstreamListener,
} from '../../../mcp/protocol/channel.js';
import {
  asCallError,
  CallerLeftError,
  UplinkDisconnectedError,
  UpstreamError,
  UpstreamTimeoutError,
} from '../../../mcp/protocol/mcp-errors.js';
import { SilenceTimer } from '../../../mcp/client/silence-timer.js';
import { numericId, parseMessage, replyTo } from '../../../mcp/protocol/messages.js';
import { rpcCode, type UpstreamIdentity } from '../../../mcp/protocol/protocol.js';
import { OutcomeUnknownError } from '../../../platform/internal-http/error-codec.js';
import {
  ProcessUnreachedError,
  RequestRefusedError,
  type InternalClient,
  type MessageStream,
} from '../../../platform/internal-http/internal-client.js';
import type { TunnelName } from './uplink-tunnels.repository.js';
import { TunnelMovedError } from './uplink.errors.js';

/**
 * Time in addition to the request's own. The process that holds the tunnel enforces the timeout, unless it is frozen.
 */
const GRACE_MS = 2_000;

/** The head of a request to the process that holds the tunnel; content of other parties is the body. */
export type UplinkRequest =
  | { kind: 'open'; timeoutMs: number }
  | {
      /** A call, with the params as its body. */
      kind: 'request';
      timeoutMs: number;
      method: string;
      hasParams: boolean;
      wantsNotifications: boolean;
      profileKey: string | null;
      level?: string;
      /** True if the caller can respond to requests of the local server. */
      canRespond: boolean;
    }
  /** Listens to notifications. The body is the ListenFilter. */
  | { kind: 'listen'; timeoutMs: number }
  /** Responds to the `client-request` message with this id. The body is the ClientAnswer. */
  | { kind: 'client-answer'; id: string };

/** A message of the response; `text` is the unchanged message of the local server. */
export type UplinkMessage =
  | { type: 'identity'; identity: UpstreamIdentity }
  | { type: 'notification'; method: string; text: string }
  | { type: 'client-request'; id: string; method: string; params: string | undefined }
  | { type: 'reply'; text: string }
  | { type: 'listening'; honoured: ListenFilter };

type TimedRequest = Exclude<UplinkRequest, { kind: 'client-answer' }>;

/** @returns undefined while the result is incomplete */
type Reader<T> = (message: UplinkMessage) => T | undefined;

/** Requests of the local server to the client arrive as messages of the response, and each response of the client is a separate request. */
export class RemoteUplinkChannel implements Channel {
  private readonly logger = new Logger('uplink');
  private readonly path: string;

  constructor(
    private readonly client: InternalClient,
    private readonly url: string,
    { connectionId, tunnel }: TunnelName,
  ) {
    this.path = `/internal/uplink/${connectionId}/${tunnel}`;
  }

  async open(timeoutMs: number): Promise<UpstreamIdentity> {
    const read: Reader<UpstreamIdentity> = (message) => (message.type === 'identity' ? message.identity : undefined);
    return this.send({ kind: 'open', timeoutMs }, '', read).value;
  }

  async request(call: McpCall): Promise<McpReply> {
    const { method, params, timeoutMs, cancellation, onNotification, profile, onRequest } = call;
    if (cancellation?.isCancelled) throw new CallerLeftError();
    const answer = this.send<McpReply>(
      {
        kind: 'request',
        method,
        timeoutMs,
        hasParams: params !== undefined,
        wantsNotifications: onNotification !== undefined,
        profileKey: profile?.key ?? null,
        level: profile?.level,
        canRespond: onRequest !== undefined,
      },
      params ?? '',
      (message) => {
        if (message.type === 'notification') onNotification?.(message.text, message.method);
        if (message.type === 'client-request') void this.answerClientRequest(message, onRequest, answer);
        if (message.type !== 'reply') return undefined;
        // The message is parsed again, since its spans are not sent.
        const head = parseMessage(message.text);
        const reply = head && replyTo(numericId(head.id) as number, message.text, head, 'legacy');
        if (!reply)
          throw new UpstreamError('Another process sent a response that is not JSON-RPC.', { outcomeUnknown: true });
        return reply;
      },
    );
    const onLeft = () => answer.abort(new CallerLeftError());
    cancellation?.notify(onLeft);
    return answer.value.finally(() => cancellation?.forget(onLeft));
  }

  async listen(filter: ListenFilter, listener: UpstreamListener, { timeoutMs }: ListenOptions): Promise<Listening> {
    let isClosed = false;
    const answer = this.send<ListenFilter>({ kind: 'listen', timeoutMs }, JSON.stringify(filter), (message) => {
      if (message.type === 'notification' && !isClosed) listener.onNotification(message.text, message.method);
      return message.type === 'listening' ? message.honoured : undefined;
    });
    const honoured = await answer.value;
    void answer.ended.then(() => {
      if (!isClosed) listener.onEnd(new UplinkDisconnectedError());
    });
    return {
      honoured,
      close: async () => {
        isClosed = true;
        answer.abort(new CallerLeftError());
      },
    };
  }

  /** Does nothing: all callers share the session of the local server. */
  async release(): Promise<void> {}

  /** Does nothing: the tunnel belongs to the process that holds it. */
  async close(): Promise<void> {}

  /** Responds to one request of the local server. Never rejects: a client that disconnects aborts its call. */
  private async answerClientRequest(
    { id, method, params }: Extract<UplinkMessage, { type: 'client-request' }>,
    onRequest: McpCall['onRequest'],
    call: RemoteAnswer<McpReply>,
  ): Promise<void> {
    const answering = onRequest?.(method, params).catch(() => undefined);
    const answer: ClientAnswer = (await call.suspendTimeout(answering)) ?? unanswered;
    const head: UplinkRequest = { kind: 'client-answer', id };
    const body = JSON.stringify(answer);
    const sending = this.client.follow({ url: this.url, path: this.path, head, body }, () => undefined);
    void call.ended.then(() => sending.abort(new Error('the call has ended')));
    await sending.ended.catch((error: unknown) => {
      this.logger.debug({ msg: 'a response did not reach the process that holds the tunnel', err: error });
    });
  }

  private send<T>(head: TimedRequest, body: string, read: Reader<T>): RemoteAnswer<T> {
    const { url, path } = this;
    return new RemoteAnswer(head, read, (onMessage) => this.client.follow({ url, path, head, body }, onMessage));
  }
}

const unanswered: ClientAnswer = { error: { code: rpcCode.internalError, message: 'The client did not answer' } };

class RemoteAnswer<T> {
  readonly value: Promise<T>;
  /** Resolves at the end of the response, and never rejects. */
  readonly ended: Promise<void>;
  private readonly stream: MessageStream;
  private readonly timer: SilenceTimer;
  private isSettled = false;
  private suspensions = 0;
  private resolve: (value: T) => void = () => undefined;
  private reject: (error: Error) => void = () => undefined;

  constructor(
    private readonly head: TimedRequest,
    private readonly read: Reader<T>,
    follow: (onMessage: (message: UplinkMessage) => void) => MessageStream,
  ) {
    this.value = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.timer = new SilenceTimer(
      head.timeoutMs + GRACE_MS,
      () => {
        if (this.suspensions > 0 && !this.timer.isOver) this.timer.restart();
        else this.abort(new UpstreamTimeoutError('The process that holds the tunnel did not answer in time.', true));
      },
      Date.now() + GRACE_MS,
    );
    this.stream = follow((message) => this.onMessage(message));
    this.ended = this.stream.ended.then(
      () => this.fail(new UplinkDisconnectedError(true)),
      (error: Error) => this.fail(upstreamFailure(error)),
    );
  }

  /** Aborts the request. If no result arrived, {@link value} rejects with the reason. */
  abort(reason: Error): void {
    this.fail(reason);
    this.stream.abort(reason);
  }

  /** Suspends the timeout while `work` runs, and restarts it afterwards. `work` must not reject. */
  async suspendTimeout<W>(work: W): Promise<Awaited<W>> {
    this.suspensions += 1;
    const done = await work;
    this.suspensions -= 1;
    if (!this.isSettled) this.timer.restart();
    return done;
  }

  private onMessage(message: UplinkMessage): void {
    if (!this.isSettled) this.timer.restart();
    try {
      const outcome = this.read(message);
      if (outcome !== undefined) this.settle(() => this.resolve(outcome));
    } catch (error) {
      this.abort(error as Error);
    }
  }

  private fail(error: Error): void {
    this.settle(() => this.reject(this.head.kind === 'request' ? asCallError(error, this.head) : error));
  }

  private settle(outcome: () => void): void {
    if (this.isSettled) return;
    this.isSettled = true;
    this.timer.stop();
    outcome();
  }
}

/** Converts an error of another process. An unreachable process is treated as dead, and its tunnels close when its lease expires. */
function upstreamFailure(error: Error): Error {
  if (error instanceof RequestRefusedError) return new TunnelMovedError();
  if (error instanceof ProcessUnreachedError) return new UplinkDisconnectedError(false);
  return error instanceof OutcomeUnknownError ? new UplinkDisconnectedError(true) : error;
}
