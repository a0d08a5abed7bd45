import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../config/role-module.js';
import { AuthModule } from '../auth/auth.module.js';
import { HOUR_MS, scheduled } from '../../platform/schedule/schedule.js';
import { InvitationsController } from './invitations.controller.js';
import { InvitationsService } from './invitations.service.js';
import { PageFormsService } from './page-forms.service.js';
import { PasswordsService } from './passwords.service.js';
import { Invitation, Person, Session } from './people.entity.js';
import { PeoplePagesController } from './people-pages.controller.js';
import { PeopleRepository } from './people.repository.js';
import { SessionsService } from './sessions.service.js';
import { SignInService } from './sign-in.service.js';

/** People who sign in with a browser: sessions, passwords, invitations and their pages. */
@Module({})
export class PeopleModule {
  static readonly forRoles = roleModule((env) => ({
    module: PeopleModule,
    always: { imports: [TypeOrmModule.forFeature([Person, Session, Invitation])], providers: [PeopleRepository] },
    api: {
      imports: [AuthModule.forRoles(env)],
      controllers: [PeoplePagesController, InvitationsController],
      providers: [SessionsService, PasswordsService, SignInService, InvitationsService, PageFormsService],
      exports: [SessionsService, PasswordsService, PageFormsService],
    },
    worker: {
      providers: [
        scheduled('deletion of expired sessions', 24 * HOUR_MS, PeopleRepository, (rows) => rows.purgeExpired()),
      ],
    },
  }));
}
