import { Cancellation } from '../../protocol/cancellation.js';
import type { ClientAnswer, McpReply } from '../../protocol/channel.js';
import { withoutMembers } from '../../protocol/json-edit.js';
import { members, slice } from '../../protocol/json-text.js';
import { CallerLeftError, UpstreamError } from '../../protocol/mcp-errors.js';
import { rpcCode } from '../../protocol/protocol.js';
import type { McpResponseSink } from '../mcp-request.js';
import type { InputRequest } from '../bridge/input.js';
import { isPage } from '../client-capabilities.js';

/** Where what precedes an answer goes: the stream of the request that waits for it, under its own progress token. */
export interface ResponseTarget {
  sink: Pick<McpResponseSink, 'event'>;
  /** JSON text; null when the client wants no progress. */
  token: string | null;
}

/** What a call came to for now: its answer, or what its upstream wants to know before it goes on. */
export type Round = { reply: McpReply } | { asks: InputRequest[] };

/** How a call that may be parked is begun. */
export type Begin = (
  onRequest: (method: string, params: string | undefined) => Promise<ClientAnswer>,
  cancellation: Cancellation,
  ears: ResponseTarget,
) => Promise<McpReply>;

/** What of one call waits for its client, in characters: the params of open questions, or an answer that nobody hears yet. */
const WAITING_CHARS_MAX = 4 * 1024 * 1024;

interface Question extends InputRequest {
  settle: (answer: ClientAnswer) => void;
}

interface Waiter {
  resolve(turn: Round): void;
  reject(error: Error): void;
}

const TOO_LONG =
  'The MCP server answered while its client was being asked, with more than the 4 MB that are kept until it comes back.';

const nobody: ResponseTarget = { sink: { event: () => undefined }, token: null };

/**
 * A call whose upstream asks in the middle of it, and whose client is asked by what it is answered (MCP 2026-07-28): the
 * call stays open upstream, while one request of the client after the other waits for its next turn.
 */
export class PendingInputCall {
  /** Heard by the upstream's notifications; changes with each request of the client. */
  private readonly ears: ResponseTarget;
  private readonly cancellation = new Cancellation();
  private readonly open = new Map<string, Question>();
  private openChars = 0;
  private asked = 0;
  private waiter: Waiter | null = null;
  private outcome: { reply: McpReply } | { error: Error } | null = null;

  /**
   * @param ears of the request that begins it
   * @param mayAsk why the client is not to be asked this, in words for the upstream; null when it is
   * @param onOver told once, when nothing more will come
   */
  constructor(
    begin: Begin,
    ears: ResponseTarget,
    private readonly mayAsk: (method: string, params: string | undefined) => string | null,
    private readonly onOver: () => void,
  ) {
    this.ears = { ...ears };
    begin((method, params) => this.ask(method, params), this.cancellation, this.ears).then(
      (reply) => this.end({ reply }),
      (error: Error) => this.end({ error }),
    );
  }

  /**
   * Waits for the next turn. A client that leaves meanwhile has cancelled the call.
   *
   * @returns null when another request waits for it already
   * @throws UpstreamFailure
   */
  turn(ears: ResponseTarget, left: Cancellation): Promise<Round> | null {
    if (this.waiter) return null;
    Object.assign(this.ears, ears);
    return new Promise<Round>((resolve, reject) => {
      const leave = () => this.cancel();
      const over = (settle: () => void) => {
        left.forget(leave);
        this.waiter = null;
        Object.assign(this.ears, nobody);
        settle();
      };
      this.waiter = {
        resolve: (turn) => over(() => resolve(turn)),
        reject: (error) => over(() => reject(error)),
      };
      left.notify(leave);
      this.tell();
    });
  }

  /** Gives the upstream what the client says; answers to nothing that was asked are passed over. @param answers JSON text */
  answer(answers: string): void {
    if (!answers.startsWith('{')) return;
    for (const [key, span] of members(answers)) {
      const result = slice(answers, span);
      if (result.startsWith('{')) this.open.get(key)?.settle({ result });
    }
  }

  /** Ends it: the upstream hears that nobody waits any more. */
  cancel(): void {
    this.cancellation.cancel();
    this.settleAll('The client is gone');
    this.end({ error: new CallerLeftError() });
  }

  private ask(method: string, params: string | undefined): Promise<ClientAnswer> {
    const chars = params?.length ?? 0;
    const refusal = this.outcome
      ? 'The call is over'
      : this.openChars + chars > WAITING_CHARS_MAX
        ? 'The client is asked for too much at once'
        : this.mayAsk(method, params);
    if (refusal !== null) {
      return Promise.resolve({ error: { code: rpcCode.methodNotFound, message: refusal } });
    }
    const key = `question-${(this.asked += 1)}`;
    return new Promise((resolve) => {
      const settle = (answer: ClientAnswer) => {
        if (!this.open.delete(key)) return;
        this.openChars -= chars;
        resolve(answer);
      };
      this.openChars += chars;
      this.open.set(key, { key, method, params: forModern(params), settle });
      // What is asked in the same breath is asked together.
      setImmediate(() => this.tell());
    });
  }

  private tell(): void {
    if (!this.waiter) return;
    if (this.outcome) {
      if ('reply' in this.outcome) this.waiter.resolve(this.outcome);
      else this.waiter.reject(this.outcome.error);
    } else if (this.open.size > 0) {
      this.waiter.resolve({
        asks: [...this.open.values()].map(({ key, method, params }) => ({ key, method, params })),
      });
    }
  }

  private end(outcome: { reply: McpReply } | { error: Error }): void {
    if (this.outcome) return;
    const isKept = this.waiter || 'error' in outcome || outcome.reply.text.length <= WAITING_CHARS_MAX;
    this.outcome = isKept ? outcome : { error: new UpstreamError(TOO_LONG, undefined, true) };
    this.settleAll('The call is over');
    this.tell();
    this.onOver();
  }

  private settleAll(message: string): void {
    for (const { settle } of [...this.open.values()]) settle({ error: { code: rpcCode.internalError, message } });
  }
}

/** A page has an id in 2025-11-25 alone: in 2026-07-28 the next request says that it was visited. */
function forModern(params: string | undefined): string | undefined {
  return isPage(params) ? withoutMembers(params ?? '{}', (name) => name === 'elicitationId') : params;
}

/** The question a call waits with, as its answer: text of a result. */
export function inputResult(asks: readonly InputRequest[], requestState: string): string {
  const requests = asks.map(({ key, method, params }) => {
    const given = params === undefined ? '' : `,"params":${params}`;
    return `${JSON.stringify(key)}:{"method":${JSON.stringify(method)}${given}}`;
  });
  return `{"resultType":"input_required","inputRequests":{${requests.join(',')}},"requestState":${JSON.stringify(requestState)}}`;
}

/** What a request is about, without what changes from try to try: its answers, its state, and what is about the hop. */
export function aboutOf(method: string, own: string | undefined): string {
  const stays = [...members(own ?? '{}')].filter(([name]) => !changing.has(name));
  const told = stays.map(([name, span]) => `${JSON.stringify(name)}:${slice(own ?? '', span)}`).sort();
  return `${method}\n${told.join('\n')}`;
}

const changing: ReadonlySet<string> = new Set(['inputResponses', 'requestState', '_meta']);
