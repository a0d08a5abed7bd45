import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../config/role-module.js';
import { AuthModule } from '../auth/auth.module.js';
import { LoginController } from './login.controller.js';
import { PageFormsService } from './page-forms.service.js';
import { PasswordsService } from './passwords.service.js';
import { Invitation, Person, Session } from './people.entity.js';
import { PeopleRepository } from './people.repository.js';
import { SessionsService } from './sessions.service.js';
import { SignInService } from './sign-in.service.js';

/** People who sign in with a browser: sessions, passwords and their pages. */
@Module({})
export class PeopleModule {
  static readonly forRoles = roleModule((env) => ({
    module: PeopleModule,
    api: {
      imports: [TypeOrmModule.forFeature([Person, Session, Invitation]), AuthModule.forRoles(env)],
      controllers: [LoginController],
      providers: [PeopleRepository, SessionsService, PasswordsService, SignInService, PageFormsService],
      exports: [SessionsService, PageFormsService],
    },
  }));
}
