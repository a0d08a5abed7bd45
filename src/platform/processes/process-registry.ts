import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { Injectable, Logger } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { Env, LOOPBACK_HOST } from '../../config/env.js';
import { Tuning } from '../../config/tuning.js';
import { repeat, type Repeat } from '../schedule/repeat.js';
import { ProcessesRepository, type Registration } from './processes.repository.js';

/** The rows are owned under the lease of the process. */
export interface LeaseHolder {
  readonly role: 'api' | 'host';
  /** Returns details that each heartbeat writes for other processes. If this rejects, the heartbeat omits the holder. */
  details?(): Promise<object>;
  /** Called in the transaction that starts the new epoch. */
  adopt?(epoch: string, tx: EntityManager): Promise<void>;
  registered?(): void;
  /**
   * Called when the lease might be lost: resolves when nothing runs here that another process may start. Must not
   * reject.
   */
  lost?(): Promise<void>;
}

/** The monotonic clock stops while the machine sleeps, and the wall clock can jump. */
interface Moment {
  steadyMs: number;
  wallMs: number;
}

interface Lease {
  epoch: string;
  since: Moment;
}

/**
 * Registers this process in the table `processes` and renews its lease while there are lease holders.
 *
 * The fence: the database writes a lease of L ms after this process sent the heartbeat, so by any clock the lease
 * expires no earlier than L after `since`. Holders stop their work {@link fenceMs} after `since`, a sixth of L before
 * that: time to kill programs, and for the drift of two clocks. A heartbeat succeeds only if its response arrives
 * before the fence. A later one might have raced with a process that found the lease expired; the epoch is then given
 * up permanently. So a process that finds the lease expired by the database's clock knows that nothing of the epoch
 * runs. A frozen process can pass its fence unnoticed, but everything that depends on the lease reads {@link epoch},
 * which compares both clocks first.
 */
@Injectable()
export class ProcessRegistry {
  readonly id = randomUUID();
  /** The shorter lease of those that apply to the roles of this process. */
  readonly leaseMs: number;
  private readonly logger = new Logger('processes');
  /** Maps each holder to the epoch it was informed of. */
  private readonly holders = new Map<LeaseHolder, string | null>();
  private lease: Lease | null = null;
  private ending: Promise<unknown> = Promise.resolve();
  private fence: NodeJS.Timeout | undefined;
  private heartbeats: Repeat | null = null;
  private beating: Promise<void> | null = null;

  constructor(
    private readonly processesRepository: ProcessesRepository,
    private readonly database: DataSource,
    private readonly env: Env,
    { uplinkLeaseMs, runtimeLeaseMs }: Tuning,
  ) {
    const { roles } = env;
    this.leaseMs = Math.min(
      roles.includes('api') ? uplinkLeaseMs : Infinity,
      roles.includes('host') ? runtimeLeaseMs : Infinity,
      Math.max(uplinkLeaseMs, runtimeLeaseMs),
    );
  }

  /** Null before registration and after the lease was lost. */
  get epoch(): string | null {
    if (this.lease && elapsedMs(this.lease.since) >= this.fenceMs) this.loseLease();
    return this.lease?.epoch ?? null;
  }

  /** Holders may work this long after a heartbeat. */
  private get fenceMs(): number {
    return (this.leaseMs * 5) / 6;
  }

  /** Resolves after a heartbeat that includes the holder, successful or not. The promise never rejects. */
  async join(holder: LeaseHolder): Promise<void> {
    this.holders.set(holder, null);
    this.heartbeats ??= repeat(this.leaseMs / 3, () => void this.renewLease());
    await this.beatNow();
  }

  /** Resolves when the heartbeat is done, successful or not. The promise never rejects. */
  async beatNow(): Promise<void> {
    await this.beating;
    await this.renewLease();
  }

  /** Removes a holder, and the process with its last holder. The promise never rejects. */
  async removeHolder(holder: LeaseHolder): Promise<void> {
    if (!this.holders.delete(holder)) return;
    if (this.holders.size > 0) return this.beatNow();
    this.heartbeats?.stop();
    this.heartbeats = null;
    // A heartbeat in progress would bring the row back.
    await this.beating;
    clearTimeout(this.fence);
    this.lease = null;
    try {
      await this.processesRepository.remove(this.id);
    } catch (error) {
      this.logger.warn({ msg: 'this process was not removed from the registry; its lease will end', err: error });
    }
  }

  private renewLease(): Promise<void> {
    return (this.beating ??= this.renewOrRegister().finally(() => (this.beating = null)));
  }

  private async renewOrRegister(): Promise<void> {
    if (this.holders.size === 0) return;
    try {
      const registration = await this.registration();
      if (this.epoch !== null) await this.renew(registration);
      else {
        // A new epoch frees what the last one owned, so that must have stopped.
        await this.ending;
        await this.register(registration);
      }
      const { epoch } = this;
      for (const [holder, informedOf] of this.holders) {
        if (epoch === null || informedOf === epoch) continue;
        this.holders.set(holder, epoch);
        holder.registered?.();
      }
      await this.processesRepository.removeExpired();
    } catch (error) {
      this.logger.warn({ msg: 'the lease of this process was not renewed', err: error });
    }
  }

  private async registration(): Promise<Registration> {
    const roles: string[] = [];
    const details = { machine: hostname(), baseUrl: this.env.baseUrl, worker: this.env.worker?.number };
    for (const holder of this.holders.keys()) {
      try {
        Object.assign(details, await holder.details?.());
        roles.push(holder.role);
      } catch (error) {
        this.logger.warn({ msg: `this process is not registered as ${holder.role}`, err: error });
      }
    }
    const { internalUrl: address, advertiseUrl, internalHost } = this.env;
    // A loopback address names one process of a machine, and others on other machines.
    const isAddressOwn = advertiseUrl !== null || !LOOPBACK_HOST.test(internalHost);
    return { id: this.id, roles, address, details, leaseMs: this.leaseMs, isAddressOwn };
  }

  private async register(registration: Registration): Promise<void> {
    const since = currentMoment();
    const epoch = await this.database.transaction(async (tx) => {
      const created = await this.processesRepository.register(registration, tx);
      for (const holder of this.holders.keys()) await holder.adopt?.(created, tx);
      return created;
    });
    if (elapsedMs(since) < this.fenceMs) this.confirm({ epoch, since });
  }

  private async renew(registration: Registration): Promise<void> {
    const { lease } = this;
    if (!lease) return;
    const since = currentMoment();
    const isRenewed = await this.processesRepository.renew(registration, lease.epoch);
    // The fence passed meanwhile: the response came too late.
    if (this.epoch !== lease.epoch) return;
    if (isRenewed) this.confirm({ epoch: lease.epoch, since });
    else this.loseLease();
  }

  private confirm(lease: Lease): void {
    this.lease = lease;
    clearTimeout(this.fence);
    this.fence = setTimeout(() => this.epoch, this.fenceMs - elapsedMs(lease.since)).unref();
  }

  private loseLease(): void {
    if (!this.lease) return;
    this.logger.warn('the lease of this process is lost');
    this.lease = null;
    clearTimeout(this.fence);
    this.ending = Promise.all([...this.holders.keys()].map(async (holder) => holder.lost?.()));
  }
}

function currentMoment(): Moment {
  return { steadyMs: performance.now(), wallMs: Date.now() };
}

/**
 * Returns the time elapsed on the clock that advanced further: setting the wall clock forward costs a restart, but never starts a program twice.
 */
function elapsedMs({ steadyMs, wallMs }: Moment): number {
  return Math.max(performance.now() - steadyMs, Date.now() - wallMs);
}
