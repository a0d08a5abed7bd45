import { Cancellation } from '../../protocol/cancellation.js';
import type { ClientAnswer, McpReply } from '../../protocol/channel.js';
import { withoutMembers } from '../../protocol/json-edit.js';
import { members, slice } from '../../protocol/json-text.js';
import { CallerLeftError, UpstreamError } from '../../protocol/mcp-errors.js';
import { errorAnswer } from '../../protocol/messages.js';
import { rpcCode } from '../../protocol/protocol.js';
import type { McpResponseSink } from '../mcp-request.js';
import type { InputRequest } from '../bridge/input.js';
import { isPage } from '../client-capabilities.js';
import { Serializable } from '../../../platform/internal-http/error-codec.js';
import { isObject } from '../../../platform/text/json.js';

/** Prefix of Slipway's own states; states of upstreams are forwarded unread. */
export const STATE_MARK = 'sw1.pending.';

/** A `requestState` of no pending call, or of another call than the retry repeats. */
@Serializable('isLost')
export class StateRefusedError extends Error {
  /** @param isLost true when the call no longer exists; false when the retry is wrong */
  constructor(
    message: string,
    readonly isLost: boolean,
  ) {
    super(message);
  }
}

export interface RequestState {
  name: string;
  /** Internal URL of the process that holds the call; null without one. */
  url: string | null;
  until: number;
}

export interface RoundRequest {
  name: string;
  caller: string;
  /** Content of the call, by which a retry of another call is detected. */
  about: string;
  /** `inputResponses` as JSON text of an object. */
  answers: string;
}

/** Destination of messages that precede a response: the stream of the waiting request, with its progress token. */
export interface NotificationSink {
  sink: Pick<McpResponseSink, 'event'>;
  token: string | null;
}

export type Round = { reply: McpReply } | { requests: InputRequest[] };

export type Begin = (
  onRequest: (method: string, params: string | undefined) => Promise<ClientAnswer>,
  cancellation: Cancellation,
  target: NotificationSink,
) => Promise<McpReply>;

/** Counts the characters of params of pending requests, and of a response without a waiting request. */
const WAITING_CHARS_MAX = 4 * 1024 * 1024;

const TOO_LONG =
  'The MCP server responded before the input of its client arrived, with more than the 4 MB that are stored for the client.';

export const discarded: NotificationSink = { sink: { event: () => undefined }, token: null };

/**
 * A call whose legacy upstream sends requests during it, and whose modern client receives them as `input_required`
 * results (MCP 2026-07-28). The call stays open upstream, while the client's requests wait one after the other for the
 * next round.
 */
export class PendingInputCall {
  private readonly target: NotificationSink;
  private readonly cancellation = new Cancellation();
  private readonly open = new Map<string, InputRequest & { settle: (answer: ClientAnswer) => void }>();
  private openChars = 0;
  private count = 0;
  private waiter: { resolve(round: Round): void; reject(error: Error): void } | null = null;
  private outcome: { reply: McpReply } | { error: Error } | null = null;

  /**
   * @param target destination of the first request's messages
   *
   * @param refusalOf reason to reject an upstream request, as a message for the upstream; null to forward it
   * @param onOver called once when the call has finished
   */
  constructor(
    begin: Begin,
    target: NotificationSink,
    private readonly refusalOf: (method: string, params: string | undefined) => string | null,
    private readonly onOver: () => void,
  ) {
    this.target = { ...target };
    begin((method, params) => this.request(method, params), this.cancellation, this.target).then(
      (reply) => this.complete({ reply }),
      (error: Error) => this.complete({ error }),
    );
  }

  /**
   * Waits for the next round. A client that disconnects meanwhile cancels the call.
   *
   * @returns null when another request is already waiting
   * @throws UpstreamFailure
   */
  nextRound(target: NotificationSink, disconnected: Cancellation): Promise<Round> | null {
    if (this.waiter) return null;
    Object.assign(this.target, target);
    return new Promise<Round>((resolve, reject) => {
      const disconnect = () => this.cancel();
      const stopWaiting = (settle: () => void) => {
        disconnected.forget(disconnect);
        this.waiter = null;
        Object.assign(this.target, discarded);
        settle();
      };
      this.waiter = {
        resolve: (round) => stopWaiting(() => resolve(round)),
        reject: (error) => stopWaiting(() => reject(error)),
      };
      disconnected.notify(disconnect);
      this.flush();
    });
  }

  /** Ignores responses without a pending request. @param answers JSON text */
  deliverResponses(answers: string): void {
    if (!answers.startsWith('{')) return;
    for (const [key, span] of members(answers)) {
      const result = slice(answers, span);
      if (result.startsWith('{')) this.open.get(key)?.settle({ result });
    }
  }

  cancel(): void {
    this.cancellation.cancel();
    this.settleAll('The client has disconnected');
    this.complete({ error: new CallerLeftError() });
  }

  private request(method: string, params: string | undefined): Promise<ClientAnswer> {
    const chars = params?.length ?? 0;
    const refusal = this.outcome
      ? 'The call has finished'
      : this.openChars + chars > WAITING_CHARS_MAX
        ? 'The open input requests of this call exceed 4 MB'
        : this.refusalOf(method, params);
    if (refusal !== null) {
      return Promise.resolve(errorAnswer(refusal, rpcCode.methodNotFound));
    }
    const key = `question-${(this.count += 1)}`;
    return new Promise((resolve) => {
      const settle = (answer: ClientAnswer) => {
        if (!this.open.delete(key)) return;
        this.openChars -= chars;
        resolve(answer);
      };
      this.openChars += chars;
      // Removes the elicitation id, which only 2025-11-25 has: here the retry confirms that the page was visited.
      const sent = isPage(params) ? withoutMembers(params ?? '{}', (name) => name === 'elicitationId') : params;
      this.open.set(key, { key, method, params: sent, settle });
      // Collects requests that arrive together into one `input_required` result.
      setImmediate(() => this.flush());
    });
  }

  private flush(): void {
    if (!this.waiter) return;
    if (this.outcome) {
      if ('reply' in this.outcome) this.waiter.resolve(this.outcome);
      else this.waiter.reject(this.outcome.error);
    } else if (this.open.size > 0) {
      this.waiter.resolve({
        requests: [...this.open.values()].map(({ key, method, params }) => ({ key, method, params })),
      });
    }
  }

  private complete(outcome: { reply: McpReply } | { error: Error }): void {
    if (this.outcome) return;
    const isKept = this.waiter || 'error' in outcome || outcome.reply.text.length <= WAITING_CHARS_MAX;
    this.outcome = isKept ? outcome : { error: new UpstreamError(TOO_LONG, { outcomeUnknown: true }) };
    this.settleAll('The call has finished');
    this.flush();
    this.onOver();
  }

  private settleAll(message: string): void {
    for (const { settle } of [...this.open.values()]) settle(errorAnswer(message));
  }
}

/** Returns the content of a call, without members that change with each retry: `inputResponses`, `requestState`, and the hop's `_meta`. */
export function aboutOf(method: string, paramsText: string | undefined): string {
  const stable = [...members(paramsText ?? '{}')].filter(([name]) => !changing.has(name));
  const lines = stable.map(([name, span]) => `${JSON.stringify(name)}:${slice(paramsText ?? '', span)}`).sort();
  return `${method}\n${lines.join('\n')}`;
}

const changing: ReadonlySet<string> = new Set(['inputResponses', 'requestState', '_meta']);

export function lostCallError(): StateRefusedError {
  return new StateRefusedError(
    'The call that these responses are for is no longer waiting: it has finished, its 10 minutes have elapsed, or the service ' +
      'was restarted. Make the call again, without requestState.',
    true,
  );
}

/** Returns the error for a state that was changed, or issued to another client or for another address. */
export function foreign(): StateRefusedError {
  return new StateRefusedError(
    'requestState was changed, or was given to another client or address: make the call again without it',
    false,
  );
}

/** Returns the `requestState` of a retry; undefined when absent or not a string. */
export function stateIn(params: unknown): string | undefined {
  const state = isObject(params) ? params.requestState : undefined;
  return typeof state === 'string' ? state : undefined;
}

export function isRequestState(params: unknown): boolean {
  return stateIn(params)?.startsWith(STATE_MARK) ?? false;
}
