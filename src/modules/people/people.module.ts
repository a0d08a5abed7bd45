import { Module, type MiddlewareConsumer, type NestModule } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../config/role-module.js';
import { SessionSource } from '../auth/access.types.js';
import { AuthModule } from '../auth/auth.module.js';
import { withoutLastSlash } from '../../platform/pages/page.js';
import { HOUR_MS, scheduledDeletion } from '../../platform/schedule/schedule.js';
import { InvitationsController } from './invitations.controller.js';
import { InvitationsService } from './invitations.service.js';
import { OwnKeysService } from './own-keys.service.js';
import { PasswordsService } from './passwords.service.js';
import { Invitation, Person, Session } from './people.entity.js';
import { PeoplePagesController } from './people-pages.controller.js';
import { PeopleRepository } from './people.repository.js';
import { SessionsService } from './sessions.service.js';
import { SignInService } from './sign-in.service.js';

@Module({})
export class PeopleModule implements NestModule {
  static readonly forRoles = roleModule((env) => ({
    module: PeopleModule,
    always: { imports: [TypeOrmModule.forFeature([Person, Session, Invitation])], providers: [PeopleRepository] },
    api: {
      imports: [AuthModule.forRoles(env)],
      controllers: [PeoplePagesController, InvitationsController],
      providers: [
        SessionsService,
        { provide: SessionSource, useExisting: SessionsService },
        PasswordsService,
        SignInService,
        InvitationsService,
        OwnKeysService,
      ],
      exports: [InvitationsService, SessionsService, PasswordsService, SignInService],
    },
    worker: {
      providers: [
        scheduledDeletion('deletion of expired sessions', 24 * HOUR_MS, PeopleRepository, (rows, now) =>
          rows.purgeExpired(now),
        ),
      ],
    },
  }));
  /** Redirects addresses with a trailing slash, since the links of a page are relative to its address without one. */
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(withoutLastSlash).forRoutes('login', 'me', 'me/access', 'invite');
  }
}
