import { Global, Module } from '@nestjs/common';
import { APP_FILTER, APP_PIPE, DiscoveryModule } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Env } from '../config/env.js';
import { ErrorFilter } from './errors/error.filter.js';
import { DecoratedMethods } from './external-modules/decorated-methods.js';
import { BodyBudget } from './http/body/body-budget.js';
import { RevocationRegistry } from './http/revocation-registry.js';
import { OpenRequests } from './http/open-requests.js';
import { InputPipe } from './http/input.pipe.js';
import { SignedUrls } from './http/signed-urls.js';
import { InternalClient } from './internal-http/internal-client.js';
import { InternalServer } from './internal-http/internal-server.js';
import { InternalSignatures } from './internal-http/internal-signatures.js';
import { PageFormsService } from './pages/page-forms.service.js';
import { ProcessRegistry } from './processes/process-registry.js';
import { ServiceProcess } from './processes/process.entity.js';
import { ProcessesRepository } from './processes/processes.repository.js';
import { Schedule } from './schedule/schedule.js';
import { Vault } from './vault/vault.js';

const requests = [BodyBudget, RevocationRegistry, OpenRequests, PageFormsService, SignedUrls];
const betweenProcesses = [InternalSignatures, InternalClient, InternalServer, ProcessesRepository, ProcessRegistry];

@Global()
@Module({
  imports: [TypeOrmModule.forFeature([ServiceProcess]), DiscoveryModule],
  providers: [
    ...requests,
    ...betweenProcesses,
    DecoratedMethods,
    Schedule,
    { provide: APP_PIPE, useClass: InputPipe },
    { provide: APP_FILTER, useClass: ErrorFilter },
    { provide: Vault, inject: [Env], useFactory: (env: Env) => new Vault(env.encryptionKeys ?? []) },
  ],
  exports: [...requests, ...betweenProcesses, DecoratedMethods, Schedule, Vault],
})
export class PlatformModule {}
