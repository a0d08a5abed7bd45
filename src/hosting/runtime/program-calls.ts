import type { HostedFailure } from '../hosting.errors.js';
import type { CpuAccount, CpuMeter } from './cpu-meter.js';
import { busy, tooManyStreams } from './termination-errors.js';
import type { HostedCall } from './hosted-call.js';

/** Open event streams of one program; each holds two sockets. */
const STREAMS_MAX = 256;

/** For so long after its answer, a request may be blamed for the end of its program: workerd lets `waitUntil` take 30 s. */
const BLAME_MS = 35_000;

/** The requests one program works on, and those that wait until it runs. */
export class ProgramCalls {
  /** The oldest first; without an account until it was sent. */
  private readonly calls = new Map<HostedCall, CpuAccount | null>();
  private readonly streams = new Set<HostedCall>();
  /** Of the process, once it runs. */
  meter: CpuMeter | null = null;
  /** By `performance.now()`: the last begin or end of a request. */
  idleSince = performance.now();
  /** By `performance.now()`: the end of the last whole answer, which shows that its event loop turns. */
  lastAnswerAt = 0;
  private lastEnded: HostedCall | null = null;
  private onDrained: () => void = () => undefined;

  constructor(private readonly concurrency: number) {}

  /** Requests in flight, the oldest first, without streams. */
  get all(): HostedCall[] {
    return [...this.calls.keys()];
  }

  get count(): number {
    return this.calls.size;
  }

  get streamCount(): number {
    return this.streams.size;
  }

  /** False for a request that is over the limit; it has ended. */
  admit(call: HostedCall): boolean {
    const { isStream } = call.request;
    const isFull = isStream ? this.streams.size >= STREAMS_MAX : this.calls.size >= this.concurrency;
    if (isFull) {
      call.fail(isStream ? tooManyStreams(STREAMS_MAX) : busy(this.concurrency));
      return false;
    }
    if (isStream) this.streams.add(call);
    else this.calls.set(call, null);
    this.idleSince = performance.now();
    return true;
  }

  /** The program gets it now: from here on its CPU time counts. Streams have none of their own. */
  sent(call: HostedCall): void {
    if (this.meter && this.calls.has(call)) this.calls.set(call, this.meter.begin());
  }

  /** It ended. @returns its CPU time in ms */
  left(call: HostedCall, isWhole: boolean): number {
    const account = this.calls.get(call);
    this.streams.delete(call);
    if (!this.calls.delete(call)) return 0;
    this.lastEnded = call;
    this.idleSince = performance.now();
    if (isWhole) this.lastAnswerAt = this.idleSince;
    if (this.calls.size === 0) this.onDrained();
    return account && this.meter ? this.meter.end(account) : 0;
  }

  /** The first one that used more CPU time than it may. */
  over(cpuMs: number): HostedCall | null {
    for (const [call, account] of this.calls) if (account && account.used() > cpuMs) return call;
    return null;
  }

  /**
   * Whose work it most likely is that the program does: the only one in flight, or the one given. With none in flight the
   * one that ended last, in `waitUntil`.
   */
  likely(given: HostedCall | null = null): HostedCall | null {
    if (given) return given;
    if (this.calls.size === 0) return performance.now() - this.idleSince < BLAME_MS ? this.lastEnded : null;
    const [only] = this.calls.keys();
    return this.calls.size === 1 && only ? only : null;
  }

  /** Ends all that are in flight, streams too. */
  fail(why: (call: HostedCall) => HostedFailure): void {
    for (const call of [...this.calls.keys(), ...this.streams]) call.fail(why(call));
  }

  /** Hands out all that waited for the start. */
  each(send: (call: HostedCall) => void): void {
    for (const call of [...this.calls.keys(), ...this.streams]) send(call);
  }

  closeStreams(): void {
    for (const stream of [...this.streams]) stream.close();
  }

  /** Resolves when no request is in flight, streams aside, or after so long. */
  drained(withinMs: number): Promise<void> {
    if (this.calls.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, withinMs);
      this.onDrained = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
