import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { isForeignKeyViolation } from '../../../platform/database/postgres-errors.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import type { ServerRuntimeDto, UpdateServerRuntimeDto } from './server-settings.dto.js';
import { ServerRuntime } from './server-settings.entity.js';
import { toServerRuntimeDto } from '../server.mapper.js';
import { ServerNotFoundError } from '../servers.errors.js';
import { ServersService } from '../servers.service.js';

/** Reads the egress rules of servers, to run their releases. */
@Injectable()
export class ServerEgressService {
  constructor(@InjectRepository(ServerRuntime) private readonly rows: Repository<ServerRuntime>) {}

  /** The hosts a server's code may reach, as `Program.egressAllow`; null for any public one. */
  async allowOf(serverId: string): Promise<string[] | null> {
    return (await this.rows.findOneBy({ serverId }))?.egressAllow ?? null;
  }
}

/** Reads and changes the runtime settings of servers, for their owners. */
@Injectable()
export class ServerRuntimeService {
  constructor(
    @InjectRepository(ServerRuntime) private readonly rows: Repository<ServerRuntime>,
    private readonly servers: ServersService,
  ) {}

  /** Reads the settings. @throws ServerNotFoundError */
  async get(namespace: OwnedNamespace, name: string): Promise<ServerRuntimeDto> {
    const { id } = await this.servers.findOwn(namespace, name);
    return this.read(id);
  }

  /** Changes the settings in the body. Running programs restart with them. @throws ServerNotFoundError */
  async update(namespace: OwnedNamespace, name: string, body: UpdateServerRuntimeDto): Promise<ServerRuntimeDto> {
    const server = await this.servers.findOwn(namespace, name);
    const { egressAllow, logPayloads } = body;
    if (egressAllow !== undefined || logPayloads !== undefined) {
      await this.write({ serverId: server.id, egressAllow, logPayloads });
      this.servers.announceChange(server);
    }
    return this.read(server.id);
  }

  private async write(row: Pick<ServerRuntime, 'serverId'> & UpdateServerRuntimeDto): Promise<void> {
    try {
      await this.rows.upsert(row, ['serverId']);
    } catch (error) {
      if (isForeignKeyViolation(error)) throw new ServerNotFoundError();
      throw error;
    }
  }

  private async read(serverId: string): Promise<ServerRuntimeDto> {
    return toServerRuntimeDto(await this.rows.findOneBy({ serverId }));
  }
}
