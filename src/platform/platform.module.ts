import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Env } from '../config/env.js';
import { BodyBudget } from './http/body/body-budget.js';
import { HeldByKeys } from './http/held-by-keys.js';
import { SignedUrls } from './http/signed-urls.js';
import { InternalClient } from './internal-http/internal-client.js';
import { InternalServer } from './internal-http/internal-server.js';
import { InternalSignatures } from './internal-http/internal-signatures.js';
import { ProcessRegistry } from './processes/process-registry.js';
import { ServiceProcess } from './processes/process.entity.js';
import { ProcessesRepository } from './processes/processes.repository.js';
import { Schedule } from './schedule/schedule.js';
import { Vault } from './vault/vault.js';

const requests = [BodyBudget, HeldByKeys, SignedUrls];
const betweenProcesses = [InternalSignatures, InternalClient, InternalServer, ProcessesRepository, ProcessRegistry];

/** Providers for every module that need no module of their own. */
@Global()
@Module({
  imports: [TypeOrmModule.forFeature([ServiceProcess])],
  providers: [
    ...requests,
    ...betweenProcesses,
    Schedule,
    { provide: Vault, inject: [Env], useFactory: (env: Env) => new Vault(env.encryptionKeys ?? []) },
  ],
  exports: [...requests, ...betweenProcesses, Schedule, Vault],
})
export class PlatformModule {}
