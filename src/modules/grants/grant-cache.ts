/**
 * Grants as the access guard sees them. Several grants of one target add up.
 *
 * Lookups are cached for 5 s by account, kind and name. A change is announced (`grants.changed`) and drops the cache in every process; the
 * short lifetime covers a lost message. A revoked grant therefore authorizes no request after 5 s, and requests that it authorized are
 * closed (`OpenRights`).
 */
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { RowCache } from '../../platform/database/row-cache.js';
import { RevocationRegistry } from '../../platform/http/revocation-registry.js';
import { STORABLE } from '../../platform/http/input-values.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import type { FoundGrant, GrantSource } from '../auth/access.types.js';
import type { TargetName, TargetRef } from '../targets/target.types.js';
import { ConnectionEvents } from '../connections/core/connection.events.js';
import { GrantsRepository, type TargetedGrant } from './grants.repository.js';

@Injectable()
export class GrantCache implements GrantSource, OnModuleInit {
  private readonly cachedGrants = new RowCache<TargetedGrant>((key) => this.load(key));

  constructor(
    private readonly grantsRepository: GrantsRepository,
    private readonly revocationRegistry: RevocationRegistry,
    private readonly pubSub: PubSub,
    private readonly connectionEvents: ConnectionEvents,
  ) {}

  async onModuleInit(): Promise<void> {
    this.connectionEvents.on('changed', ({ id, revision }) => {
      if (revision === null) this.forget(({ targetId }) => targetId === id);
    });
    await this.pubSub.subscribe('grants.changed', (changed) => {
      const id = changed.serverId ?? changed.connectionId ?? changed.namespaceId;
      this.forget(({ targetId, namespaceId }) => targetId === id || namespaceId === id);
      if (changed.cut !== undefined) this.revocationRegistry.cutCalls(changed.cut);
    });
    // The account might have left or joined an organization.
    await this.pubSub.subscribe('auth.account-changed', () => this.forget(() => true));
    await this.pubSub.subscribe('servers.deleted', ({ id }) => this.forget(({ targetId }) => targetId === id));
    await this.pubSub.subscribe('namespaces.deleted', ({ id }) => this.forget((grant) => grant.namespaceId === id));
  }

  /** @returns null without a grant; at most 5 s old */
  async find(accountId: string, { kind, namespace, name }: TargetName): Promise<FoundGrant | null> {
    if (!STORABLE.test(namespace) || !STORABLE.test(name)) return null;
    return this.cachedGrants.get(JSON.stringify([accountId, kind, namespace, name]));
  }

  findAll(questions: { accountId: string; target: TargetName }[]): Promise<(FoundGrant | null)[]> {
    const isName = ({ target }: { target: TargetName }) =>
      STORABLE.test(target.namespace) && STORABLE.test(target.name);
    return this.grantsRepository.findAll(questions.filter(isName)).then((grants) => {
      const rows = grants.values();
      return questions.map((each) => (isName(each) ? (rows.next().value ?? null) : null));
    });
  }

  /**
   * Announces a change, which takes effect immediately in this process, and by a message in every other.
   *
   * @param cut id of the revoked grant whose calls are canceled
   */
  announce({ kind, id }: TargetRef, cut?: string): void {
    this.pubSub.announce('grants.changed', { [`${kind}Id`]: id, cut });
  }

  private load(key: string): Promise<TargetedGrant | null> {
    const [accountId, kind, namespace, name] = JSON.parse(key) as [string, TargetName['kind'], string, string];
    return this.grantsRepository.find(accountId, { kind, namespace, name });
  }

  private forget(matches: (grant: TargetedGrant) => boolean): void {
    this.cachedGrants.dropWhere(matches);
  }
}
