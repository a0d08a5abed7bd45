/**
 * The console: the pages under `/ui/`, on which users do what programs do by REST. This module has the first page and the shared parts; the
 * others are modules of `src/extensions`.
 *
 * A page is a controller (`home.controller.ts`) and a file of its HTML (`home.page.ts`), listed in its module, in `LINKS` of
 * `platform/pages/frame.ts` if the navigation links it, and in the `access.ts` of its tests. Pages have no SQL and no rules: they call the
 * service of the REST controller, with its access rule, by `@Page(scope, rule)` and `@Form(scope, rule)`.
 *
 * A form posts to an address of its own under its page, and the guard has checked its token. The handler makes the change and redirects to
 * the page, whose query names the action, which the page shows as a message (`notice`). `respondToForm` shows a rejected form again. Names
 * of tenants are values of `html`; links begin with the relative path to the root, since a rejected form has another address than its page.
 */
import { Module } from '@nestjs/common';
import { roleModule } from '../../config/role-module.js';
import { AuthModule } from '../auth/auth.module.js';
import { GrantsModule } from '../grants/grants.module.js';
import { NamespacesModule } from '../namespaces/namespaces.module.js';
import { PeopleModule } from '../people/people.module.js';
import { ServersModule } from '../servers/servers.module.js';
import { ConsoleFilesController } from './console-files.controller.js';
import { HomeController } from './home.controller.js';
import { OwnNamespacesService } from './own-namespaces.service.js';

@Module({})
export class ConsoleModule {
  static readonly forRoles = roleModule((env) => ({
    module: ConsoleModule,
    api: {
      imports: [AuthModule, NamespacesModule, ServersModule, GrantsModule, PeopleModule].map((module) =>
        module.forRoles(env),
      ),
      controllers: [ConsoleFilesController, HomeController],
      providers: [OwnNamespacesService],
      exports: [OwnNamespacesService],
    },
  }));
}
