import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthAdaptersService } from './auth-adapters.service.js';
import { AuthorizationsService } from './authorizations.service.js';
import { CredentialsService } from './credentials.service.js';
import { CredentialsMetrics } from './credentials.metrics.js';
import { PreregisteredClients } from './preregistered-clients.js';
import { OAuthClient } from './oauth-client.entity.js';
import { OAuthClients } from './oauth-clients.js';
import { PendingAuthorization } from './pending-authorization.entity.js';
import { TokenRefresher } from './token-refresher.js';
import { UpstreamCredential } from './upstream-credential.entity.js';

/** Tokens and setup links for the modules that call upstreams, in the API and in jobs. Serves nothing. */
@Module({
  imports: [TypeOrmModule.forFeature([OAuthClient, UpstreamCredential, PendingAuthorization])],
  providers: [
    AuthAdaptersService,
    PreregisteredClients,
    OAuthClients,
    TokenRefresher,
    AuthorizationsService,
    CredentialsService,
    CredentialsMetrics,
  ],
  exports: [AuthAdaptersService, CredentialsService, AuthorizationsService, PreregisteredClients, OAuthClients],
})
export class CredentialsCoreModule {}
