/**
 * Grants as the access guard sees them, and the end of what they hold open. A grant lets another account, or everybody, use
 * a server, a connection or all of a namespace (`grants`, level `call` or `manage`), in whole or some tools, and until a time.
 * Several grants of one thing add up.
 *
 * Lookups are cached for 5 s by account, kind and name. A change is announced (`grants.changed`) and drops the cache in
 * every process at once; the short lifetime covers a lost message. Streams and tunnels that were opened by a grant are
 * checked every 3 s and after each change, and end when the grant was withdrawn, has expired or has other terms. So a
 * withdrawn grant works nowhere after 5 s.
 */
import { Injectable, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { RowCache } from '../../platform/database/row-cache.js';
import { HeldByKeys } from '../../platform/http/held-by-keys.js';
import { STORABLE } from '../../platform/http/input-values.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { Schedule, type ScheduledWork } from '../../platform/schedule/schedule.js';
import { BY_MEMBERSHIP, type FoundGrant, type GrantedThing, type GrantSource } from '../auth/access.types.js';
import { ConnectionEvents } from '../connections/core/connection.events.js';
import type { GrantTarget } from './grant.types.js';
import { GrantsRepository, type TargetedGrant } from './grants.repository.js';

/** Interval at which the grants of open streams are checked: with the query, streams end within 5 s. */
const HELD_CHECK_MS = 3_000;

/** Finds grants for the access guard, and ends what withdrawn ones hold open. */
@Injectable()
export class GrantCache implements GrantSource, OnModuleInit, OnApplicationBootstrap {
  private readonly known = new RowCache<TargetedGrant>((key) => this.load(key));
  private check: ScheduledWork | undefined;

  constructor(
    private readonly rows: GrantsRepository,
    private readonly held: HeldByKeys,
    private readonly pubSub: PubSub,
    private readonly connections: ConnectionEvents,
    private readonly schedule: Schedule,
  ) {}

  async onModuleInit(): Promise<void> {
    this.connections.on('changed', ({ id, revision }) => {
      if (revision === null) this.forget(({ targetId }) => targetId === id);
    });
    await this.pubSub.subscribe('grants.changed', (changed) => {
      const id = changed.serverId ?? changed.connectionId ?? changed.namespaceId;
      this.forget(({ targetId, namespaceId }) => targetId === id || namespaceId === id);
      if (changed.cut !== undefined) this.held.cut(changed.cut);
    });
    // The account may have left an organization, or entered one.
    await this.pubSub.subscribe('auth.account-changed', () => this.forget(() => true));
    await this.pubSub.subscribe('servers.deleted', ({ id }) => this.forget(({ targetId }) => targetId === id));
    await this.pubSub.subscribe('namespaces.deleted', ({ id }) => this.forget((grant) => grant.namespaceId === id));
  }

  onApplicationBootstrap(): void {
    this.check = this.schedule.every('check of the grants of open streams', HELD_CHECK_MS, () => this.checkHeld());
  }

  /** What was granted to an account, at most 5 s old; null for nothing. */
  async find(accountId: string, { kind, namespace, name }: GrantedThing): Promise<FoundGrant | null> {
    if (!STORABLE.test(namespace) || !STORABLE.test(name)) return null;
    return this.known.get(JSON.stringify([accountId, kind, namespace, name]));
  }

  /**
   * Makes a change of the grants of a target hold: at once in this process, and by a message in every other.
   *
   * @param cut the withdrawn grant whose calls are cut
   */
  announce({ kind, id }: GrantTarget, cut?: string): void {
    this.forget(({ targetId, namespaceId }) => targetId === id || namespaceId === id);
    if (cut !== undefined) this.held.cut(cut);
    this.pubSub.publish('grants.changed', { [`${kind}Id`]: id, cut });
  }

  private load(key: string): Promise<TargetedGrant | null> {
    const [accountId, kind, namespace, name] = JSON.parse(key) as [string, GrantedThing['kind'], string, string];
    return this.rows.find(accountId, { kind, namespace, name });
  }

  private forget(matches: (grant: TargetedGrant) => boolean): void {
    this.known.dropWhere(matches);
    void this.check?.run();
  }

  /** Ends what is held open by grants that were withdrawn or changed. */
  private async checkHeld(): Promise<void> {
    const { grants } = this.held;
    if (grants.length === 0) return;
    const terms = await this.rows.termsOf(grants.map(({ id }) => id));
    for (const grant of grants) {
      const isHeld = grant.id === BY_MEMBERSHIP.id || terms.get(grant.id) === grant.terms;
      if (!isHeld) this.held.endGrant(grant);
    }
  }
}
