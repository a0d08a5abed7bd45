import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthAdaptersService } from './auth-adapters.service.js';
import { AuthorizationsService } from './authorizations.service.js';
import { CredentialRepository } from './credential.repository.js';
import { CredentialsService } from './credentials.service.js';
import { CredentialsMetrics } from './credentials.metrics.js';
import { OAuthClient } from './oauth-client.entity.js';
import { OAuthClientsService } from './oauth-clients.service.js';
import { PendingAuthorization } from './pending-authorization.entity.js';
import { TokenRefresherService } from './token-refresher.service.js';
import { SetupLinksService } from './setup/setup-links.service.js';
import { UpstreamCredential } from './upstream-credential.entity.js';

const services = [
  AuthAdaptersService,
  AuthorizationsService,
  CredentialRepository,
  CredentialsService,
  OAuthClientsService,
  SetupLinksService,
];

/** Tokens and setup links, in every role. Has no controllers. */
@Module({
  imports: [TypeOrmModule.forFeature([OAuthClient, UpstreamCredential, PendingAuthorization])],
  providers: [...services, TokenRefresherService, CredentialsMetrics],
  exports: services,
})
export class CredentialsCoreModule {}
