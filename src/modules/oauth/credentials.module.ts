import { Module } from '@nestjs/common';
import { ClientDocumentController } from './client-document.controller.js';
import { CredentialsCoreModule } from './credentials-core.module.js';
import { SetupPageService } from './setup-page.service.js';
import { SetupController } from './setup.controller.js';
import { SetupService } from './setup.service.js';

/** OAuth towards upstreams: clients, tokens, and the pages where people authorize. */
@Module({
  imports: [CredentialsCoreModule],
  controllers: [SetupController, ClientDocumentController],
  providers: [SetupService, SetupPageService],
  exports: [CredentialsCoreModule, SetupPageService],
})
export class CredentialsModule {}
