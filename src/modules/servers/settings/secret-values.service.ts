import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Vault } from '../../../platform/vault/vault.js';
import { ServerSecret } from './server-secret.entity.js';

/** The secrets of servers in clear, for what runs their releases and nobody else. */
@Injectable()
export class SecretValuesService {
  constructor(
    @InjectRepository(ServerSecret) private readonly secrets: Repository<ServerSecret>,
    private readonly vault: Vault,
  ) {}

  /**
   * The values of these secrets by name, for what runs a release; of all of them when `names` is null. Names the server
   * does not have are absent.
   *
   * @throws VaultError when one cannot be opened
   */
  async reveal(serverId: string, names: readonly string[] | null): Promise<Record<string, string>> {
    const rows = await this.secrets
      .createQueryBuilder('secret')
      .addSelect('secret.sealedValue')
      .where('secret.serverId = :serverId AND (:names::text[] IS NULL OR secret.name = ANY(:names))', {
        serverId,
        names,
      })
      .getMany();
    return Object.fromEntries(rows.map(({ id, name, sealedValue }) => [name, this.vault.open(sealedValue, id)]));
  }
}
