import { EventEmitter } from 'node:events';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { RowCache } from '../../platform/database/row-cache.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import type { Caller, GrantRef } from '../auth/access.types.js';
import { SuspendedError } from '../auth/auth.errors.js';
import { ServerAccessService } from '../servers/server-access.service.js';
import { ServersService } from '../servers/servers.service.js';
import { AccessRequiredError, ServerNotFoundError } from '../servers/servers.errors.js';
import { parseUrl } from '../../config/parse-url.js';
import type { ProgramRef } from '../../hosting/hosting.types.js';
import { formatQualifiedName, type RunnableServer, type ServerTarget } from '../servers/server.types.js';
import { configFields, type ConfigField, type ConfigKind } from '../releases/config/config-fields.js';
import { hostedAddress } from '../../hosting/mcp/hosted-channels.service.js';
import { bundleProgram, releaseProgram } from '../releases/program-ref.js';

/** Prefix of cache keys that are ids; no slug contains a colon. */
const BY_ID = 'id:';

const NO_SLUG = '';

const SLUG = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

export interface ResolvedRelease {
  id: string;
  /** URL of the upstream; for hosted code, an address under `.invalid`. */
  upstream: URL;
  config: readonly ConfigField[];
  /** Null for a server that runs elsewhere. */
  program: ProgramRef | null;
  /**
   * The resource for which tokens from the code's auth adapter (`createAuthAdapter`) are stored: an address under `.invalid`, the same for
   * all releases. Null without an auth adapter.
   */
  authAddress: URL | null;
}

export interface ResolvedServer extends ServerTarget {
  serverId: string;
  namespaceId: string;
  name: string;
  slug: string;
  /** True if the runtime logs store arguments and results. */
  logPayloads: boolean;
  /** The reason why the operator suspended the server or its namespace; null without a suspension. */
  suspended: string | null;
  /** `reason` is why the release cannot be called. */
  release: ResolvedRelease | { id: string | null; reason: string };
  /** Absent for the caller's own and public servers. */
  grant?: GrantRef;
}

/** Resolves servers, and caches them for 5 s. */
@Injectable()
export class ServerResolver implements OnModuleInit {
  readonly events = new EventEmitter<{
    /** Another release of a server became current; null after the server was deleted. */
    current: [serverId: string, releaseId: string | null];
    /** Emitted when lists might have changed, after a release, a rescan or a deletion. */
    offers: [serverId: string];
  }>();
  private readonly servers = new RowCache<ResolvedServer>((key) => this.load(key));

  constructor(
    private readonly serversService: ServersService,
    private readonly pubSub: PubSub,
    private readonly env: Env,
    private readonly serverAccessService: ServerAccessService,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('servers.changed', ({ id }) => this.forget(id));
    await this.pubSub.subscribe('namespaces.suspended', ({ name }) =>
      this.servers.dropWhere(({ namespace }) => namespace === name),
    );
    this.serversService.events.on('deleted', (id) => this.changed(id, null));
    await this.pubSub.subscribe('servers.deleted', ({ id }) => this.changed(id, null));
    await this.pubSub.subscribe('releases.current', ({ serverId, releaseId }) => this.changed(serverId, releaseId));
    await this.pubSub.subscribe('releases.offers', ({ serverId }) => this.events.emit('offers', serverId));
  }

  /**
   * Finds a server by its slug in any case. Returns a promise if a row must be read.
   *
   * @throws ServerNotFoundError, including for a private server that the caller cannot find; AccessRequiredError,
   * SuspendedError, KeyScopeError
   */
  forCaller(slug: string, caller: Caller): ResolvedServer | Promise<ResolvedServer> {
    if (!SLUG.test(slug)) throw new ServerNotFoundError();
    const key = slug.toLowerCase();
    const cached = this.servers.peek(key);
    const may = cached !== null && this.serverAccessService.isAllowed(caller, 'call', cached);
    return may === true ? this.addGrant(active(cached), caller) : this.readFor(key, caller, cached, may);
  }

  /** Reads a server. A hidden server takes the same queries as a missing one, so that the response time does not reveal it. */
  private async readFor(
    key: string,
    caller: Caller,
    cached: ResolvedServer | null,
    mayCall: boolean | Promise<boolean>,
  ): Promise<ResolvedServer> {
    const server = cached ?? (await this.servers.get(key));
    const may =
      cached === null && server !== null ? this.serverAccessService.isAllowed(caller, 'call', server) : mayCall;
    if (server !== null && (await may)) return this.addGrant(active(server), caller);
    if (server?.visibility === 'restricted') throw new AccessRequiredError(server.name);
    if (cached !== null) await this.serversService.findRunnable({ slug: NO_SLUG });
    if (!(may instanceof Promise)) await this.serverAccessService.spendLookUp(caller);
    throw new ServerNotFoundError();
  }

  /** Returns the server with this id, if it is cached and the caller can call it: such a call needs no promise. */
  peekFor(serverId: string, caller: Caller): ResolvedServer | null {
    const server = this.servers.peek(`${BY_ID}${serverId}`);
    if (!server) return null;
    const may = this.serverAccessService.isAllowed(caller, 'call', server);
    // `byId` reads the grant again, and reports a failure to its caller.
    if (may instanceof Promise) may.catch(() => undefined);
    return may === true && server.suspended === null ? this.addGrant(server, caller) : null;
  }

  /**
   * Returns the server with this id; null if the caller cannot find one. @throws AccessRequiredError, SuspendedError
   */
  async byId(serverId: string, caller: Caller): Promise<ResolvedServer | null> {
    const server = await this.servers.get(`${BY_ID}${serverId}`);
    if (server && (await this.serverAccessService.isAllowed(caller, 'call', server)))
      return this.addGrant(active(server), caller);
    if (server?.visibility === 'restricted') throw new AccessRequiredError(server.name);
    return null;
  }

  private addGrant(server: ResolvedServer, caller: Caller): ResolvedServer {
    if (server.visibility === 'public') return server;
    const grant = this.serverAccessService.grantOf(caller, server);
    return grant === null ? server : { ...server, grant };
  }

  private async load(key: string): Promise<ResolvedServer | null> {
    const by = key.startsWith(BY_ID) ? { id: key.slice(BY_ID.length) } : { slug: key };
    const server = await this.serversService.findRunnable(by);
    if (!server) return null;
    const { id, ownerId, namespace, visibility, namespaceId, slug, logPayloads, suspended } = server;
    const name = formatQualifiedName(server);
    const release = releaseOf(name, server, this.env.runtimeBundles !== 'off');
    const target = { id, serverId: id, ownerId, namespace, visibility, namespaceId };
    return { ...target, name, slug, logPayloads, suspended, release };
  }

  private forget(id: string): void {
    this.servers.dropWhere(({ serverId }) => serverId === id);
  }

  private changed(serverId: string, releaseId: string | null): void {
    this.forget(serverId);
    this.events.emit('current', serverId, releaseId);
    this.events.emit('offers', serverId);
  }
}

/** @throws SuspendedError */
function active(server: ResolvedServer): ResolvedServer {
  if (server.suspended !== null) throw new SuspendedError('server', server.suspended);
  return server;
}

function releaseOf(
  name: string,
  { id: serverId, current }: RunnableServer,
  runsBundles: boolean,
): ResolvedServer['release'] {
  const path = `/servers/${encodeURIComponent(name)}`;
  if (!current) {
    const reason = `The server ${name} has no successful release yet: its owner publishes one with PUT ${path}/releases.`;
    return { id: null, reason };
  }
  const { releaseId: id, type, upstreamUrl, hosted } = current;
  const order = new Map(current.configOrder?.map((path, place) => [path, place]));
  const placeOf = ({ path }: ConfigField) => order.get(path.join('.')) ?? order.size;
  const configFor = (kind: ConfigKind) =>
    configFields({ properties: {}, ...current.configSchema, type: 'object' }, kind).toSorted(
      (a, b) => placeOf(a) - placeOf(b),
    );
  switch (type) {
    case 'stdio': {
      if (runsBundles) {
        const program = bundleProgram(id, serverId);
        return { id, upstream: hostedAddress(program, '/'), config: configFor('hosted'), program, authAddress: null };
      }
      const reason = `The server ${name} is a bundle: download it with GET ${path}/download and run it where its client runs.`;
      return { id, reason };
    }
    case 'hosted_shttp': {
      if (!hosted) return { id, reason: `The current release of ${name} was never run here: publish it again.` };
      const program = releaseProgram(id, serverId, hosted.isStateful);
      const authAddress = hosted.hasAuthAdapter ? new URL(`https://${serverId}.hosted.invalid/`) : null;
      const upstream = hostedAddress(program, hosted.mcpPath);
      return { id, upstream, config: configFor('hosted'), program, authAddress };
    }
    case 'external_shttp': {
      const upstream = parseUrl(upstreamUrl ?? '');
      if (!upstream) return { id, reason: `The current release of ${name} has no URL to call: publish it again.` };
      return { id, upstream, config: configFor('external'), program: null, authAddress: null };
    }
  }
}
