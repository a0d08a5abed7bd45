import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { parseUrl } from '../../../config/parse-url.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { AccessService } from '../../auth/access.service.js';
import { ANONYMOUS, callerFor, type Caller, type OwnedNamespace } from '../../auth/access.types.js';
import { TargetsService } from '../../targets/targets.service.js';
import { formatQualifiedName, parseQualifiedName, type ServerRef } from '../../servers/server.types.js';
import { ServerUrlsService } from '../../servers/server-urls.service.js';
import { ServersService } from '../../servers/servers.service.js';
import { ServerNotFoundError } from '../../servers/servers.errors.js';
import type { SetConnectionDto } from './connection.dto.js';
import type { Connection, QueryValues } from './connection.entity.js';
import {
  isSamePlace,
  queryOf,
  requireNewTarget,
  requireNoMock,
  requireSameTarget,
  type NewTarget,
  type RequestedTarget,
} from './connection-target.js';
import { ConnectionValues } from './connection-values.js';
import { targetConflict } from './connections.errors.js';

const NOWHERE = {
  mcpUrl: null,
  serverId: null,
  serverName: null,
  grantedTools: null,
  source: null,
  isStateful: false,
  query: [],
};

/** The new target of a connection; members that do not change are absent. */
export interface TargetChange {
  mcpUrl?: string;
  query?: QueryValues;
  isMove?: boolean;
}

type RegistryAddress = { name: string } | { slug: string };

const SLUG_HOST = /^([a-z0-9][a-z0-9-]{0,62})\.(.+)$/;

@Injectable()
export class TargetResolver {
  constructor(
    private readonly serversService: ServersService,
    private readonly targetsService: TargetsService,
    private readonly serverUrlsService: ServerUrlsService,
    private readonly connectionValues: ConnectionValues,
    private readonly accessService: AccessService,
    private readonly env: Env,
  ) {}

  /**
   * Resolves the target of a new connection in this namespace.
   *
   * @param caller must be able to call the server as well: connections call it with all rights of their owner
   * @throws InvalidInputError, including for a server that does not exist, or that the caller or the owner of the
   *   namespace cannot find; AccessRequiredError for one that either can only find; KeyScopeError
   */
  async resolve(namespace: OwnedNamespace, body: SetConnectionDto, caller: Caller): Promise<NewTarget> {
    const requested = requireNewTarget(body);
    if (requested.kind === 'uplink') return { ...NOWHERE, targetKind: 'uplink' };
    if (requested.kind === 'source') return { ...NOWHERE, targetKind: 'source', source: requested.source };
    const server = await this.serverOf(requested, namespace, caller);
    if (server) {
      const grantedTools = await this.requireCall(server, namespace, caller);
      await this.serversService.requireUnshared(server, namespace.id, caller);
      const serverName = formatQualifiedName(server);
      const query = requested.kind === 'url' ? queryOf(requested.url) : [];
      const mcpUrl = this.serverUrlsService.run(server.slug);
      return { ...NOWHERE, targetKind: 'server', mcpUrl, serverId: server.id, serverName, grantedTools, query };
    }
    if (requested.kind === 'server') throw unknownServer(requested.name);
    this.requireElsewhere(requested.url);
    requireNoMock(body, 'a custom mcpUrl');
    return { ...NOWHERE, targetKind: 'url', mcpUrl: requested.url };
  }

  /**
   * Accepts another query of its address, or, from its owner, another address while the connection has never worked.
   *
   * @param existing with its `source` and sealed URL
   * @returns `isMove`: the address changes, which is valid only if the connection has not worked meanwhile
   * @throws ConflictError for another target, InvalidInputError
   */
  async change(
    namespace: OwnedNamespace,
    existing: Connection,
    body: SetConnectionDto,
    caller: Caller,
  ): Promise<TargetChange> {
    const requested = requireSameTarget(existing, body);
    if (requested === null) return {};
    if (requested.kind === 'uplink') throw targetConflict('transport');
    if (requested.kind === 'source') {
      if (isDeepStrictEqual(requested.source, existing.source)) return {};
      throw targetConflict('source');
    }
    const server = await this.serverOf(requested, namespace, caller, existing.serverId);
    if (existing.targetKind === 'server') {
      if (!server || server.id !== existing.serverId) throw targetConflict('server');
      const query = requested.kind === 'url' ? queryOf(requested.url) : [];
      if (query.length === 0) return {};
      await this.requireCall(server, namespace, caller);
      return { query };
    }
    if (requested.kind === 'server') throw targetConflict('server');
    if (server || existing.mcpUrl === null) throw targetConflict('mcpUrl');
    // Clients also send back the masked URL that they read.
    if (requested.url === existing.mcpUrl || requested.url === this.connectionValues.openUrl(existing)) return {};
    if (existing.statusState === 'input_required' && isSamePlace(requested.url, existing.mcpUrl)) {
      return { mcpUrl: requested.url };
    }
    if (existing.lastOkAt !== null || caller.grant) throw targetConflict('mcpUrl');
    this.requireElsewhere(requested.url);
    return { mcpUrl: requested.url, isMove: true };
  }

  /** @returns the tools that the owner can call; null for all */
  private async requireCall(
    server: ServerRef,
    namespace: OwnedNamespace,
    caller: Caller,
  ): Promise<readonly string[] | null> {
    const owner = await this.ownerOf(namespace);
    await this.serversService.requireCallFor(owner, caller, server);
    if (server.visibility !== 'public') this.accessService.requireScope(caller, 'call', server.namespace);
    return this.serversService.grantedToolsOf(owner, server);
  }

  /** @throws InvalidInputError for an address of this service */
  private requireElsewhere(url: string): void {
    if (parseUrl(url)?.origin !== new URL(this.env.baseUrl).origin) return;
    throw new InvalidInputError(
      'mcpUrl is an address of this service, which would call itself: for a registry server send server.',
    );
  }

  async serverIdOf(address: string, namespace: OwnedNamespace): Promise<string | null> {
    const registryAddress = registryAddressOf(address, this.env);
    return registryAddress && ((await this.serverAt(registryAddress, namespace))?.id ?? null);
  }

  async serverNamed(name: string, namespace: OwnedNamespace): Promise<ServerRef | null> {
    try {
      return await this.serversService.find(parseQualifiedName(name), await this.ownerOf(namespace));
    } catch (error) {
      if (error instanceof ServerNotFoundError) return null;
      throw error;
    }
  }

  /** @param knownId server that the caller knows from the connection, even if it cannot find it otherwise */
  private async serverOf(
    requested: RequestedTarget,
    namespace: OwnedNamespace,
    caller: Caller,
    knownId: string | null = null,
  ): Promise<ServerRef | null> {
    if (requested.kind !== 'url' && requested.kind !== 'server') return null;
    const address = requested.kind === 'server' ? { name: requested.name } : registryAddressOf(requested.url, this.env);
    if (!address) return null;
    const server = await this.serverAt(address, namespace);
    if (server && (server.id === knownId || (await this.serversService.findBySlug(server.slug, caller)))) return server;
    if (requested.kind === 'server') return null;
    throw unknownServer('name' in address ? address.name : address.slug);
  }

  private async serverAt(address: RegistryAddress, namespace: OwnedNamespace): Promise<ServerRef | null> {
    if ('name' in address) return this.serverNamed(address.name, namespace);
    return this.serversService.findBySlug(address.slug, await this.ownerOf(namespace));
  }

  private async ownerOf({ name }: OwnedNamespace): Promise<Caller> {
    const namespaceFound = await this.targetsService.findNamespace(name);
    return namespaceFound ? callerFor(namespaceFound.ownerId) : ANONYMOUS;
  }
}

function unknownServer(name: string): InvalidInputError {
  return new InvalidInputError(`The registry has no server "${name}": check its qualified name, such as acme/weather.`);
}

/**
 * Recognises our own run addresses, and those on the hosts of the setting (`https://mcp.example.com/acme/weather[/mcp]`,
 * `https://acme--weather.run.example.com`): their servers are called without the network. Null for any other address.
 */
export function registryAddressOf(
  address: string,
  { baseUrl, registryHosts }: Pick<Env, 'baseUrl' | 'registryHosts'>,
): RegistryAddress | null {
  const url = parseUrl(address);
  if (!url) return null;
  const segments = segmentsOf(url);
  if (!segments) return null;
  if (registryHosts.includes(url.hostname))
    return segments.length === 1 || segments.length === 2 ? { name: segments.join('/').replace(/^@/, '') } : null;
  const [, slug, domain] = SLUG_HOST.exec(url.hostname) ?? [];
  if (slug !== undefined && registryHosts.includes(`*.${domain}`)) return segments.length === 0 ? { slug } : null;
  const base = new URL(baseUrl);
  if (url.origin !== base.origin) return null;
  const prefix = `${base.pathname.replace(/\/$/, '')}/run/`;
  const ownPath = url.pathname.startsWith(prefix)
    ? /^([A-Za-z0-9_-]{1,128})(?:\/mcp)?\/?$/.exec(url.pathname.slice(prefix.length))
    : null;
  return ownPath?.[1] === undefined ? null : { slug: ownPath[1] };
}

function segmentsOf({ pathname }: URL): string[] | null {
  try {
    const segments = pathname
      .split('/')
      .filter((segment) => segment !== '')
      .map(decodeURIComponent);
    const last = segments.at(-1);
    return last === 'mcp' && segments.length > 1 ? segments.slice(0, -1) : segments;
  } catch {
    return null;
  }
}
