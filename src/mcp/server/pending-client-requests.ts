import { randomBytes } from 'node:crypto';
import type { PubSub } from '../../platform/queue/pub-sub.js';
import type { Cancellation } from '../protocol/cancellation.js';
import type { ClientAnswer } from '../protocol/channel.js';
import { members, slice } from '../protocol/json-text.js';
import type { RpcHead } from '../protocol/messages.js';
import { rpcCode } from '../protocol/protocol.js';
import type { McpResponseSink } from './mcp-request.js';
import type { ClientSession } from './sessions/session-ids.js';
import { KeyedLimiter } from '../../platform/limits/keyed-limiter.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    /** The answer of a client to a request of an upstream, for the process that waits for it. */
    [topic: `mcp.answers.${string}`]: { id: string; session: string; text: string };
  }
}

/** Questions that wait for one session's client. */
const PENDING_EACH_MAX = 32;

/** Questions that wait in this process. */
const PENDING_MAX = 10_000;

/** An answer that arrives at another process travels to ours if it is no longer, as JSON: the relay carries 512 KB. */
const RELAYED_BYTES_MAX = 400 * 1024;

/** A question of an upstream that a client is to answer. */
export interface ClientRequest {
  method: string;
  /** JSON text. */
  params: string | undefined;
}

interface Pending {
  session: string;
  settle: (answer: ClientAnswer) => void;
}

/**
 * Questions to legacy clients, asked on the stream of the call that needs them. The answer comes as a POST of its own, maybe
 * to another process: the id of the question says which one waits, is unguessable, and is good in its session alone.
 */
export class PendingClientRequests {
  private readonly own = randomBytes(9).toString('base64url');
  private readonly pending = new Map<string, Pending>();
  private readonly waiting = new KeyedLimiter(PENDING_EACH_MAX, PENDING_MAX);
  private isClosed = false;

  constructor(private readonly pubSub: PubSub) {}

  /** Hears from now on of answers that arrive elsewhere. */
  async listen(): Promise<void> {
    await this.pubSub.subscribe(topicOf(this.own), (answer) => this.settle(answer.session, answer.id, answer.text));
  }

  /**
   * Asks the client on the stream of its call. Always resolves: with an error when the client is gone, does not answer in
   * time, or is asked too much at once.
   */
  ask(
    session: ClientSession,
    { method, params }: ClientRequest,
    sink: McpResponseSink,
    cancellation: Cancellation,
    timeoutMs: number,
  ): Promise<ClientAnswer> {
    const isOff = this.isClosed || cancellation.isCancelled;
    const leaveRoom = isOff ? null : this.waiting.enter(session.key);
    if (!leaveRoom) return Promise.resolve(failed('The client cannot be asked now'));
    const id = `${this.own}.${randomBytes(18).toString('base64url')}`;
    return new Promise((resolve) => {
      const settle = (answer: ClientAnswer) => {
        clearTimeout(timer);
        cancellation.forget(leave);
        this.pending.delete(id);
        leaveRoom();
        resolve(answer);
      };
      const leave = () => settle(failed('The client is gone'));
      const timer = setTimeout(() => settle(failed('The client did not answer in time')), timeoutMs);
      this.pending.set(id, { session: session.key, settle });
      cancellation.notify(leave);
      const given = params === undefined ? '' : `,"params":${params}`;
      sink.event(`{"jsonrpc":"2.0","id":"${id}","method":${JSON.stringify(method)}${given}}`);
    });
  }

  /** Takes what a client posts in answer to a question, wherever that waits. An answer nobody waits for is dropped. */
  take(session: ClientSession | null, { id }: RpcHead, text: string): void {
    if (!session || typeof id !== 'string') return;
    const [process = '', name, ...more] = id.split('.');
    if (name === undefined || more.length > 0 || !/^[\w-]{12}$/.test(process)) return;
    if (process === this.own) return this.settle(session.key, id, text);
    const tooLong = JSON.stringify({ error: { code: rpcCode.internalError, message: 'The answer is too long' } });
    const carried = Buffer.byteLength(JSON.stringify(text)) > RELAYED_BYTES_MAX ? tooLong : text;
    this.pubSub.publish(topicOf(process), { id, session: session.key, text: carried });
  }

  /** Nobody is asked any more, and what waits hears so. */
  close(): void {
    this.isClosed = true;
    for (const { settle } of this.pending.values()) settle(failed('The service is being restarted'));
  }

  private settle(session: string, id: string, text: string): void {
    const waiting = this.pending.get(id);
    if (waiting?.session === session) waiting.settle(answerIn(text));
  }
}

/** An answer's result as it was written, or its error. `text` is one JSON-RPC answer. */
function answerIn(text: string): ClientAnswer {
  const parts = members(text);
  const result = parts.get('result');
  if (result) return { result: slice(text, result) };
  const error = parts.get('error');
  const { code, message, data } = (error ? (JSON.parse(slice(text, error)) ?? {}) : {}) as Record<string, unknown>;
  return {
    error: {
      code: typeof code === 'number' ? code : rpcCode.internalError,
      message: typeof message === 'string' ? message : 'The client answered with an error',
      ...(data === undefined ? {} : { data }),
    },
  };
}

function failed(message: string): ClientAnswer {
  return { error: { code: rpcCode.internalError, message } };
}

function topicOf(process: string): `mcp.answers.${string}` {
  return `mcp.answers.${process}`;
}
