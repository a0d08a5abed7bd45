import { closeSync, openSync, readSync } from 'node:fs';

/**
 * Share of a core that code may use outside of requests, in `waitUntil` and the like, before it counts against its
 * limit.
 */
const BESIDE_SHARE = 0.1;

export interface CpuAccount {
  /** Returns the CPU time so far, in ms. */
  used(): number;
}

/**
 * Divides the CPU time of one process among its requests: the time since the last reading is split equally among those
 * in flight.
 */
export class CpuMeter {
  private lastRanMs: number;
  private lastAt: number;
  private share = 0;
  private inFlight = 0;
  private beside = 0;

  /** @param read returns null when nothing can be read or the process has exited; all usage is then 0 */
  constructor(
    private readonly read: () => Pick<CpuFigures, 'ranMs'> | null,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.lastRanMs = read()?.ranMs ?? 0;
    this.lastAt = now();
  }

  begin(): CpuAccount {
    this.settle();
    this.inFlight += 1;
    const from = this.share;
    return { used: () => this.share - from };
  }

  closeAccount(account: CpuAccount): number {
    this.settle();
    this.inFlight -= 1;
    return account.used();
  }

  /** @returns the share of a core used since the last update */
  settle(): number {
    const ranMs = this.read()?.ranMs ?? this.lastRanMs;
    const at = this.now();
    const delta = Math.max(0, ranMs - this.lastRanMs);
    const elapsed = Math.max(0, at - this.lastAt);
    this.lastRanMs = ranMs;
    this.lastAt = at;
    this.beside = Math.max(0, this.beside - elapsed * BESIDE_SHARE);
    if (this.inFlight > 0) this.share += delta / this.inFlight;
    else this.beside += delta;
    return elapsed === 0 ? 0 : delta / elapsed;
  }

  /** CPU time without the free tenth of a core. */
  get besideMs(): number {
    return this.beside;
  }
}

export interface CpuFigures {
  /** CPU time of the main thread, in which code in workerd runs. */
  ranMs: number;
  /** Time that the main thread waited for a core. */
  waitedMs: number;
}

/**
 * Reading takes 5 µs for CPU time, 30 µs for memory. The files stay open, so that a reused process id cannot be
 * confused.
 */
export class ProcessMetrics {
  private readonly buffer = Buffer.alloc(4_096);
  private isOpen = true;

  private constructor(
    private readonly schedstat: number,
    private readonly status: number,
  ) {}

  /** Returns null where the system does not provide it (not Linux, no schedstat), or after the exit. */
  static open(pid: number | null): ProcessMetrics | null {
    if (pid === null) return null;
    const schedstat = opened(`/proc/${pid}/schedstat`);
    const status = opened(`/proc/${pid}/status`);
    if (schedstat !== null && status !== null) return new ProcessMetrics(schedstat, status);
    for (const file of [schedstat, status]) if (file !== null) closeSync(file);
    return null;
  }

  cpu(): CpuFigures | null {
    const [ran, waited] = this.read(this.schedstat)?.split(' ') ?? [];
    return ran && waited ? { ranMs: Number(ran) / 1e6, waitedMs: Number(waited) / 1e6 } : null;
  }

  /** Returns the memory without mapped files; null after the exit. */
  anonMb(): number | null {
    const kilobytes = /^RssAnon:\s+(\d+)/m.exec(this.read(this.status) ?? '')?.[1];
    return kilobytes === undefined ? null : Number(kilobytes) / 1_024;
  }

  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    closeSync(this.schedstat);
    closeSync(this.status);
  }

  private read(file: number): string | null {
    if (!this.isOpen) return null;
    try {
      return this.buffer.toString('latin1', 0, readSync(file, this.buffer, 0, this.buffer.length, 0));
    } catch {
      return null; // ESRCH: the process has exited, which `exited` reports
    }
  }
}

function opened(path: string): number | null {
  try {
    return openSync(path, 'r');
  } catch {
    return null;
  }
}
