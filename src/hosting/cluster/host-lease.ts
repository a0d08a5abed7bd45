import { randomUUID } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Env } from '../../config/env.js';
import type { EngineName } from '../hosting.types.js';
import { DataFolder } from './data-folder.js';
import { HostingHost } from './hosting-host.entity.js';

/** What a host does around its lease. None of it rejects. */
export interface HostKeeper {
  /** Which engines run here: null, or a sentence why not. */
  engines(): Promise<Record<EngineName, string | null>>;
  /** The host has a new id: it joined, or came back after its lease was lost. */
  joined(): void;
  /** The lease was renewed. */
  renewed(): Promise<void>;
  /** The lease is lost: resolves when no program with state runs here any more. */
  lost(): Promise<void>;
}

/** A moment by the clock that never jumps, which stands still while the machine sleeps, and by the one that does not. */
interface Moment {
  steadyMs: number;
  wallMs: number;
}

interface Held {
  id: string;
  /** When the renewal was sent that is known to have been written. */
  since: Moment;
}

/**
 * Says in Postgres that this process is a host and lives, and tells it when it may not believe so any more.
 *
 * The fence: a lease of L ms is written by the database later than this process sent it, so by any clock it ends no earlier
 * than L after `since`. Programs with state are ended here {@link fenceMs} after `since`, a sixth of L before that, which
 * is what killing them and the drift of two clocks may take. A renewal counts only if its answer came before the fence; one
 * that comes later may have raced with a host that found the lease over, and the id is given up for good. So whoever finds
 * the lease over by the database's clock knows that nothing of its programs runs. A process that was frozen may pass its
 * fence unawares; but every request to a program passes {@link id}, which asks both clocks first.
 */
@Injectable()
export class HostLease {
  private readonly logger = new Logger('hosting');
  private keeper: HostKeeper | null = null;
  private held: Held | null = null;
  /** The rows of ids that were given up. */
  private given: string[] = [];
  private ending: Promise<void> = Promise.resolve();
  private fence: NodeJS.Timeout | undefined;
  private timer: NodeJS.Timeout | undefined;
  private keeping: Promise<void> | null = null;
  private isLeaving = false;

  constructor(
    @InjectRepository(HostingHost) private readonly hosts: Repository<HostingHost>,
    private readonly folder: DataFolder,
    private readonly env: Env,
  ) {}

  /** This host's id while its lease is certain; null before it joined, and once that cannot be told. */
  get id(): string | null {
    if (this.held && elapsedMs(this.held.since) >= this.fenceMs) this.lose();
    return this.held?.id ?? null;
  }

  /** How long after a renewal its programs with state may run. */
  private get fenceMs(): number {
    return (this.env.runtimeLeaseMs * 5) / 6;
  }

  /** Joins, and stays until {@link leave}. Resolves after the first try. Never rejects. */
  async join(keeper: HostKeeper): Promise<void> {
    this.keeper = keeper;
    this.timer = setInterval(() => void this.keepOnce(), this.env.runtimeLeaseMs / 3).unref();
    await this.keepOnce();
  }

  /** Says at once what is only said with the next renewal otherwise. Never rejects. */
  async renewNow(): Promise<void> {
    await this.keeping;
    await this.keepOnce();
  }

  /** Gives the lease back, for a host that runs no program with state any more. */
  async leave(): Promise<void> {
    this.isLeaving = true;
    clearInterval(this.timer);
    clearTimeout(this.fence);
    // It would bring the lease back.
    await this.keeping;
    if (this.held) this.given.push(this.held.id);
    this.held = null;
    try {
      await this.giveUp();
    } catch (error) {
      this.logger.warn({ msg: 'the lease of this host was not given back; it will end', err: error });
    }
  }

  private keepOnce(): Promise<void> {
    return (this.keeping ??= this.keep().finally(() => (this.keeping = null)));
  }

  private async keep(): Promise<void> {
    const { keeper } = this;
    if (!keeper || this.isLeaving) return;
    try {
      await this.ending;
      const engines = await keeper.engines();
      if (this.id === null) await this.enter(keeper, engines);
      else await this.renew(engines);
      await this.hosts.query('DELETE FROM hosting_hosts WHERE lease_until <= now()');
      if (this.id !== null) await keeper.renewed();
    } catch (error) {
      this.logger.warn({ msg: 'the lease of this host was not renewed', err: error });
    }
  }

  private async enter(keeper: HostKeeper, engines: Record<EngineName, string | null>): Promise<void> {
    await this.giveUp();
    const [id, dataId, since] = [randomUUID(), await this.folder.id(), now()];
    this.given.push(id);
    await this.hosts.query(
      `INSERT INTO hosting_hosts (id, url, data_id, engines, lease_until)
       VALUES ($1, $2, $3, $4, now() + $5 * interval '1 millisecond')`,
      [id, this.env.internalUrl, dataId, JSON.stringify(engines), this.env.runtimeLeaseMs],
    );
    if (this.isLeaving || elapsedMs(since) >= this.fenceMs) return;
    this.given = [];
    this.confirm({ id, since });
    keeper.joined();
  }

  private async renew(engines: Record<EngineName, string | null>): Promise<void> {
    const { held } = this;
    const since = now();
    const [rows] = await this.hosts.query<[unknown[]]>(
      `UPDATE hosting_hosts SET lease_until = now() + $2 * interval '1 millisecond', engines = $3
        WHERE id = $1 AND lease_until > now() RETURNING id`,
      [held?.id, this.env.runtimeLeaseMs, JSON.stringify(engines)],
    );
    // Lost meanwhile: the answer came too late to count.
    if (!held || this.id !== held.id) return;
    if (rows.length === 0) this.lose();
    else this.confirm({ id: held.id, since });
  }

  private confirm(held: Held): void {
    this.held = held;
    clearTimeout(this.fence);
    this.fence = setTimeout(() => this.id, this.fenceMs - elapsedMs(held.since)).unref();
  }

  private lose(): void {
    if (!this.held) return;
    this.logger.warn('the lease of this host is lost: its programs that keep state are ended');
    this.given.push(this.held.id);
    this.held = null;
    clearTimeout(this.fence);
    this.ending = this.keeper?.lost() ?? Promise.resolve();
  }

  /** Programs of an id that was given up are free at once, not when its lease ends. */
  private async giveUp(): Promise<void> {
    if (this.given.length === 0) return;
    await this.hosts.query('DELETE FROM hosting_hosts WHERE id = ANY($1)', [this.given]);
    this.given = [];
  }
}

function now(): Moment {
  return { steadyMs: performance.now(), wallMs: Date.now() };
}

/** By the clock that says more; a wall clock that was set forward costs a restart, never a second copy. */
function elapsedMs({ steadyMs, wallMs }: Moment): number {
  return Math.max(performance.now() - steadyMs, Date.now() - wallMs);
}
