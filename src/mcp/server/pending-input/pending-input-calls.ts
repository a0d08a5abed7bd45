/**
 * Calls of modern clients (2026-07-28, no session) that wait for the client, because the upstream sends requests during
 * the call (2025-11-25).
 *
 * The upstream's requests become an `input_required` result, the upstream call stays open, and the client repeats its
 * request with `inputResponses` and `requestState`. Only the same caller can use a state; any process forwards the
 * retry to the one that holds the call (`remote-pending-calls.ts`), and a call is lost with its process.
 *
 * An upstream session knows one user, and a client without sessions can act for many, so concurrent calls of a caller
 * use up to 8 separate sessions, the lowest free number first. A wrong or late state is a StateRefusedError; a call
 * without a free session runs in the shared one, where requests of the upstream are rejected.
 */
import { createHash, randomBytes } from 'node:crypto';
import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { RevocationRegistry } from '../../../platform/http/revocation-registry.js';
import { InternalClient } from '../../../platform/internal-http/internal-client.js';
import { KeyedLimiter } from '../../../platform/limits/keyed-limiter.js';
import { Vault, VaultError } from '../../../platform/vault/vault.js';
import type { Cancellation } from '../../protocol/cancellation.js';
import type { CallerProfile, McpReply } from '../../protocol/channel.js';
import { memberText } from '../../protocol/json-edit.js';
import { slice } from '../../protocol/json-text.js';
import { progressTokenIn, resultReply } from '../../protocol/messages.js';
import { LEGACY_VERSIONS } from '../../protocol/protocol.js';
import type { McpRequest } from '../mcp-request.js';
import { inputResult } from '../bridge/input.js';
import { canAnswer, capabilitiesOf, capabilityNames } from '../client-capabilities.js';
import { INPUT_MS_MAX } from '../pending-client-requests.js';
import {
  aboutOf,
  discarded,
  PendingInputCall,
  type NotificationSink,
  type Round,
  lostCallError,
  StateRefusedError,
  STATE_MARK,
  stateIn,
  type RequestState,
  type RoundRequest,
} from './pending-input-call.js';
import { remoteRound } from './remote-pending-calls.js';
import type { UpstreamRequestOptions, UpstreamCalls } from '../upstream-calls.js';

/** Maximum number of pending calls of an owner, each of which holds a socket to its upstream. */
const PENDING_EACH_MAX = 64;
const PENDING_MAX = 2_000;

/** Maximum number of calls with their own upstream session; further calls receive no upstream requests. */
const SLOTS_MAX = 8;

interface Entry {
  readonly name: string;
  readonly caller: string;
  readonly principal: string;
  readonly about: string;
  /** Deadline of the client's responses, from the first request on, in epoch milliseconds; 0 before. */
  until: number;
  call: PendingInputCall;
  /** Releases the entry's slot among the pending calls; undefined before the first request. */
  leave?: () => void;
  timer?: NodeJS.Timeout;
  release?: () => void;
}

@Injectable()
export class PendingInputCalls implements BeforeApplicationShutdown {
  private readonly processId = randomBytes(9).toString('base64url');
  private readonly slots = new KeyedLimiter(1, Infinity);
  private readonly limiter = new KeyedLimiter(PENDING_EACH_MAX, PENDING_MAX);
  private readonly entries = new Map<string, Entry>();
  private isClosed = false;

  constructor(
    private readonly env: Env,
    private readonly vault: Vault,
    private readonly internalClient: InternalClient,
    private readonly revocationRegistry: RevocationRegistry,
  ) {}

  /**
   * Returns the caller profile and release function for a call whose client can answer requests. Null when the client
   * declared no capability that a legacy server uses, or has too many such calls.
   */
  allocate(
    { request }: McpRequest,
    capabilities: Record<string, unknown>,
  ): { profile: CallerProfile; leave: () => void } | null {
    const clientKey = this.isClosed ? null : whomOf(request.caller, capabilities);
    for (let slot = 0; clientKey !== null && slot < SLOTS_MAX; slot += 1) {
      const leave = this.slots.acquire(`${clientKey} ${slot}`);
      if (leave) return { profile: profileOf(clientKey, slot, capabilities), leave };
    }
    return null;
  }

  /**
   * Uses the profile of the client's calls one after another. Undefined for a client whose calls run in the shared
   * session.
   */
  listeningProfile({ request }: McpRequest, capabilities: Record<string, unknown>): CallerProfile | undefined {
    const clientKey = whomOf(request.caller, capabilities);
    return clientKey === null ? undefined : profileOf(clientKey, 0, capabilities);
  }

  /**
   * Uses the upstream session of `slot` ({@link allocate}).
   *
   * @throws UpstreamFailure
   */
  async begin(
    incoming: McpRequest,
    options: UpstreamRequestOptions,
    slot: { profile: CallerProfile; leave: () => void },
    capabilities: Record<string, unknown>,
    calls: UpstreamCalls,
  ): Promise<McpReply> {
    const { request, method, paramsText } = incoming;
    const { timing, invocationId } = request.observer ?? {};
    // This observer is silent: the record of the request that receives the outcome is notified instead.
    const observer = { received: () => undefined, failed: () => undefined, timing, invocationId };
    const names = capabilityNames(capabilities, LEGACY_VERSIONS[0]);
    const entry = {
      name: `${this.processId}.${randomBytes(18).toString('base64url')}`,
      caller: request.caller,
      principal: request.principal,
      about: digestOf(aboutOf(method, paramsText)),
      until: 0,
    } as Entry;
    const refusalOf = (rpcMethod: string, params: string | undefined) => {
      if (!canAnswer(names, { method: rpcMethod, params })) return `This client does not answer ${rpcMethod}`;
      entry.leave ??= (this.isClosed ? null : this.limiter.acquire(request.account)) ?? undefined;
      return entry.leave ? null : 'Too many calls of this account wait for their clients';
    };
    const first = targetOf(incoming);
    entry.call = new PendingInputCall(
      (onRequest, cancellation, target) =>
        calls.send(
          { ...incoming, request: { ...request, cancellation, observer } },
          { ...options, profile: slot.profile, onRequest, target },
        ),
      first,
      refusalOf,
      slot.leave,
    );
    const round = await this.next(entry, first, request.cancellation);
    return this.replyOf(incoming, round, { name: entry.name, url: this.env.internalUrl, until: entry.until });
  }

  /**
   * Returns null when the state was not issued here.
   *
   * @throws StateRefusedError when it was, and is invalid
   */
  stateOf({ params, request }: McpRequest): RequestState | null {
    const state = stateIn(params);
    if (!state?.startsWith(STATE_MARK)) return null;
    try {
      const [name, url, until] = JSON.parse(
        this.vault.open(state.slice(STATE_MARK.length), ownerOf(request.caller)),
      ) as [string, string | null, number];
      if (until > Date.now()) return { name, url, until };
    } catch (error) {
      // Another Slipway as upstream issues states of the same form.
      if (error instanceof VaultError) return null;
      throw error;
    }
    throw lostCallError();
  }

  /** @throws StateRefusedError, UpstreamFailure */
  async resume(incoming: McpRequest, state: RequestState): Promise<McpReply> {
    const { name, url } = state;
    const { request, method, paramsText } = incoming;
    const answersText = memberText(paramsText ?? '{}', 'inputResponses');
    const retry = {
      name,
      caller: request.caller,
      about: digestOf(aboutOf(method, paramsText)),
      answers: answersText?.startsWith('{') ? answersText : '{}',
    };
    const round = name.startsWith(`${this.processId}.`)
      ? await this.nextRound(retry, targetOf(incoming), request.cancellation)
      : await remoteRound(this.internalClient, url, retry, targetOf(incoming), request.cancellation);
    return this.replyOf(incoming, round, state);
  }

  /** @throws StateRefusedError, UpstreamFailure */
  async nextRound(
    { name, caller, about, answers }: RoundRequest,
    target: NotificationSink,
    disconnected: Cancellation,
  ): Promise<Round> {
    const entry = this.entries.get(name);
    if (entry?.caller !== caller) throw lostCallError();
    if (entry.about !== about) {
      throw new StateRefusedError(
        'requestState belongs to another request: repeat method and params as they were',
        false,
      );
    }
    entry.call.deliverResponses(answers);
    return this.next(entry, target, disconnected);
  }

  beforeApplicationShutdown(): void {
    this.isClosed = true;
    for (const entry of [...this.entries.values()]) this.forget(entry, true);
  }

  private async next(entry: Entry, target: NotificationSink, disconnected: Cancellation): Promise<Round> {
    const next = entry.call.nextRound(target, disconnected);
    if (!next) throw new StateRefusedError('Another request waits for this call already', false);
    clearTimeout(entry.timer);
    try {
      const round = await next;
      const isOver = 'reply' in round;
      if (isOver || this.isClosed) this.forget(entry, !isOver);
      else {
        this.entries.set(entry.name, entry);
        entry.until ||= Date.now() + INPUT_MS_MAX;
        entry.release ??= this.revocationRegistry.add(entry.principal, () => this.forget(entry, true));
        entry.timer = setTimeout(() => this.forget(entry, true), Math.max(1, entry.until - Date.now())).unref();
      }
      return round;
    } catch (error) {
      this.forget(entry, false);
      throw error;
    }
  }

  private forget(entry: Entry, isUnfinished: boolean): void {
    clearTimeout(entry.timer);
    this.entries.delete(entry.name);
    entry.leave?.();
    entry.release?.();
    if (isUnfinished) entry.call.cancel();
  }

  private replyOf({ request }: McpRequest, round: Round, state: RequestState): McpReply {
    const reply =
      'reply' in round
        ? round.reply
        : resultReply(inputResult(round.requests, this.seal(request.caller, state)), 'modern');
    request.observer?.recordReply?.(reply);
    return reply;
  }

  /** Seals a new `requestState` for each round, as the revision requires. */
  private seal(caller: string, { name, url, until }: RequestState): string {
    return `${STATE_MARK}${this.vault.seal(JSON.stringify([name, url, until]), ownerOf(caller))}`;
  }
}

/**
 * Returns the owner of the upstream sessions that a client uses; null when it declared no capability that a legacy
 * server uses.
 */
function whomOf(caller: string, capabilities: Record<string, unknown>): string | null {
  const declared = capabilitiesOf(capabilityNames(capabilities, LEGACY_VERSIONS[0]));
  return declared && `${caller} ${JSON.stringify(declared)}`;
}

function profileOf(clientKey: string, slot: number, capabilities: Record<string, unknown>): CallerProfile {
  const key = createHash('sha256').update(`${clientKey} ${slot}`).digest('base64url');
  return { key, capabilities, mayShare: true };
}

function targetOf({ paramsText, request, sink }: McpRequest): NotificationSink {
  const token = paramsText && request.acceptsStream ? progressTokenIn(paramsText) : null;
  return { sink: request.acceptsStream ? sink : discarded.sink, token: token && slice(paramsText ?? '', token) };
}

function ownerOf(caller: string): string {
  return `pending call of ${caller}`;
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
