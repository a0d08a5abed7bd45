import { createHash, randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { InternalClient } from '../../../platform/internal-http/internal-client.js';
import { KeyedLimiter } from '../../../platform/limits/keyed-limiter.js';
import { Vault, VaultError } from '../../../platform/vault/vault.js';
import type { Cancellation } from '../../protocol/cancellation.js';
import type { CallerProfile, McpReply } from '../../protocol/channel.js';
import { memberText } from '../../protocol/json-edit.js';
import { slice } from '../../protocol/json-text.js';
import { progressTokenIn, replyTo } from '../../protocol/messages.js';
import { LEGACY_VERSIONS } from '../../protocol/protocol.js';
import type { McpRequest } from '../mcp-request.js';
import { askableOf, canAnswer, capabilitiesOf } from '../client-capabilities.js';
import { SlotAllocator } from './slot-allocator.js';
import { aboutOf, inputResult, PendingInputCall, type ResponseTarget, type Round } from './pending-input-call.js';
import { remoteRound } from './remote-pending-calls.js';
import { lost, StateRefusedError, STATE_MARK, stateIn, type RequestState, type RoundRequest } from './request-state.js';
import type { UpstreamRequestOptions, UpstreamCalls } from '../upstream-calls.js';

/** Calls that wait for what their clients say: of one account, and in a process. Each holds a socket to its upstream. */
const PARKED_EACH_MAX = 64;
const PARKED_MAX = 2_000;

/** How long a client may take in all for what it is asked during one call. */
const PARKED_MS_MAX = 10 * 60_000;

interface Entry {
  readonly name: string;
  readonly caller: string;
  readonly about: string;
  readonly until: number;
  call: PendingInputCall;
  /** Frees its place among those that wait; undefined before it was asked anything. */
  leave?: () => void;
  timer?: NodeJS.Timeout;
}

/**
 * Calls of modern clients whose legacy upstreams ask in the middle of them. Such a client is asked by the answer itself, and
 * repeats the call with what it says; until then the call waits here, upstream and all. What it is given to come back with is
 * sealed for the caller, and names the process, so any process leads back to the call. A call ends with its process.
 */
@Injectable()
export class PendingInputCalls {
  private readonly own = randomBytes(9).toString('base64url');
  private readonly lanes = new SlotAllocator();
  private readonly places = new KeyedLimiter(PARKED_EACH_MAX, PARKED_MAX);
  private readonly entries = new Map<string, Entry>();
  private isClosed = false;

  constructor(
    private readonly env: Env,
    private readonly vault: Vault,
    private readonly client: InternalClient,
  ) {}

  /**
   * How a call of this client can be asked back: the upstream session it needs, and its end. Null when the client declared
   * nothing that an older server could ask, or has enough such calls under way.
   */
  place(
    { request }: McpRequest,
    capabilities: Record<string, unknown>,
  ): { profile: CallerProfile; leave: () => void } | null {
    const declared = capabilitiesOf(askableOf(capabilities, LEGACY_VERSIONS[0]));
    if (!declared || this.isClosed) return null;
    const whom = `${request.caller} ${JSON.stringify(declared)}`;
    const lane = this.lanes.enter(whom);
    if (!lane) return null;
    const key = createHash('sha256').update(`${whom} ${lane.number}`).digest('base64url');
    return { profile: { key, capabilities, mayShare: true }, leave: lane.leave };
  }

  /** Begins a call, and answers as far as it comes by itself. @throws UpstreamFailure */
  async begin(
    asked: McpRequest,
    onward: UpstreamRequestOptions & { capabilities: Record<string, unknown>; leave: () => void },
    calls: UpstreamCalls,
  ): Promise<McpReply> {
    const { capabilities, leave, ...rest } = onward;
    const { request, method, own } = asked;
    const { watch } = request;
    const { timing, invocationId } = watch ?? {};
    // What became of it is told to the record of the request that hears it.
    const quiet = { asked: () => undefined, failed: () => undefined, timing, invocationId };
    const askable = askableOf(capabilities, LEGACY_VERSIONS[0]);
    const entry = {
      name: `${this.own}.${randomBytes(18).toString('base64url')}`,
      caller: request.caller,
      about: digestOf(aboutOf(method, own)),
      until: Date.now() + PARKED_MS_MAX,
    } as Entry;
    const mayAsk = (question: string, params: string | undefined) => {
      if (!canAnswer(askable, { method: question, params })) return `This client does not answer ${question}`;
      entry.leave ??= (this.isClosed ? null : this.places.enter(request.account)) ?? undefined;
      return entry.leave ? null : 'Too many calls of this account wait for their clients';
    };
    const heard = earsOf(asked);
    entry.call = new PendingInputCall(
      (onRequest, cancellation, ears) =>
        calls.ask({ ...asked, request: { ...request, cancellation, watch: quiet } }, { ...rest, onRequest, ears }),
      heard,
      mayAsk,
      leave,
    );
    const turn = await this.next(entry, heard, request.cancellation);
    return this.replyOf(asked, turn, { name: entry.name, url: this.env.internalUrl, until: entry.until });
  }

  /**
   * Which call of ours a request goes on with; null when its state is not one we gave.
   *
   * @throws StateRefusedError when it is, and cannot be used
   */
  ticketIn({ params, request }: McpRequest): RequestState | null {
    const state = stateIn(params);
    if (!state?.startsWith(STATE_MARK)) return null;
    try {
      const [name, url, until] = JSON.parse(
        this.vault.open(state.slice(STATE_MARK.length), ownerOf(request.caller)),
      ) as [string, string | null, number];
      if (until > Date.now()) return { name, url, until };
    } catch (error) {
      // Another Slipway behind this one gives such states, too.
      if (error instanceof VaultError) return null;
      throw error;
    }
    throw lost();
  }

  /** Goes on with a call. @throws StateRefusedError, UpstreamFailure */
  async resume(asked: McpRequest, ticket: RequestState): Promise<McpReply> {
    const { name, url } = ticket;
    const { request, method, own } = asked;
    const given = memberText(own ?? '{}', 'inputResponses');
    const wanted = {
      name,
      caller: request.caller,
      about: digestOf(aboutOf(method, own)),
      answers: given?.startsWith('{') ? given : '{}',
    };
    const turn = name.startsWith(`${this.own}.`)
      ? await this.turn(wanted, earsOf(asked), request.cancellation)
      : await remoteRound(this.client, url, wanted, earsOf(asked), request.cancellation);
    return this.replyOf(asked, turn, ticket);
  }

  /** The next turn of a call of this process. @throws StateRefusedError, UpstreamFailure */
  async turn({ name, caller, about, answers }: RoundRequest, ears: ResponseTarget, left: Cancellation): Promise<Round> {
    const entry = this.entries.get(name);
    if (entry?.caller !== caller) throw lost();
    if (entry.about !== about) {
      throw new StateRefusedError(
        'requestState belongs to another request: repeat method and params as they were',
        false,
      );
    }
    entry.call.answer(answers);
    return this.next(entry, ears, left);
  }

  /** Nothing is parked any more, and what waits ends. */
  close(): void {
    this.isClosed = true;
    for (const entry of [...this.entries.values()]) this.forget(entry, true);
  }

  private async next(entry: Entry, ears: ResponseTarget, left: Cancellation): Promise<Round> {
    const turn = entry.call.turn(ears, left);
    if (!turn) throw new StateRefusedError('Another request waits for this call already', false);
    clearTimeout(entry.timer);
    try {
      const came = await turn;
      if ('reply' in came) this.forget(entry, false);
      else this.park(entry);
      return came;
    } catch (error) {
      this.forget(entry, false);
      throw error;
    }
  }

  /** Waits for the client's next request, as long as it may take. */
  private park(entry: Entry): void {
    if (this.isClosed) return this.forget(entry, true);
    this.entries.set(entry.name, entry);
    entry.timer = setTimeout(() => this.forget(entry, true), Math.max(1, entry.until - Date.now())).unref();
  }

  private forget(entry: Entry, isUnfinished: boolean): void {
    clearTimeout(entry.timer);
    this.entries.delete(entry.name);
    entry.leave?.();
    if (isUnfinished) entry.call.cancel();
  }

  private replyOf({ request }: McpRequest, turn: Round, ticket: RequestState): McpReply {
    const reply = 'reply' in turn ? turn.reply : asReply(inputResult(turn.asks, this.seal(request.caller, ticket)));
    request.watch?.answered?.(reply);
    return reply;
  }

  /** Anew for each round, as the revision wants it. */
  private seal(caller: string, { name, url, until }: RequestState): string {
    return `${STATE_MARK}${this.vault.seal(JSON.stringify([name, url, until]), ownerOf(caller))}`;
  }
}

function asReply(result: string): McpReply {
  const text = `{"jsonrpc":"2.0","id":1,"result":${result}}`;
  return replyTo(1, text, { id: 1, result: {} }, 'modern') as McpReply;
}

const deaf = { event: () => undefined };

function earsOf({ own, request, sink }: McpRequest): ResponseTarget {
  const token = own && request.acceptsStream ? progressTokenIn(own) : null;
  return { sink: request.acceptsStream ? sink : deaf, token: token && slice(own ?? '', token) };
}

function ownerOf(caller: string): string {
  return `parked call of ${caller}`;
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
