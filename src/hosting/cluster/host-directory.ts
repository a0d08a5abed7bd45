import { Injectable, type OnModuleInit } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { RowCache } from '../../platform/database/row-cache.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import type { EngineName } from '../hosting.types.js';
import { HostingHost } from './hosting-host.entity.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    'hosting.hosts': object;
  }
}

/** A process that runs programs now. */
export interface LiveHost {
  id: string;
  url: string | null;
  dataId: string;
  engines: Record<EngineName, string | null>;
}

/** Which hosts there are is believed this long; a host that comes or goes says so over the relay. */
const CACHED_MS = 5_000;

/** A host that was not reached is passed over for this long: its lease tells later, and each try may take 2 s. */
const SUSPECT_MS = 5_000;

/** The hosts of this service, as Postgres knows them. */
@Injectable()
export class HostDirectory implements OnModuleInit {
  private readonly lists = new RowCache<LiveHost[]>(() => this.load(), { max: 1, ttlMs: CACHED_MS });
  private readonly suspects = new Map<string, number>();

  constructor(
    @InjectRepository(HostingHost) private readonly hosts: Repository<HostingHost>,
    private readonly pubSub: PubSub,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('hosting.hosts', () => this.forget());
  }

  /** Every host whose lease holds. @throws what the database says */
  async live(): Promise<LiveHost[]> {
    return (await this.lists.get('all')) ?? [];
  }

  /** True for a host that was not reached a moment ago. */
  isSuspect(id: string): boolean {
    return (this.suspects.get(id) ?? 0) > Date.now();
  }

  suspect(id: string): void {
    for (const [known, until] of this.suspects) if (until <= Date.now()) this.suspects.delete(known);
    this.suspects.set(id, Date.now() + SUSPECT_MS);
  }

  /** What is known is old: the next who asks reads it anew. */
  forget(): void {
    this.lists.drop('all');
  }

  /** A host came or went: tells every process. */
  changed(): void {
    this.forget();
    this.pubSub.publish('hosting.hosts', {});
  }

  private load(): Promise<LiveHost[]> {
    return this.hosts.query<LiveHost[]>(
      'SELECT id, url, data_id AS "dataId", engines FROM hosting_hosts WHERE lease_until > now()',
    );
  }
}
