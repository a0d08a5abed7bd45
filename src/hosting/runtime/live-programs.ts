import { Logger } from '@nestjs/common';
import type { ProgramOwners } from '../hosting.js';
import type { LiveProgram } from './live-program.js';
import { overQuota } from './termination-errors.js';

/**
 * Share of the memory of the container or machine that the service and its programs may use together. The rest is for
 * an embedded Postgres, builds and programs that grow between two checks.
 */
const MEMORY_SHARE_MAX = 0.85;

const MEMORY_LOOK_MS = 1_000;

export interface Memory {
  total: number;
  own(): number;
}

export class LivePrograms {
  private readonly logger = new Logger('hosting');
  private readonly programs = new Set<LiveProgram>();
  private memoryCheckedAt = -Infinity;
  private evicted: LiveProgram | null = null;

  constructor(
    private readonly owners: ProgramOwners,
    private readonly memory: Memory,
  ) {}

  get all(): readonly LiveProgram[] {
    return [...this.programs];
  }

  get accepting(): readonly LiveProgram[] {
    return this.all.filter(({ acceptsCalls }) => acceptsCalls);
  }

  add(program: LiveProgram): void {
    this.programs.add(program);
    void program.gone.then(() => this.programs.delete(program));
  }

  /**
   * Admits a program. At the limit, the account's longest idle program is stopped. A new version is not counted while the one it replaces
   * runs.
   *
   * @throws ProgramBusyError when no program is idle
   */
  async admit(program: LiveProgram): Promise<void> {
    const { ref } = program;
    const quota = await this.owners.ownerOf(ref.kind).quotaOf(ref);
    if (!quota) return;
    // eslint-disable-next-line no-restricted-syntax -- A limit of an account.
    const counted = this.accepting.filter((other) => other.accountId === quota.accountId);
    // eslint-disable-next-line no-restricted-syntax -- The owner is a release or a connection.
    const otherPrograms = counted.filter((other) => other.ref.ownerId !== ref.ownerId);
    const victim = idleLongest(otherPrograms);
    if (otherPrograms.length >= quota.max && !victim) throw overQuota(quota.max);
    program.accountId = quota.accountId;
    if (otherPrograms.length >= quota.max) await victim?.stop();
  }

  byAccount(): Record<string, number> {
    const numbers: Record<string, number> = {};
    for (const { accountId } of this.accepting) {
      if (accountId !== null) numbers[accountId] = (numbers[accountId] ?? 0) + 1;
    }
    return numbers;
  }

  /** Returns the memory of all programs where the system reports it, which takes 30 µs per program. */
  memoryMb(): number {
    return this.all.reduce((sum, { figures }) => sum + (figures?.anonMb() ?? 0), 0);
  }

  /** @param moreMb memory that is about to be used */
  isMemoryShort(moreMb = 0): boolean {
    const { memory } = this;
    return memory.own() + (this.memoryMb() + moreMb) * 1_048_576 > memory.total * MEMORY_SHARE_MAX;
  }

  relieveMemory(): void {
    const now = performance.now();
    if (now - this.memoryCheckedAt < MEMORY_LOOK_MS || this.evicted) return;
    this.memoryCheckedAt = now;
    if (!this.isMemoryShort()) return;
    const victim = idleLongest(this.accepting);
    if (!victim) return;
    this.evicted = victim;
    this.logger.warn({
      msg: 'an idle program was stopped, because hosted programs and the service use more than 85 % of the memory',
      programsMb: Math.round(this.memoryMb()),
      totalMb: Math.round(this.memory.total / 1_048_576),
    });
    void victim.stop().then(() => (this.evicted = null));
  }
}

/** Returns the program that has been idle longest; one with streams only if there is no other. */
export function idleLongest<T extends Pick<LiveProgram, 'isIdle' | 'hasStreams' | 'idleSince'>>(
  programs: readonly T[],
): T | undefined {
  return programs
    .filter(({ isIdle }) => isIdle)
    .sort((a, b) => Number(a.hasStreams) - Number(b.hasStreams) || a.idleSince - b.idleSince)[0];
}
