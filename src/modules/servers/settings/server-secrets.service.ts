import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { DataSource, Repository } from 'typeorm';
import { transactionOf, type Actor } from '../../../platform/database/actor.js';
import { InvalidInputError, NotFoundError } from '../../../platform/errors/domain-error.js';
import type { SuccessDto } from '../../../platform/http/success.dto.js';
import { Vault } from '../../../platform/vault/vault.js';
import { Server } from '../server.entity.js';
import { SECRET_NAME } from '../server.validators.js';
import { ServerNotFoundError } from '../servers.errors.js';
import { ServersService } from '../servers.service.js';
import type { ServerRef } from '../server.types.js';
import { publicWithSecrets } from './server-secrets.repository.js';
import { ServerSecret } from './server-settings.entity.js';
import type { SecretDto, SetSecretDto } from './server-settings.dto.js';

const COUNT_MAX = 100;

/** {@link ProgramSettingsService} alone reads the values of secrets. */
@Injectable()
export class ServerSecretsService {
  constructor(
    @InjectRepository(ServerSecret) private readonly serverSecretRepository: Repository<ServerSecret>,
    private readonly database: DataSource,
    private readonly serversService: ServersService,
    private readonly vault: Vault,
  ) {}

  async list({ id: serverId }: ServerRef): Promise<SecretDto[]> {
    const rows = await this.serverSecretRepository.find({ where: { serverId }, order: { name: 'ASC' } });
    return rows.map(({ name }) => ({ name, type: 'secret_text' }));
  }

  /** @throws ServerNotFoundError, InvalidInputError beyond 100 secrets */
  async set(actor: Actor, server: ServerRef, { name, value }: SetSecretDto): Promise<SuccessDto> {
    const serverId = server.id;
    await transactionOf(this.database, actor, async (tx) => {
      // Serializes the writers of this server's secrets, so that the count stays true until the insert.
      const owner = await tx.findOne(Server, { where: { id: serverId }, lock: { mode: 'for_no_key_update' } });
      if (!owner) throw new ServerNotFoundError();
      const existing = await tx.findOneBy(ServerSecret, { serverId, name });
      if (!existing && (await tx.countBy(ServerSecret, { serverId })) >= COUNT_MAX) {
        throw new InvalidInputError(`A server has at most ${COUNT_MAX} secrets: delete one first`);
      }
      const id = existing?.id ?? randomUUID();
      const sealedValue = this.vault.seal(value, id);
      await tx.save(ServerSecret, { id, serverId, name, sealedValue, createdAt: new Date() });
    });
    this.serversService.announceChange(server);
    return { success: true };
  }

  /** Returns a message for the owner; null unless the server is public with unconfirmed secrets. */
  async publicNote({ id }: Pick<ServerRef, 'id'>): Promise<string | null> {
    const isPublic = (await publicWithSecrets(this.database, id)).length > 0;
    return isPublic
      ? 'The server is public: every account that calls it works with its secrets. PATCH it with visibility "restricted" to change that.'
      : null;
  }

  /** @throws NotFoundError */
  async remove(actor: Actor, server: ServerRef, name: string): Promise<SuccessDto> {
    // A path can contain characters that Postgres rejects.
    const { affected } = SECRET_NAME.test(name)
      ? await transactionOf(this.database, actor, (tx) => tx.delete(ServerSecret, { serverId: server.id, name }))
      : { affected: 0 };
    if (!affected) throw new NotFoundError('Secret not found');
    this.serversService.announceChange(server);
    return { success: true };
  }
}
