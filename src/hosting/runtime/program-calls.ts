import type { HostedFailure } from '../hosting.errors.js';
import type { CpuAccount, CpuMeter } from './process-metrics.js';
import { busyError, tooManyStreams } from './termination-errors.js';
import type { HostedCall } from './hosted-call.js';

/** Limit of open event streams of one program; each holds two sockets. */
const STREAMS_MAX = 256;

/**
 * Time after its response in which a request might be the cause of its program's exit: workerd allows 30 s of
 * `waitUntil`.
 */
const BLAME_MS = 35_000;

export class ProgramCalls {
  /** Running calls, oldest first; their CPU account is null until they are sent. */
  private readonly calls = new Map<HostedCall, CpuAccount | null>();
  private readonly streams = new Set<HostedCall>();
  meter: CpuMeter | null = null;
  idleSince = performance.now();
  /** Time of the last complete response by `performance.now()`, which proves that the event loop runs. */
  lastAnswerAt = 0;
  private lastEnded: HostedCall | null = null;
  private onDrained: () => void = () => undefined;

  constructor(private readonly concurrency: number) {}

  /** Lists the oldest first, without streams. */
  get all(): HostedCall[] {
    return [...this.calls.keys()];
  }

  get count(): number {
    return this.calls.size;
  }

  get streamCount(): number {
    return this.streams.size;
  }

  /** Adds a call. Above the limit, it fails the request and returns false. */
  admit(call: HostedCall): boolean {
    const { isStream } = call.request;
    const isFull = isStream ? this.streams.size >= STREAMS_MAX : this.calls.size >= this.concurrency;
    if (isFull) {
      call.fail(isStream ? tooManyStreams(STREAMS_MAX) : busyError(this.concurrency));
      return false;
    }
    if (isStream) this.streams.add(call);
    else this.calls.set(call, null);
    this.idleSince = performance.now();
    return true;
  }

  openAccount(call: HostedCall): void {
    if (this.meter && this.calls.has(call)) this.calls.set(call, this.meter.begin());
  }

  /** @returns CPU time in ms */
  removeCall(call: HostedCall, isWhole: boolean): number {
    const account = this.calls.get(call);
    this.streams.delete(call);
    if (!this.calls.delete(call)) return 0;
    this.lastEnded = call;
    this.idleSince = performance.now();
    if (isWhole) this.lastAnswerAt = this.idleSince;
    if (this.calls.size === 0) this.onDrained();
    return account && this.meter ? this.meter.closeAccount(account) : 0;
  }

  findOverLimit(cpuMs: number): HostedCall | null {
    for (const [call, account] of this.calls) if (account && account.used() > cpuMs) return call;
    return null;
  }

  /**
   * Returns the only request in flight, or `given`. With none in flight, returns the one that finished last, in
   * `waitUntil`.
   */
  likelyCause(blamed: HostedCall | null = null): HostedCall | null {
    if (blamed) return blamed;
    if (this.calls.size === 0) return performance.now() - this.idleSince < BLAME_MS ? this.lastEnded : null;
    const [only] = this.calls.keys();
    return this.calls.size === 1 && only ? only : null;
  }

  fail(errorFor: (call: HostedCall) => HostedFailure): void {
    for (const call of [...this.calls.keys(), ...this.streams]) call.fail(errorFor(call));
  }

  sendAll(send: (call: HostedCall) => void): void {
    for (const call of [...this.calls.keys(), ...this.streams]) send(call);
  }

  closeStreams(): void {
    for (const stream of [...this.streams]) stream.close();
  }

  shortenWait(withinMs: number): void {
    setTimeout(() => this.onDrained(), withinMs).unref();
  }

  /** Resolves when no request except streams is in flight, or on timeout. */
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
