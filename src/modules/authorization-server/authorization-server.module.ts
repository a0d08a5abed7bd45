import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../config/role-module.js';
import { AddressPolicy } from '../../platform/egress/address-policy.js';
import { ownPorts } from '../../platform/egress/egress.module.js';
import { HOUR_MS, scheduledDeletion } from '../../platform/schedule/schedule.js';
import { TokenSource } from '../auth/access.types.js';
import { AuthModule } from '../auth/auth.module.js';
import { GrantsModule } from '../grants/grants.module.js';
import { PeopleModule } from '../people/people.module.js';
import { AsClient } from './as-client.entity.js';
import { AsGrant } from './as-grant.entity.js';
import { AsRecord } from './as-record.entity.js';
import { AuthorizationServerRepository } from './authorization-server.repository.js';
import { AuthorizationServerService } from './authorization-server.service.js';
import { ClientDocuments, ClientDocumentStore, DocumentEgress } from './client-documents.js';
import { ConsentController } from './consent.controller.js';
import { GrantedAccessController } from './granted-access.controller.js';
import { LoginsController } from './logins.controller.js';
import { LoginsService } from './logins.service.js';
import { offReason } from './protected-resource.js';
import { TokensService } from './tokens.service.js';

@Module({})
export class AuthorizationServerModule {
  static readonly forRoles = roleModule((env) => ({
    module: AuthorizationServerModule,
    always: {
      imports: [TypeOrmModule.forFeature([AsClient, AsGrant, AsRecord])],
      providers: [AuthorizationServerRepository],
    },
    api: {
      imports: [AuthModule.forRoles(env), PeopleModule.forRoles(env), GrantsModule.forRoles(env)],
      controllers: [ConsentController, GrantedAccessController, LoginsController],
      providers: [
        AuthorizationServerService,
        TokensService,
        {
          provide: TokenSource,
          inject: [TokensService],
          // All tokens are rejected while the login is off, including those issued before.
          useFactory: (tokens: TokensService) => (offReason(env) === null ? tokens : null),
        },
        LoginsService,
        ClientDocuments,
        {
          provide: DocumentEgress,
          useFactory: () =>
            new DocumentEgress(new AddressPolicy([]), undefined, {
              closedPorts: ownPorts(env),
              proxy: env.egressProxy,
            }),
        },
        {
          provide: ClientDocumentStore,
          inject: [AuthorizationServerRepository],
          useFactory: (rows: AuthorizationServerRepository) => ({
            read: (url: string) => rows.findDocument(url),
            write: (url: string, body: string) => rows.saveDocument(url, body),
          }),
        },
      ],
    },
    worker: {
      providers: [
        scheduledDeletion('deletion of expired logins', HOUR_MS, AuthorizationServerRepository, (rows, now) =>
          rows.sweep(now),
        ),
      ],
    },
  }));
}
