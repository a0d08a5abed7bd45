import { Injectable, type OnModuleInit } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { RowCache } from '../../platform/database/row-cache.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { HostLease } from './host-lease.js';
import { HostingPlacement } from './hosting-placement.entity.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    'hosting.placed': { ownerId: string };
  }
}

/** Where a program that keeps state is. */
export interface Placement {
  /** Null when its host is gone. */
  hostId: string | null;
  dataId: string;
}

/** Believed this long; a claim also arrives over the relay, and a wrong guess corrects itself. */
const CACHED_MS = 5_000;
const CACHED_MAX = 50_000;

/** Which host has which program that keeps state, in Postgres: one at most, whoever asks at the same instant. */
@Injectable()
export class Placements implements OnModuleInit {
  private readonly known = new RowCache<Placement>((ownerId) => this.read(ownerId), {
    max: CACHED_MAX,
    ttlMs: CACHED_MS,
  });
  /** Programs of this host, by the id it had when it claimed them. */
  private readonly own = new Map<string, string>();
  private readonly claiming = new Map<string, Promise<boolean>>();

  constructor(
    @InjectRepository(HostingPlacement) private readonly placements: Repository<HostingPlacement>,
    private readonly lease: HostLease,
    private readonly pubSub: PubSub,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('hosting.placed', ({ ownerId }) => this.forgetCached(ownerId));
  }

  /** Where the program is, or was; null when it never ran. @throws what the database says */
  find(ownerId: string): Promise<Placement | null> {
    return this.known.get(ownerId);
  }

  forgetCached(ownerId: string): void {
    this.known.drop(ownerId);
  }

  /** True while this process is the one where the program may run. */
  isMine(ownerId: string): boolean {
    const { id } = this.lease;
    return id !== null && this.own.get(ownerId) === id;
  }

  /**
   * Makes this host the one where the program runs, unless another one has it whose lease holds. Those who ask at once
   * share one statement.
   *
   * @param clear removes what this host's data folder holds of the program: it ran with another folder since, or never
   * @returns false when another one has it, or this one's lease is lost @throws what the database says
   */
  claim(ownerId: string, clear: () => Promise<void>): Promise<boolean> {
    const running = this.claiming.get(ownerId);
    if (running) return running;
    const started = this.claimNow(ownerId, clear).finally(() => this.claiming.delete(ownerId));
    this.claiming.set(ownerId, started);
    return started;
  }

  /** Nobody has the program any more, in no version. @throws what the database says */
  async remove(ownerId: string): Promise<void> {
    await this.placements.query('DELETE FROM hosting_placements WHERE owner_id = $1', [ownerId]);
    this.released(ownerId);
    this.pubSub.publish('hosting.placed', { ownerId });
  }

  /** This host does not run it any more. */
  released(ownerId: string): void {
    this.own.delete(ownerId);
    this.forgetCached(ownerId);
  }

  /** This host's lease is lost, and all its programs with it. */
  releasedAll(): void {
    this.own.clear();
  }

  /** Programs this host ran that it has no more: somebody forgot them, and the message about it was lost. */
  async takenAway(): Promise<string[]> {
    const before = [...this.own.keys()];
    if (before.length === 0) return [];
    const rows = await this.placements.query<{ ownerId: string }[]>(
      'SELECT owner_id AS "ownerId" FROM hosting_placements WHERE host_id = $1',
      [this.lease.id],
    );
    const held = new Set(rows.map(({ ownerId }) => ownerId));
    return before.filter((ownerId) => !held.has(ownerId));
  }

  /** Of these owners, those whose state in the data folder of this host is nobody's any more. */
  async abandoned(ownerIds: string[]): Promise<string[]> {
    const rows = await this.placements.query<{ ownerId: string }[]>(
      `SELECT given.id AS "ownerId" FROM unnest($1::uuid[]) AS given(id)
        WHERE NOT EXISTS (SELECT 1 FROM hosting_placements p JOIN hosting_hosts h ON h.data_id = p.data_id
                           WHERE p.owner_id = given.id AND h.id = $2)
          AND EXISTS (SELECT 1 FROM hosting_hosts h WHERE h.id = $2)`,
      [ownerIds, this.lease.id],
    );
    return rows.map(({ ownerId }) => ownerId);
  }

  private async claimNow(ownerId: string, clear: () => Promise<void>): Promise<boolean> {
    const { id } = this.lease;
    if (id === null) return false;
    const [row] = await this.placements.query<{ dataBefore: string | null; dataId: string }[]>(
      `WITH before AS (SELECT data_id FROM hosting_placements WHERE owner_id = $1)
       INSERT INTO hosting_placements AS held (owner_id, host_id, data_id)
       SELECT $1, h.id, h.data_id FROM hosting_hosts h WHERE h.id = $2 AND h.lease_until > now()
       ON CONFLICT (owner_id) DO UPDATE SET host_id = EXCLUDED.host_id, data_id = EXCLUDED.data_id
        WHERE held.host_id IS NOT DISTINCT FROM EXCLUDED.host_id
           OR NOT EXISTS (SELECT 1 FROM hosting_hosts h WHERE h.id = held.host_id AND h.lease_until > now())
       RETURNING held.data_id AS "dataId", (SELECT data_id FROM before) AS "dataBefore"`,
      [ownerId, id],
    );
    if (row && row.dataBefore !== row.dataId) await clear();
    // An answer from after the fence says nothing any more.
    if (!row || this.lease.id !== id) return false;
    this.own.set(ownerId, id);
    this.forgetCached(ownerId);
    this.pubSub.publish('hosting.placed', { ownerId });
    return true;
  }

  private async read(ownerId: string): Promise<Placement | null> {
    const [row] = await this.placements.query<Placement[]>(
      `SELECT h.id AS "hostId", p.data_id AS "dataId"
         FROM hosting_placements p LEFT JOIN hosting_hosts h ON h.id = p.host_id AND h.lease_until > now()
        WHERE p.owner_id = $1`,
      [ownerId],
    );
    return row ?? null;
  }
}
