import type { Channel, Listening, ListenFilter, McpCall, McpReply, UpstreamListener } from '../../protocol/channel.js';
import { deadlineIn } from '../../protocol/deadline.js';
import type { EraMemory } from '../../eras/era-memory.js';
import { isDoubtful, type EraVerdict } from '../../eras/era-store.js';
import { tooSlow, UpstreamError, UpstreamTimeoutError } from '../../protocol/mcp-errors.js';
import type { UpstreamIdentity } from '../../protocol/protocol.js';
import { EraContradictedError, type ProtocolAdapter } from '../protocol-adapter.js';
import { findEra, type Found } from '../era-probe.js';
import type { HttpDispatcher } from './http-exchange.js';
import { HttpWire, type HttpTarget } from './http-wire.js';
import { LegacyAdapter } from '../legacy-adapter.js';
import { ModernAdapter } from '../modern-adapter.js';
import type { ResultCache } from '../result-cache.js';
import { SingleFlight } from '../single-flight.js';
import { withHiddenAddress } from './hidden-address.js';
import { openSse } from './sse-session.js';
import { openStreamable } from './streamable-session.js';

/** A verdict of our own this young is not doubted: what fails then, fails. */
const FRESH_MS = 5_000;

/** Timers may fire this much ahead. */
const TIMER_MS_EARLY = 50;

/** An adapter, and the verdict it was chosen by. */
interface Choice {
  adapter: ProtocolAdapter;
  verdict: EraVerdict;
}

/**
 * MCP over HTTP, to whatever answers there: modern servers, legacy ones, and the oldest over HTTP+SSE. What it is, is
 * remembered; a server that turns out to be another is found out about once more, and the call sent once more if it
 * certainly did not run.
 */
export class HttpChannel implements Channel {
  private readonly wire: HttpWire;
  private readonly choice: SingleFlight<Choice>;
  private isConfirmed = false;

  constructor(
    door: HttpDispatcher,
    private readonly target: HttpTarget,
    private readonly eras: EraMemory,
    private readonly cache: ResultCache,
  ) {
    this.wire = new HttpWire(door, target);
    this.choice = new SingleFlight(() => this.choose(), target.url);
  }

  async open(timeoutMs: number): Promise<UpstreamIdentity> {
    const from = performance.now();
    try {
      return await this.withAdapter(timeoutMs, undefined, (adapter, ms) => adapter.open(ms));
    } catch (error) {
      const isAllSpent = performance.now() - from > timeoutMs - TIMER_MS_EARLY;
      if (!(error instanceof UpstreamTimeoutError) || !isAllSpent) throw error;
      // People know the whole time, not what the look at the era left of it.
      throw new UpstreamTimeoutError(tooSlow(this.target.url, timeoutMs), error.outcomeUnknown);
    }
  }

  async request(given: McpCall): Promise<McpReply> {
    const call = this.target.sessionPerCaller ? inOwnSession(given, this.target.sessionPerCaller.sharedKey) : given;
    const { value } = this.choice;
    try {
      // Without the deadline's bookkeeping of `withAdapter` while nothing has to be opened.
      if (value) return await value.adapter.request(call, call.timeoutMs);
    } catch (error) {
      if (!(error instanceof EraContradictedError)) throw this.named(error as Error);
      await this.doubt(value as Choice);
    }
    return this.withAdapter(call.timeoutMs, call, (adapter, ms) => adapter.request(call, ms), replyIn);
  }

  listen(filter: ListenFilter, listener: UpstreamListener, timeoutMs: number): Promise<Listening> {
    return this.withAdapter(timeoutMs, undefined, (adapter, ms) => adapter.listen(filter, listener, ms));
  }

  forgetLists(): void {
    this.cache.forgetLists();
  }

  async release(profileKey: string, forGood = false): Promise<void> {
    const ended = this.choice.value?.adapter.release(profileKey);
    // Also without one here: another process may have opened it, or this one before it was started anew.
    if (forGood) await this.wire.endNamed(profileKey);
    await ended;
  }

  async close(forGood = false): Promise<void> {
    const sharedKey = this.target.sessionPerCaller?.sharedKey;
    if (forGood && sharedKey !== undefined) await this.release(sharedKey, true);
    await this.choice.close(({ adapter }) => adapter.close(forGood));
  }

  private async withAdapter<T>(
    timeoutMs: number,
    call: McpCall | undefined,
    work: (adapter: ProtocolAdapter, timeoutMs: number) => Promise<T>,
    settleFor?: (error: EraContradictedError) => T,
  ): Promise<T> {
    try {
      return await this.tryTwice(timeoutMs, call, work, settleFor);
    } catch (error) {
      throw this.named(error as Error);
    }
  }

  /** The error with the server's name instead of its address, if it has a name. */
  private named(error: Error): Error {
    const { url, name } = this.target;
    return name === undefined ? error : withHiddenAddress(error, url, name);
  }

  private async tryTwice<T>(
    timeoutMs: number,
    call: McpCall | undefined,
    work: (adapter: ProtocolAdapter, timeoutMs: number) => Promise<T>,
    settleFor: (error: EraContradictedError) => T = notMet,
  ): Promise<T> {
    const left = deadlineIn(timeoutMs);
    let choice = this.choice.value ?? (await this.chosen(timeoutMs, call));
    try {
      return await work(choice.adapter, left());
    } catch (error) {
      if (!(error instanceof EraContradictedError)) throw error;
    }
    await this.doubt(choice);
    choice = await this.chosen(left(), call);
    try {
      return await work(choice.adapter, left());
    } catch (error) {
      if (error instanceof EraContradictedError) return settleFor(error);
      throw error;
    }
  }

  private async chosen(timeoutMs: number, call: McpCall | undefined): Promise<Choice> {
    const from = performance.now();
    try {
      return await this.choice.get(timeoutMs, call?.cancellation);
    } finally {
      if (call?.timing) call.timing.queueMs = performance.now() - from;
    }
  }

  /** By what is remembered of the endpoint, or by a look at it. */
  private async choose(): Promise<Choice> {
    let found: Found | undefined;
    const verdict = await this.eras.settle(this.target.url, async () => {
      found = await findEra(this.wire);
      return found.verdict;
    });
    return { verdict, adapter: this.adapterFor(verdict, found) };
  }

  private adapterFor(verdict: EraVerdict, found: Found | undefined): ProtocolAdapter {
    const { wire } = this;
    const isFresh = () => found !== undefined && Date.now() - verdict.learnedAt < FRESH_MS;
    if (verdict.kind === 'modern') {
      const onDoubt = () => {
        if (isFresh() || this.isConfirmed || !this.choice.value) return;
        this.isConfirmed = true;
        void this.doubt(this.choice.value);
      };
      return new ModernAdapter(wire, this.cache, { discovered: found?.discovered, isFresh, onDoubt });
    }
    const open = verdict.kind === 'sse' ? openSse : openStreamable;
    return new LegacyAdapter((profile, ears) => open(wire, profile, ears), {
      url: this.target.url,
      opened: found?.opened,
      isFresh,
      isDoubtful: () => isDoubtful(verdict),
      sessionsMax: this.target.sessionsMax,
    });
  }

  /** The endpoint is not what it was taken for; what runs on the adapter runs on. */
  private async doubt(choice: Choice): Promise<void> {
    if (this.choice.value === choice) {
      this.choice.lose(choice);
      void choice.adapter.close();
    }
    await this.eras.forget(this.target.url, choice.verdict);
  }
}

/**
 * The call in a session of its caller's own. A caller that can answer requests has one already, unless it uses one for
 * each of its concurrent calls (`mayShare`).
 */
function inOwnSession(call: McpCall, sharedKey: string | undefined): McpCall {
  const { profile, caller } = call;
  const key = caller ?? sharedKey;
  if (key === undefined || (profile && !profile.mayShare)) return call;
  return { ...call, profile: { key, capabilities: profile?.capabilities ?? {} } };
}

/** What is left when an endpoint is twice not what it was taken for. */
function notMet({ outcome }: EraContradictedError): never {
  if (outcome instanceof Error) throw outcome;
  throw new UpstreamError(`The MCP server refused the request: ${outcome.error?.message.slice(0, 200) ?? ''}`);
}

function replyIn(error: EraContradictedError): McpReply {
  return error.outcome instanceof Error ? notMet(error) : error.outcome;
}
