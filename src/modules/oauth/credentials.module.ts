import { Module } from '@nestjs/common';
import { ClientDocumentController } from './client-document.controller.js';
import { CredentialsCoreModule } from './credentials-core.module.js';
import { AuthorizationFlowService } from './setup/authorization-flow.service.js';
import { SetupPageService } from './setup/setup-page.service.js';
import { SetupController } from './setup/setup.controller.js';

/** OAuth towards upstreams: clients, tokens, and the setup page. */
@Module({
  imports: [CredentialsCoreModule],
  controllers: [SetupController, ClientDocumentController],
  providers: [AuthorizationFlowService, SetupPageService],
  exports: [CredentialsCoreModule, SetupPageService],
})
export class CredentialsModule {}
