import { Global, Module } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { Vault } from './vault.js';

/** Seals secrets with the process' keys. */
@Global()
@Module({
  providers: [{ provide: Vault, inject: [Env], useFactory: (env: Env) => new Vault(env.encryptionKeys ?? []) }],
  exports: [Vault],
})
export class VaultModule {}
