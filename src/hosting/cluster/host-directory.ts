import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Tuning } from '../../config/tuning.js';
import { databaseAvailability } from '../../platform/database/database-availability.js';
import { RowCache } from '../../platform/database/row-cache.js';
import { ProcessesRepository } from '../../platform/processes/processes.repository.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import type { EngineName } from '../hosting.types.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    'hosting.hosts': object;
  }
}

export interface HostDetails {
  /** Id of its data folder (`DataFolder`): hosts with the same one find each other's state. */
  dataId: string;
  /** Engines of the host: null if it runs the engine, or a message with the reason why not. */
  engines: Record<EngineName, string | null>;
  livePrograms: Record<string, number>;
}

export interface LiveHost extends HostDetails {
  id: string;
  epoch: string;
  url: string | null;
}

/**
 * A host that was not reached is tried last for this long: its lease might expire later, and each attempt may take 2 s.
 */
const SUSPECT_MS = 5_000;

@Injectable()
export class HostDirectory implements OnModuleInit {
  private readonly lists = new RowCache<LiveHost[]>(() => this.load());
  private last: LiveHost[] = [];
  /** Time until which a host is suspect, by `performance.now()`. */
  private readonly suspects = new Map<string, number>();

  constructor(
    private readonly processesRepository: ProcessesRepository,
    private readonly pubSub: PubSub,
    private readonly tuning: Tuning,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('hosting.hosts', () => this.forget());
  }

  /** Lists live hosts, including those whose lease is about to be renewed after the database returned. @throws the database's error */
  async live(): Promise<LiveHost[]> {
    return (await this.lists.get('all')) ?? [];
  }

  isSuspect(id: string): boolean {
    return (this.suspects.get(id) ?? 0) > performance.now();
  }

  markSuspect(id: string): void {
    this.suspects.set(id, performance.now() + SUSPECT_MS);
  }

  /** Drops the list: the next caller reads it again, unless the database is unavailable. */
  forget(): void {
    this.lists.expire('all');
  }

  /** Drops the list in every process, after a host joined or left. */
  changed(): void {
    this.forget();
    this.pubSub.publish('hosting.hosts', {});
  }

  private async load(): Promise<LiveHost[]> {
    const rows = await this.processesRepository.live('host');
    const live = rows.map(({ id, epoch, address, details }) => ({
      id,
      epoch,
      url: address,
      ...(details as unknown as HostDetails),
    }));
    // A lease that expired while the database was unavailable is renewed with the next heartbeat, after a third of its
    // length. Until then the host is treated as live; if it no longer exists, the next one is tried.
    const renewing = databaseAvailability.isRenewing(this.tuning.runtimeLeaseMs)
      ? this.last.filter((host) => !live.some(({ id }) => id === host.id))
      : [];
    this.last = [...live, ...renewing];
    for (const id of this.suspects.keys()) {
      if (!this.last.some((host) => host.id === id)) this.suspects.delete(id);
    }
    return this.last;
  }
}
