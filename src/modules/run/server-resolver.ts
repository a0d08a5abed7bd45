import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { RowCache } from '../../platform/database/row-cache.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { ServersService } from '../servers/servers.service.js';
import { ServerNotFoundError } from '../servers/servers.errors.js';
import { toResolvedServer, type ResolvedServer } from './resolved-server.js';

/** Cache lifetime of a server. Changes are also published, so that they take effect at once. */
const SERVER_CACHED_MS = 5_000;
const SERVERS_CACHED_MAX = 50_000;

/** Prefix of cache keys that are ids; no slug holds a colon. */
const BY_ID = 'id:';

/** The form of a slug; other texts are not looked up. */
const SLUG = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

type CurrentListener = (serverId: string, releaseId: string | null) => void;
type OffersListener = (serverId: string) => void;

/** Resolves slugs and ids to servers that are ready to be called. Cached for 5 s. */
@Injectable()
export class ServerResolver implements OnModuleInit {
  private readonly listeners: CurrentListener[] = [];
  private readonly offersListeners: OffersListener[] = [];
  private readonly servers = new RowCache<ResolvedServer>((key) => this.load(key), {
    max: SERVERS_CACHED_MAX,
    ttlMs: SERVER_CACHED_MS,
  });

  constructor(
    private readonly registry: ServersService,
    private readonly pubSub: PubSub,
    private readonly env: Env,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('servers.changed', ({ id }) => this.forget(id));
    await this.pubSub.subscribe('servers.deleted', ({ id }) => this.changed(id, null));
    await this.pubSub.subscribe('releases.current', ({ serverId, releaseId }) => this.changed(serverId, releaseId));
    await this.pubSub.subscribe('releases.offers', ({ serverId }) => this.offersChanged(serverId));
  }

  /** The server with this slug. @throws ServerNotFoundError */
  async bySlug(slug: string): Promise<ResolvedServer> {
    const found = SLUG.test(slug) ? await this.servers.get(slug) : null;
    if (!found) throw new ServerNotFoundError();
    return found;
  }

  /** The server with this id; null when there is none. */
  byId(serverId: string): Promise<ResolvedServer | null> {
    return this.servers.get(`${BY_ID}${serverId}`);
  }

  /** Calls `listener` when another release of a server becomes current; `releaseId` is null after its deletion. */
  whenCurrent(listener: CurrentListener): void {
    this.listeners.push(listener);
  }

  /** Calls `listener` when a server's lists may have changed: after a release, a rescan or its deletion. */
  whenOffersChange(listener: OffersListener): void {
    this.offersListeners.push(listener);
  }

  private async load(key: string): Promise<ResolvedServer | null> {
    const by = key.startsWith(BY_ID) ? { id: key.slice(BY_ID.length) } : { slug: key };
    const server = await this.registry.findRunnable(by);
    return server && toResolvedServer(server, this.env.runtimeBundles !== 'off');
  }

  private forget(id: string): void {
    this.servers.dropWhere(({ serverId }) => serverId === id);
  }

  private changed(serverId: string, releaseId: string | null): void {
    this.forget(serverId);
    for (const listener of this.listeners) listener(serverId, releaseId);
    this.offersChanged(serverId);
  }

  private offersChanged(serverId: string): void {
    for (const listener of this.offersListeners) listener(serverId);
  }
}
