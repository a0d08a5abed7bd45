import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { RowCache } from '../../platform/database/row-cache.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { ServersService } from '../servers/servers.service.js';
import { ServerNotFoundError } from '../servers/servers.errors.js';
import { toResolvedServer, type ResolvedServer } from './resolved-server.js';

/** A server is believed this long; a change also arrives over the relay, at once. */
const SERVER_CACHED_MS = 5_000;
const SERVERS_CACHED_MAX = 50_000;

/** Marks the keys of servers that are known by their id; no slug holds a colon. */
const BY_ID = 'id:';

/** What no slug is made of is not looked for. */
const SLUG = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

type CurrentListener = (serverId: string, releaseId: string | null) => void;
type OffersListener = (serverId: string) => void;

/** Servers, made ready to be called. No query while one was read in the last 5 s. */
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
    await this.pubSub.subscribe('releases.offers', ({ serverId }) => this.offersOther(serverId));
  }

  /** @throws ServerNotFoundError */
  async bySlug(slug: string): Promise<ResolvedServer> {
    const found = SLUG.test(slug) ? await this.servers.get(slug) : null;
    if (!found) throw new ServerNotFoundError();
    return found;
  }

  /** Null when there is none. */
  byId(serverId: string): Promise<ResolvedServer | null> {
    return this.servers.get(`${BY_ID}${serverId}`);
  }

  /** Calls `listener` when another release of a server is current, or none (null) since the server is gone. */
  whenCurrent(listener: CurrentListener): void {
    this.listeners.push(listener);
  }

  /** Calls `listener` when a server's lists may be others than before: it, or its current release, is another one. */
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
    this.offersOther(serverId);
  }

  private offersOther(serverId: string): void {
    for (const listener of this.offersListeners) listener(serverId);
  }
}
