import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository } from 'typeorm';
import { Vault } from '../../../platform/vault/vault.js';
import { ServerRuntime, ServerSecret } from './server-settings.entity.js';

/** Settings with which hosted programs of a server run: secrets in clear text, and egress rules. */
@Injectable()
export class ProgramSettingsService {
  constructor(
    @InjectRepository(ServerSecret) private readonly serverSecretRepository: Repository<ServerSecret>,
    @InjectRepository(ServerRuntime) private readonly serverRuntimeRepository: Repository<ServerRuntime>,
    private readonly vault: Vault,
  ) {}

  /**
   * The values of these secrets by name; of all secrets if `names` is null. Leaves out unknown names.
   *
   * @throws VaultError when one cannot be decrypted
   */
  async secretsOf(serverId: string, names: readonly string[] | null): Promise<Record<string, string>> {
    const rows = await this.serverSecretRepository.find({
      where: { serverId, ...(names && { name: In(names) }) },
      select: { id: true, name: true, sealedValue: true },
    });
    return Object.fromEntries(rows.map(({ id, name, sealedValue }) => [name, this.vault.open(sealedValue, id)]));
  }

  /** The hosts a server's code can reach, as `Program.egressAllow`; null for any public one. */
  async egressAllowOf(serverId: string): Promise<string[] | null> {
    return (await this.serverRuntimeRepository.findOneBy({ serverId }))?.egressAllow ?? null;
  }
}
