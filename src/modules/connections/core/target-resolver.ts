import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import type { RunnableServer } from '../../servers/server.types.js';
import { ServersService } from '../../servers/servers.service.js';
import { ServerNotFoundError } from '../../servers/servers.errors.js';
import type { SetConnectionDto } from './connection.dto.js';
import type { Connection } from './connection.entity.js';
import {
  isSamePlace,
  queryOf,
  requireNewTarget,
  requireNoMock,
  requireSameTarget,
  type GivenTarget,
  type NewTarget,
} from './connection-target.js';
import { ConnectionUrls } from './connection-urls.js';
import { ConnectionTargetError } from './connections.errors.js';
import type { QueryValues } from './connection.types.js';
import { SourceCompiler } from '../source/source-compiler.js';
import { isOwnAddress, registryAddressOf, type RegistryAddress } from './registry-address.js';

const NOWHERE = { mcpUrl: null, serverId: null, serverName: null, source: null, isStateful: false, query: [] };

/** Asks the registry what a connection's target is. */
@Injectable()
export class TargetResolver {
  constructor(
    private readonly servers: ServersService,
    private readonly urls: ConnectionUrls,
    private readonly sources: SourceCompiler,
    private readonly env: Env,
  ) {}

  /**
   * The target of a new connection.
   *
   * @param whose the namespace's id
   * @throws InvalidInputError, also for a server that does not exist; InvalidSourceError, NoSlotError
   */
  async resolve(body: SetConnectionDto, whose: string): Promise<NewTarget> {
    const given = requireNewTarget(body);
    switch (given.kind) {
      case 'uplink':
        return { ...NOWHERE, targetKind: 'uplink' };
      case 'source':
        return {
          ...NOWHERE,
          targetKind: 'source',
          source: given.source,
          ...(await this.sources.check(given.source, whose)),
        };
      case 'server':
      case 'url':
        break;
    }
    const server = await this.serverOf(given);
    if (server) return { ...this.toTarget(server), query: given.kind === 'url' ? queryOf(given.url) : [] };
    if (given.kind === 'server') throw unknownServer(given.name);
    if (isOwnAddress(given.url, this.env.baseUrl)) {
      throw new InvalidInputError(
        'mcpUrl is an address of this service, which would call itself: for a registry server give server.',
      );
    }
    requireNoMock(body, 'a custom mcpUrl');
    return { ...NOWHERE, targetKind: 'url', mcpUrl: given.url };
  }

  /**
   * What a change makes of the target: the query of its address, where that is only values.
   *
   * @param existing with its `source`
   * @throws ConnectionTargetError when it names another target, InvalidInputError
   */
  async change(existing: Connection, body: SetConnectionDto): Promise<{ mcpUrl?: string; query?: QueryValues }> {
    const given = requireSameTarget(existing, body);
    if (given === null) return {};
    if (given.kind === 'uplink') throw new ConnectionTargetError('transport');
    if (given.kind === 'source') {
      if (isDeepStrictEqual(given.source, existing.source)) return {};
      throw new ConnectionTargetError('source');
    }
    const server = await this.serverOf(given);
    if (existing.targetKind === 'server') {
      if (!server || server.id !== existing.serverId) throw new ConnectionTargetError('server');
      const query = given.kind === 'url' ? queryOf(given.url) : [];
      return query.length > 0 ? { query } : {};
    }
    if (given.kind === 'server') throw new ConnectionTargetError('server');
    if (server || existing.mcpUrl === null) throw new ConnectionTargetError('mcpUrl');
    if (given.url === existing.mcpUrl) return {};
    if (existing.statusState !== 'input_required' || !isSamePlace(given.url, existing.mcpUrl)) {
      throw new ConnectionTargetError('mcpUrl');
    }
    return { mcpUrl: given.url };
  }

  /** The server an address of a filter means; null when it is one of the web. */
  async serverIdOf(address: string): Promise<string | null> {
    const found = registryAddressOf(address, this.env.baseUrl);
    return found && ((await this.at(found))?.id ?? null);
  }

  private async serverOf(given: GivenTarget): Promise<RunnableServer | null> {
    if (given.kind !== 'url') return given.kind === 'server' ? this.named(given.name) : null;
    const found = registryAddressOf(given.url, this.env.baseUrl);
    if (!found) return null;
    const server = await this.at(found);
    if (!server) throw unknownServer('name' in found ? found.name : found.slug);
    return server;
  }

  private at(address: RegistryAddress): Promise<RunnableServer | null> {
    return 'name' in address ? this.named(address.name) : this.servers.findRunnable(address);
  }

  private async named(name: string): Promise<RunnableServer | null> {
    const slash = name.indexOf('/');
    const parts =
      slash < 0 ? { namespace: name, name: '' } : { namespace: name.slice(0, slash), name: name.slice(slash + 1) };
    try {
      const { id } = await this.servers.find(parts);
      return await this.servers.findRunnable({ id });
    } catch (error) {
      if (error instanceof ServerNotFoundError) return null;
      throw error;
    }
  }

  private toTarget({ id, namespace, name, slug }: RunnableServer): Omit<NewTarget, 'query'> {
    const serverName = name === '' ? namespace : `${namespace}/${name}`;
    return { ...NOWHERE, targetKind: 'server', mcpUrl: this.urls.run(slug), serverId: id, serverName };
  }
}

function unknownServer(name: string): InvalidInputError {
  return new InvalidInputError(`The registry has no server "${name}": check its qualified name, such as acme/weather.`);
}
