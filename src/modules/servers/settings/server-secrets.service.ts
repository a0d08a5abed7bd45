import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { DataSource, In, Repository } from 'typeorm';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import type { SuccessDto } from '../../../platform/http/success.dto.js';
import { Vault } from '../../../platform/vault/vault.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { Server } from '../server.entity.js';
import { ServerSecret } from './server-settings.entity.js';
import type { SecretDto, SetSecretDto } from './server-settings.dto.js';
import { SECRET_NAME } from '../server.validators.js';
import { SecretNotFoundError, ServerNotFoundError } from '../servers.errors.js';
import { ServersService } from '../servers.service.js';

/** Secrets one server may have. */
const COUNT_MAX = 100;

/** Reads the secrets of servers in clear text, only to run their releases. */
@Injectable()
export class SecretValuesService {
  constructor(
    @InjectRepository(ServerSecret) private readonly secrets: Repository<ServerSecret>,
    private readonly vault: Vault,
  ) {}

  /**
   * The values of these secrets by name; of all secrets if `names` is null. Unknown names are left out.
   *
   * @throws VaultError when one cannot be opened
   */
  async reveal(serverId: string, names: readonly string[] | null): Promise<Record<string, string>> {
    const rows = await this.secrets.find({
      where: { serverId, ...(names && { name: In(names) }) },
      select: { id: true, name: true, sealedValue: true },
    });
    return Object.fromEntries(rows.map(({ id, name, sealedValue }) => [name, this.vault.open(sealedValue, id)]));
  }
}

/** Lists, stores and deletes the secrets of servers. {@link SecretValuesService} alone reads their values. */
@Injectable()
export class ServerSecretsService {
  constructor(
    @InjectRepository(ServerSecret) private readonly secrets: Repository<ServerSecret>,
    private readonly dataSource: DataSource,
    private readonly servers: ServersService,
    private readonly vault: Vault,
  ) {}

  /** Lists the secrets by name, without values. @throws ServerNotFoundError */
  async list(namespace: OwnedNamespace, server: string): Promise<SecretDto[]> {
    const { id: serverId } = await this.servers.findOwn(namespace, server);
    const rows = await this.secrets.find({ where: { serverId }, order: { name: 'ASC' } });
    return rows.map((row) => ({ name: row.name, type: 'secret_text' }));
  }

  /** Creates or replaces a secret. @throws ServerNotFoundError, InvalidInputError beyond 100 secrets */
  async set(namespace: OwnedNamespace, serverName: string, { name, value }: SetSecretDto): Promise<SuccessDto> {
    const server = await this.servers.findOwn(namespace, serverName);
    await this.dataSource.transaction(async (tx) => {
      // Serializes the writers of this server's secrets, so that the count stays true until the insert.
      const owner = await tx.findOne(Server, { where: { id: server.id }, lock: { mode: 'for_no_key_update' } });
      if (!owner) throw new ServerNotFoundError();
      const existing = await tx.findOneBy(ServerSecret, { serverId: server.id, name });
      if (!existing && (await tx.countBy(ServerSecret, { serverId: server.id })) >= COUNT_MAX) {
        throw new InvalidInputError(`A server has at most ${COUNT_MAX} secrets: delete one first`);
      }
      const id = existing?.id ?? randomUUID();
      await tx.save(ServerSecret, { id, serverId: server.id, name, sealedValue: this.vault.seal(value, id) });
    });
    this.servers.announceChange(server);
    return { success: true };
  }

  /** Deletes a secret. @throws ServerNotFoundError, SecretNotFoundError */
  async remove(namespace: OwnedNamespace, serverName: string, name: string): Promise<SuccessDto> {
    const server = await this.servers.findOwn(namespace, serverName);
    // A path may hold characters that Postgres refuses.
    if (!SECRET_NAME.test(name)) throw new SecretNotFoundError();
    const { affected } = await this.secrets.delete({ serverId: server.id, name });
    if (!affected) throw new SecretNotFoundError();
    this.servers.announceChange(server);
    return { success: true };
  }
}
