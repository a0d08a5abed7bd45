/**
 * Who may do what with a server: its owner everything, others what its visibility opens or what was granted to their
 * account.
 *
 * The response comes without a promise unless a grant must be read; grants are cached for 5 s, and `servers.changed` and
 * `grants.changed` drop them at the same time. A server that the caller may not find is answered like one that does not exist,
 * in the same time (`spendLookUp`). Only the owner of a namespace learns what is missing in it, and the nearest name.
 *
 * A key that lacks a right which its account has is a KeyScopeError; everything else that is hidden is a
 * ServerNotFoundError.
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
     * Published when a server, a connection or a namespace was granted to an account, or a grant was changed or revoked.
     * `cut`: the revoked grant whose calls are cut.
     */
    'grants.changed': { serverId?: string; connectionId?: string; namespaceId?: string; cut?: string };
  }
}

/** The id of no server. */
const NO_SERVER = '00000000-0000-0000-0000-000000000000';

/** A grant that was dropped from the cache at this moment. */
const NO_TOOLS: GrantRef = { ...MEMBER_GRANT, tools: [] };

/** The grant of a server to an account; null without one. */
interface KnownGrant {
  serverId: string;
  grant: GrantRef | null;
}

/** Decides who may do what with a server. */
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
    // The account may have left an organization, or entered one.
    await this.pubSub.subscribe('auth.account-changed', () => this.grants.dropWhere(() => true));
    await this.pubSub.subscribe('grants.changed', ({ serverId, namespaceId }) => {
      if (serverId !== undefined) this.forget(serverId);
      if (namespaceId !== undefined) this.grants.dropWhere(() => true);
    });
  }

  /**
   * True if the caller may do this with the server. A promise only where a grant must be read: never for a public server,
   * and never for its owner.
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

  /** The grant by which {@link isAllowed} just let a caller call a server; null for its own and public ones. */
  grantOf(caller: Caller, server: ServerTarget): GrantRef | null {
    if (this.accessService.isAllowed(caller, 'call', server)) return null;
    return this.grants.peek(`${server.id} ${caller.accountId}`)?.grant ?? NO_TOOLS;
  }

  /**
   * The only tools of a server that is not public that the account of the caller can call, and see of a private one; null for
   * all. Right after {@link isAllowed}.
   */
  grantedToolsOf(caller: Caller, server: ServerTarget): readonly string[] | null {
    return this.grantOf(caller.scopes === null ? caller : { ...caller, scopes: null }, server)?.tools ?? null;
  }

  /** {@link isAllowed} call it, whatever the key of the caller may do. */
  mayCallByAccount(caller: Caller, server: ServerTarget): boolean | Promise<boolean> {
    return this.isAllowed(caller.scopes === null ? caller : { ...caller, scopes: null }, 'call', server);
  }

  /** True if the caller can grant the server to anybody. @throws KeyScopeError */
  mayGrant(caller: Caller, { ownerId, namespace }: Pick<ServerTarget, 'ownerId' | 'namespace'>): boolean {
    return this.accessService.isAllowed(caller, 'own', { ownerId, namespace });
  }

  /** Requires that the caller can make the server more visible. @throws OpenedByOwnersError, KeyScopeError */
  requireOpener(caller: Caller, server: Pick<ServerTarget, 'ownerId' | 'namespace'>): void {
    if (!this.mayGrant(caller, server)) throw new OpenedByOwnersError();
  }

  /** Those of these uses that have ended: the account may call the server no longer. Deleted servers are not among them. */
  async lostAmong(uses: ServerUse[]): Promise<ServerUse[]> {
    const serverIds = [...new Set(uses.map(({ serverId }) => serverId))];
    const closed = new Set(await this.serversRepository.closedAmong(serverIds));
    const ofClosed = uses.filter(({ serverId }) => closed.has(serverId));
    return ofClosed.length === 0 ? [] : this.serversRepository.lostAmong(ofClosed);
  }

  /** Takes the time of a look-up of a grant, for a response that must not tell whether there is a server. */
  async spendLookUp({ accountId }: Caller): Promise<void> {
    await this.serversRepository.findGrant(NO_SERVER, accountId);
  }

  /**
   * The response for a server that does not exist, or that the caller may not find. The owner of the namespace learns what is
   * missing and the nearest name; others learn nothing.
   */
  async missing({ namespace, name }: QualifiedName, caller: Caller): Promise<ServerNotFoundError> {
    const row = await this.serversRepository.namesIn(namespace);
    if (!row || !this.accessService.isAllowed(caller, 'read', { ownerId: row.ownerId, namespace })) {
      return new ServerNotFoundError();
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
