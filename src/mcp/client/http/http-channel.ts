/**
 * MCP over HTTP to a server of any era.
 *
 * The first call learns the era of the endpoint, from the table of eras or by a probe (`era-probe.ts`). Calls of the
 * legacy era to a modern endpoint use a second adapter with sessions, where the endpoint has them. When a reply
 * contradicts the era, the verdict is discarded, the endpoint is probed again, and the call is resent once if it
 * certainly did not run.
 *
 * Requests to servers outside carry `Via`, which detects a loop through this service; hosted programs do not get it.
 * Errors state the caller's whole time, that a tool call might have run, and the server's name in place of its address.
 */
import type {
  Channel,
  Listening,
  ListenFilter,
  ListenOptions,
  McpCall,
  McpReply,
  UpstreamListener,
} from '../../protocol/channel.js';
import { deadlineIn } from '../../protocol/deadline.js';
import { EraMemory } from '../../eras/era-memory.js';
import { isStale, type EraVerdict } from '../../eras/era.repository.js';
import { asCallError, tooLate, UpstreamFailure, UpstreamTimeoutError } from '../../protocol/mcp-errors.js';
import type { Era, UpstreamIdentity } from '../../protocol/protocol.js';
import { EraContradictedError } from '../may-resend.js';
import type { ProtocolAdapter } from '../protocol-adapter.js';
import { findEra, findSession, type ProbedEra } from '../era-probe.js';
import type { HttpDispatcher } from './http-exchange.js';
import { HttpWire, type HttpTarget } from './http-wire.js';
import { LegacyAdapter, type LegacyOptions } from '../legacy-adapter.js';
import { ModernAdapter } from '../modern-adapter.js';
import { type ResultCache, ResultStore } from '../result-cache.js';
import { CALL_MS_MAX } from '../silence-timer.js';
import { SingleFlight } from '../single-flight.js';
import { withHiddenAddress } from './hidden-address.js';
import { openSse } from './sse-session.js';
import { openStreamable } from './streamable-session.js';
import { Inject, Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { Egress } from '../../../platform/egress/egress.js';
import { viaMark } from '../../protocol/via.js';

/** A verdict younger than this is trusted: a failure is reported and does not cause another probe. */
const FRESH_MS = 5_000;

/** Tolerance for timers that fire early. */
const TIMER_MS_EARLY = 50;

/** Wait for the first session of an endpoint of the modern era; its calls need the remaining time. */
const SESSION_MS_MAX = 8_000;

/** Creates channels, which share only the stored eras of their endpoints. */
@Injectable()
export class HttpChannels {
  private readonly results = new ResultStore();
  private readonly via: string;

  constructor(
    private readonly egress: Egress,
    private readonly eraMemory: EraMemory,
    @Inject(Env) env: Pick<Env, 'encryptionKeys'>,
  ) {
    this.via = viaMark(env);
  }

  /** Returns a channel that dials on the first call. */
  channelTo(target: HttpTarget, eras = this.eraMemory): Channel {
    const marked = target.dispatcher ? target : { ...target, via: this.via };
    return new HttpChannel(target.dispatcher ?? this.egress, marked, eras, this.results.forChannel());
  }

  /** Works like {@link channelTo}, but neither knows nor stores the era of the endpoint. */
  forgetfulChannelTo(target: HttpTarget): Channel {
    const none = () => Promise.resolve(null);
    return this.channelTo(
      target,
      new EraMemory({ read: none, write: async () => undefined, forget: async () => undefined }),
    );
  }
}

interface Choice {
  adapter: ProtocolAdapter;
  verdict: EraVerdict;
  /** This is the same adapter at an endpoint without sessions. The first call of the legacy era opens it. */
  legacy: SingleFlight<ProtocolAdapter> | null;
}

export class HttpChannel implements Channel {
  private readonly wire: HttpWire;
  private readonly choice: SingleFlight<Choice>;
  private readonly upstream: LegacyOptions['url'];
  private isConfirmed = false;

  constructor(
    dispatcher: HttpDispatcher,
    private readonly target: HttpTarget,
    private readonly eras: EraMemory,
    private readonly cache: ResultCache,
  ) {
    this.wire = new HttpWire(dispatcher, target);
    this.upstream = { host: target.url.host, isProgram: target.dispatcher !== undefined };
    this.choice = new SingleFlight(() => this.choose(), this.upstream);
  }

  async open(timeoutMs: number, era?: Era): Promise<UpstreamIdentity> {
    const from = performance.now();
    try {
      const identity = await this.withAdapter(timeoutMs, { era }, (adapter, ms) => adapter.open(ms));
      return this.target.sessions ? { ...identity, restoresSessions: true } : identity;
    } catch (error) {
      throw this.errorFor(error, { method: 'initialize', timeoutMs }, from);
    }
  }

  request(request: McpCall): Promise<McpReply> {
    const from = performance.now();
    const { sessionPerCaller } = this.target;
    const call = sessionPerCaller ? inOwnSession(request, sessionPerCaller.sharedKey) : request;
    const { value } = this.choice;
    const adapter = call.era === 'legacy' && value?.legacy ? value.legacy.value : value?.adapter;
    const send = () => this.withAdapter(call.timeoutMs, call, (chosen, ms) => chosen.request(call, ms));
    const sent = adapter ? adapter.request(call, call.timeoutMs) : send();
    return sent.catch(async (error: unknown) => {
      if (!(adapter && value && error instanceof EraContradictedError)) throw this.errorFor(error, call, from);
      await this.invalidateEra(value);
      return send().catch((again: unknown) => {
        throw this.errorFor(again, call, from);
      });
    });
  }

  async listen(filter: ListenFilter, listener: UpstreamListener, options: ListenOptions): Promise<Listening> {
    try {
      return await this.withAdapter(options.timeoutMs, { era: options.era }, (adapter, timeoutMs) =>
        adapter.listen(filter, listener, { ...options, timeoutMs }),
      );
    } catch (error) {
      throw this.hideAddress(error as Error);
    }
  }

  forgetLists(): void {
    this.cache.forgetLists();
  }

  notify(profileKey: string, text: string): void {
    const { value } = this.choice;
    (value?.legacy?.value ?? value?.adapter)?.notify?.(profileKey, text);
  }

  async release(profileKey: string, forGood = false): Promise<void> {
    const { value } = this.choice;
    const ended = (value?.legacy?.value ?? value?.adapter)?.release(profileKey);
    // Even without a local session: another process, or an earlier run of this one, might have opened it.
    if (forGood) await this.wire.endNamed(profileKey);
    await ended;
  }

  async close(forGood = false): Promise<void> {
    const sharedKey = this.target.sessionPerCaller?.sharedKey;
    if (forGood && sharedKey !== undefined) await this.release(sharedKey, true);
    await this.choice.close((choice) => closeChoice(choice, forGood));
  }

  /**
   * Returns the error for the caller. A timeout states the caller's whole time, not the rest after a probe, a handshake or a resumed stream. The error of
   * a tool call states that it might have run. No error contains the address of a server with a name.
   */
  private errorFor(
    error: unknown,
    { method, timeoutMs, onNotification }: Pick<McpCall, 'method' | 'timeoutMs' | 'onNotification'>,
    from: number,
  ): Error {
    let reported = error as Error;
    const spentMs = performance.now() - from + TIMER_MS_EARLY;
    if (reported instanceof UpstreamTimeoutError && spentMs >= timeoutMs) {
      const isOver = spentMs > CALL_MS_MAX;
      const isOpening = method === 'initialize' && timeoutMs >= this.target.connectTimeoutMs;
      const late = tooLate(this.target.url, { timeoutMs, isExtended: onNotification !== undefined, isOver, isOpening });
      reported = new UpstreamTimeoutError(late, reported.outcomeUnknown);
    }
    return this.hideAddress(asCallError(reported, { method }));
  }

  private hideAddress(error: Error): Error {
    const { url, name } = this.target;
    return name === undefined ? error : withHiddenAddress(error, url, name);
  }

  /** Runs a call with an adapter, and with another one when the first does not match the endpoint. */
  private async withAdapter<T>(
    timeoutMs: number,
    call: Pick<McpCall, 'era' | 'cancellation' | 'timing'>,
    work: (adapter: ProtocolAdapter, timeoutMs: number) => Promise<T>,
  ): Promise<T> {
    const timeLeft = deadlineIn(timeoutMs);
    for (let isRepeat = false; ; isRepeat = true) {
      const choice = this.choice.value ?? (await this.findChoice(timeLeft(), call));
      try {
        return await work(await adapterIn(choice, call, timeLeft), timeLeft());
      } catch (error) {
        if (!(error instanceof EraContradictedError)) throw error;
        if (isRepeat && error.outcome instanceof Error) throw error.outcome;
        if (isRepeat) return error.outcome as T;
        await this.invalidateEra(choice);
      }
    }
  }

  private async findChoice(timeoutMs: number, call: Pick<McpCall, 'cancellation' | 'timing'>): Promise<Choice> {
    const from = performance.now();
    try {
      return await this.choice.get(timeoutMs, call.cancellation);
    } finally {
      if (call.timing) call.timing.queueMs = performance.now() - from;
    }
  }

  private async choose(): Promise<Choice> {
    let probed: ProbedEra | undefined;
    const verdict = await this.eras.settle(this.target.url, async () => {
      probed = await findEra(this.wire);
      return probed.verdict;
    });
    const adapter = this.adapterFor(verdict, probed);
    const isModern = adapter instanceof ModernAdapter;
    const legacy = isModern
      ? new SingleFlight(async () => {
          if (verdict.kind === 'both') return this.legacyAdapter('streamable');
          const opened = await findSession(this.wire);
          if (!opened) return adapter;
          await this.eras.refine(this.target.url, { ...verdict, kind: 'both' });
          return this.legacyAdapter('streamable', { opened });
        }, this.upstream)
      : null;
    return { verdict, adapter, legacy };
  }

  private adapterFor(verdict: EraVerdict, probed: ProbedEra | undefined): ProtocolAdapter {
    const { wire } = this;
    const isFresh = () => probed !== undefined && Date.now() - verdict.learnedAt < FRESH_MS;
    if (verdict.kind === 'modern' || verdict.kind === 'both') {
      const invalidateEra = () => {
        if (isFresh() || this.isConfirmed || !this.choice.value) return;
        this.isConfirmed = true;
        void this.invalidateEra(this.choice.value);
      };
      return new ModernAdapter(wire, this.cache, { discovered: probed?.discovered, isFresh, invalidateEra });
    }
    return this.legacyAdapter(verdict.kind, { opened: probed?.opened, isFresh, isStale: () => isStale(verdict) });
  }

  private legacyAdapter(kind: 'streamable' | 'sse', options: Partial<LegacyOptions> = {}): LegacyAdapter {
    const open = kind === 'sse' ? openSse : openStreamable;
    return new LegacyAdapter((profile, handlers) => open(this.wire, profile, handlers), {
      url: this.upstream,
      sessionsMax: this.target.sessionsMax,
      ...options,
    });
  }

  /** Calls that run on the adapter continue. */
  private async invalidateEra(choice: Choice): Promise<void> {
    if (this.choice.value === choice) {
      this.choice.discard(choice);
      void closeChoice(choice);
    }
    await this.eras.forget(this.target.url, choice.verdict);
  }
}

/**
 * Returns the call in its own session. A caller that can answer upstream requests already has its own session, unless it uses one for each concurrent call
 * (`mayShare`).
 */
function inOwnSession(call: McpCall, sharedKey: string | undefined): McpCall {
  const { profile, caller } = call;
  const key = caller ?? sharedKey;
  if (key === undefined || (profile && !profile.mayShare)) return call;
  return { ...call, profile: { key, capabilities: profile?.capabilities ?? {}, level: profile?.level } };
}

/** Returns the adapter of an era. A modern adapter serves the call while the endpoint fails to open a session. */
async function adapterIn(
  { adapter, legacy }: Choice,
  { era, cancellation }: Pick<McpCall, 'era' | 'cancellation'>,
  timeLeft: () => number,
): Promise<ProtocolAdapter> {
  if (era !== 'legacy' || !legacy) return adapter;
  return legacy.get(Math.min(timeLeft(), SESSION_MS_MAX), cancellation).catch((error: unknown) => {
    if (error instanceof UpstreamFailure) return adapter;
    throw error;
  });
}

async function closeChoice({ adapter, legacy }: Choice, forGood?: boolean): Promise<void> {
  await adapter.close(forGood);
  await legacy?.close(async (other) => (other === adapter ? undefined : other.close(forGood)));
}
