import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository } from 'typeorm';
import { Vault } from '../../../platform/vault/vault.js';
import { ServerRuntime, ServerSecret } from './server-settings.entity.js';

/** Reads secrets in clear text. */
@Injectable()
export class ProgramSettingsService {
  constructor(
    @InjectRepository(ServerSecret) private readonly serverSecretRepository: Repository<ServerSecret>,
    @InjectRepository(ServerRuntime) private readonly serverRuntimeRepository: Repository<ServerRuntime>,
    private readonly vault: Vault,
  ) {}

  /**
   * Returns all secrets if `names` is null, and leaves out unknown names.
   *
   * @throws VaultError when a secret cannot be decrypted
   */
  async secretsOf(serverId: string, names: readonly string[] | null): Promise<Record<string, string>> {
    const rows = await this.serverSecretRepository.find({
      where: { serverId, ...(names && { name: In(names) }) },
      select: { id: true, name: true, sealedValue: true },
    });
    return Object.fromEntries(rows.map(({ id, name, sealedValue }) => [name, this.vault.open(sealedValue, id)]));
  }

  /** Returns hosts in the form of `Program.egressAllow`; null for any public host. */
  async egressAllowOf(serverId: string): Promise<string[] | null> {
    return (await this.serverRuntimeRepository.findOneBy({ serverId }))?.egressAllow ?? null;
  }
}
