import type { Channel, Listening, ListenFilter, McpCall, McpReply, UpstreamListener } from '../../protocol/channel.js';
import { deadlineIn } from '../../protocol/deadline.js';
import type { EraMemory } from '../../eras/era-memory.js';
import { isDoubtful, type EraVerdict } from '../../eras/era-verdict.js';
import { tooSlow, UpstreamError, UpstreamTimeoutError } from '../../protocol/mcp-errors.js';
import type { UpstreamIdentity } from '../../protocol/protocol.js';
import { EraContradictedError, type ProtocolAdapter } from '../protocol-adapter.js';
import { findEra, type Found } from '../era-probe.js';
import type { HttpDispatcher } from './http-dispatcher.js';
import { HttpWire, type HttpTarget } from './http-wire.js';
import { LegacyAdapter } from '../legacy-adapter.js';
import { ModernAdapter } from '../modern-adapter.js';
import type { ResultCache } from '../result-cache.js';
import { SingleFlight } from '../single-flight.js';
import { openSse } from './sse-session.js';
import { openStreamable } from './streamable-session.js';

/** A verdict of our own this young is not doubted: what fails then, fails. */
const FRESH_MS = 5_000;

/** Timers may fire this much ahead. */
const TIMER_MS_EARLY = 50;

/** A dialect, and the verdict it was chosen by. */
interface Choice {
  dialect: ProtocolAdapter;
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
      return await this.withDialect(timeoutMs, undefined, (dialect, ms) => dialect.open(ms));
    } catch (error) {
      const isAllSpent = performance.now() - from > timeoutMs - TIMER_MS_EARLY;
      if (!(error instanceof UpstreamTimeoutError) || !isAllSpent) throw error;
      // People know the whole time, not what the look at the era left of it.
      throw new UpstreamTimeoutError(tooSlow(this.target.url, timeoutMs), error.outcomeUnknown);
    }
  }

  async request(call: McpCall): Promise<McpReply> {
    const { value } = this.choice;
    if (!value) return this.withDialect(call.timeoutMs, call, (dialect, ms) => dialect.request(call, ms), replyIn);
    try {
      return await value.dialect.request(call, call.timeoutMs);
    } catch (error) {
      if (!(error instanceof EraContradictedError)) throw error;
      await this.doubt(value);
      return this.withDialect(call.timeoutMs, call, (dialect, ms) => dialect.request(call, ms), replyIn);
    }
  }

  listen(filter: ListenFilter, listener: UpstreamListener, timeoutMs: number): Promise<Listening> {
    return this.withDialect(timeoutMs, undefined, (dialect, ms) => dialect.listen(filter, listener, ms));
  }

  forgetLists(): void {
    this.cache.forgetLists();
  }

  async release(profileKey: string, forGood = false): Promise<void> {
    const ended = this.choice.value?.dialect.release(profileKey);
    // Also without one here: another process may have opened it, or this one before it was started anew.
    if (forGood) await this.wire.endNamed(profileKey);
    await ended;
  }

  close(forGood?: boolean): Promise<void> {
    return this.choice.close(({ dialect }) => dialect.close(forGood));
  }

  private async withDialect<T>(
    timeoutMs: number,
    call: McpCall | undefined,
    work: (dialect: ProtocolAdapter, timeoutMs: number) => Promise<T>,
    settleFor: (error: EraContradictedError) => T = notMet,
  ): Promise<T> {
    const left = deadlineIn(timeoutMs);
    let choice = this.choice.value ?? (await this.chosen(timeoutMs, call));
    try {
      return await work(choice.dialect, left());
    } catch (error) {
      if (!(error instanceof EraContradictedError)) throw error;
    }
    await this.doubt(choice);
    choice = await this.chosen(left(), call);
    try {
      return await work(choice.dialect, left());
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
    return { verdict, dialect: this.dialectOf(verdict, found) };
  }

  private dialectOf(verdict: EraVerdict, found: Found | undefined): ProtocolAdapter {
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

  /** The endpoint is not what it was taken for; what runs on the dialect runs on. */
  private async doubt(choice: Choice): Promise<void> {
    if (this.choice.value === choice) {
      this.choice.lose(choice);
      void choice.dialect.close();
    }
    await this.eras.forget(this.target.url, choice.verdict);
  }
}

/** What is left when an endpoint is twice not what it was taken for. */
function notMet({ outcome }: EraContradictedError): never {
  if (outcome instanceof Error) throw outcome;
  throw new UpstreamError(`The MCP server refused the request: ${outcome.error?.message.slice(0, 200) ?? ''}`);
}

function replyIn(error: EraContradictedError): McpReply {
  return error.outcome instanceof Error ? notMet(error) : error.outcome;
}
