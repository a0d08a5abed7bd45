/**
 * Access to servers: the owner can do everything, others what the visibility or a grant opens.
 *
 * Decisions need no promise unless a grant must be read; grants are cached for 5 s, and `servers.changed` and
 * `grants.changed` drop them. A server that is hidden from the caller gets the same response as a missing one, in the
 * same time (`spendLookUp`). Only the owner of a namespace learns which server is missing in it, and the nearest name.
 */
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { RowCache } from '../../platform/database/row-cache.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { didYouMean } from '../../platform/text/nearest.js';
import { AccessService } from '../auth/access.service.js';
import { ANONYMOUS, MEMBER_GRANT, type Action, type Caller, type GrantRef } from '../auth/access.types.js';
import type { QualifiedName, ServerTarget, ServerUse } from './server.types.js';
import { OpenedByOwnersError, ServerNotFoundError } from './servers.errors.js';
import { ServersRepository } from './servers.repository.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    /**
     * Published when a server, connection or namespace was granted to an account, or a grant was changed or revoked. `cut`: the revoked
     * grant whose calls are canceled.
     */
    'grants.changed': { serverId?: string; connectionId?: string; namespaceId?: string; cut?: string };
  }
}

const NO_SERVER = '00000000-0000-0000-0000-000000000000';

/** Opens no tools: stands in for a grant that was just dropped from the cache. */
const NO_TOOLS: GrantRef = { ...MEMBER_GRANT, tools: [] };

interface KnownGrant {
  serverId: string;
  grant: GrantRef | null;
}

@Injectable()
export class ServerAccessService implements OnModuleInit {
  private readonly grants = new RowCache<KnownGrant>(async (key) => {
    const [serverId = '', accountId = ''] = key.split(' ');
    return { serverId, grant: await this.serversRepository.findGrant(serverId, accountId) };
  });

  constructor(
    private readonly accessService: AccessService,
    private readonly serversRepository: ServersRepository,
    private readonly pubSub: PubSub,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('servers.changed', ({ id }) => this.forget(id));
    // The account might have left or joined an organization.
    await this.pubSub.subscribe('auth.account-changed', () => this.grants.dropWhere(() => true));
    await this.pubSub.subscribe('grants.changed', ({ serverId, namespaceId }) => {
      if (serverId !== undefined) this.forget(serverId);
      if (namespaceId !== undefined) this.grants.dropWhere(() => true);
    });
  }

  /**
   * Checks access. Returns a promise only if a grant must be read: never for a public server, and never for its owner.
   *
   * @throws KeyScopeError when only the key lacks the right
   */
  isAllowed(caller: Caller, action: Action, server: ServerTarget): boolean | Promise<boolean> {
    if (this.accessService.isAllowed(caller, action, server)) return true;
    if (caller === ANONYMOUS) return false;
    const key = `${server.id} ${caller.accountId}`;
    const cached = this.grants.peek(key);
    if (cached) return this.isGranted(caller, action, server, cached);
    return this.grants.get(key).then((knownGrant) => this.isGranted(caller, action, server, knownGrant));
  }

  /** Returns the grant; null for the caller's own and public servers. Call this right after {@link isAllowed}. */
  grantOf(caller: Caller, server: ServerTarget): GrantRef | null {
    if (this.accessService.isAllowed(caller, 'call', server)) return null;
    return this.grants.peek(`${server.id} ${caller.accountId}`)?.grant ?? NO_TOOLS;
  }

  /**
   * Returns the granted tools of a server that is not public; null means all tools. Call this right after {@link isAllowed}.
   */
  grantedToolsOf(caller: Caller, server: ServerTarget): readonly string[] | null {
    return this.grantOf(caller.scopes === null ? caller : { ...caller, scopes: null }, server)?.tools ?? null;
  }

  /** Returns true if the caller's account can call the server, regardless of the scopes of its key. */
  mayCallByAccount(caller: Caller, server: ServerTarget): boolean | Promise<boolean> {
    return this.isAllowed(caller.scopes === null ? caller : { ...caller, scopes: null }, 'call', server);
  }

  /** Returns true if the caller can grant the server to any account. @throws KeyScopeError */
  mayGrant(caller: Caller, { ownerId, namespace }: Pick<ServerTarget, 'ownerId' | 'namespace'>): boolean {
    return this.accessService.isAllowed(caller, 'own', { ownerId, namespace });
  }

  /** Requires a caller that can make the server more visible. @throws OpenedByOwnersError, KeyScopeError */
  requireOpener(caller: Caller, server: Pick<ServerTarget, 'ownerId' | 'namespace'>): void {
    if (!this.mayGrant(caller, server)) throw new OpenedByOwnersError();
  }

  /** Returns uses whose account can no longer call the server, without those of deleted servers. */
  async lostAmong(uses: ServerUse[]): Promise<ServerUse[]> {
    const serverIds = [...new Set(uses.map(({ serverId }) => serverId))];
    const closed = new Set(await this.serversRepository.closedAmong(serverIds));
    const ofClosed = uses.filter(({ serverId }) => closed.has(serverId));
    return ofClosed.length === 0 ? [] : this.serversRepository.lostAmong(ofClosed);
  }

  /** Takes the time of a lookup, so that the response does not reveal by its time whether the server exists. */
  async spendLookUp({ accountId }: Caller): Promise<void> {
    await this.serversRepository.findGrant(NO_SERVER, accountId);
  }

  /** Names the missing server, and the nearest name, only to the owner of the namespace. */
  async missing({ namespace, name }: QualifiedName, caller: Caller): Promise<ServerNotFoundError> {
    const row = await this.serversRepository.namesIn(namespace);
    if (!row || !this.accessService.isAllowed(caller, 'read', { ownerId: row.ownerId, namespace })) {
      return new ServerNotFoundError('GET /servers finds the servers that you can read.');
    }
    return new ServerNotFoundError(`Your namespace "${namespace}" has no such server.${didYouMean(name, row.names)}`);
  }

  private isGranted(caller: Caller, action: Action, server: ServerTarget, knownGrant: KnownGrant | null): boolean {
    const { ownerId, namespace, visibility } = server;
    const target = { ownerId, namespace, visibility, granted: knownGrant?.grant?.level ?? null };
    return this.accessService.isAllowed(caller, action, target);
  }

  private forget(id: string): void {
    this.grants.dropWhere(({ serverId }) => serverId === id);
  }
}
