import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../config/role-module.js';
import { AuthModule } from '../auth/auth.module.js';
import { PeopleModule } from '../people/people.module.js';
import { AuthorizationsService } from './authorizations.service.js';
import { ClientDocumentController } from './client-document.controller.js';
import { CredentialsRepository } from './credential.repository.js';
import { CredentialsService } from './credentials.service.js';
import { OAuthClient } from './oauth-client.entity.js';
import { OAuthClientsService } from './oauth-clients.service.js';
import { PendingAuthorization } from './pending-authorization.entity.js';
import { SetupLinksService } from './setup/setup-links.service.js';
import { SetupPageService } from './setup/setup-page.service.js';
import { SetupController } from './setup/setup.controller.js';
import { pageOwners } from './setup/setup.types.js';
import { TokenRefresherService } from './token-refresher.service.js';
import { UpstreamCredential } from './upstream-credential.entity.js';

const services = [
  AuthorizationsService,
  CredentialsRepository,
  CredentialsService,
  OAuthClientsService,
  SetupLinksService,
];

@Module({})
export class OAuthModule {
  static readonly forRoles = roleModule((env) => ({
    module: OAuthModule,
    'api or worker': {
      imports: [
        TypeOrmModule.forFeature([OAuthClient, UpstreamCredential, PendingAuthorization]),
        AuthModule.forRoles(env),
      ],
      providers: [...services, TokenRefresherService],
      exports: services,
    },
    api: {
      imports: [PeopleModule.forRoles(env)],
      controllers: [SetupController, ClientDocumentController],
      providers: [SetupPageService, { provide: pageOwners.authorizations, useExisting: AuthorizationsService }],
      exports: [SetupPageService],
    },
  }));
}
