import { Module } from '@nestjs/common';
import { ClientDocumentController } from './client-document.controller.js';
import { CredentialsCoreModule } from './credentials-core.module.js';
import { DirectSetupService } from './direct-setup.service.js';
import { SetupController } from './setup.controller.js';
import { SetupService } from './setup.service.js';

/** OAuth towards upstreams: clients, tokens, and the pages where people authorize. */
@Module({
  imports: [CredentialsCoreModule],
  controllers: [SetupController, ClientDocumentController],
  providers: [SetupService, DirectSetupService],
  exports: [CredentialsCoreModule, DirectSetupService],
})
export class CredentialsModule {}
