/**
 * The console: the pages below `/ui/`, on which a person does without a program what REST does for programs.
 *
 * This module has the first page, and what pages share. The others are modules of `src/extensions`, such as `console-pages`.
 * A page is a controller (`home.controller.ts`) and a file of its HTML (`home.page.ts`), at most 300 lines each, with its line in
 * its module, in `LINKS` of `platform/pages/frame.ts` if it has a place in the head, and in the `access.ts` of its tests.
 *
 * - The controller declares each page with `@Page(scope, rule)` and each form with `@Form(scope, rule)`, as REST does with `@Access`
 *   and with its rules. A handler takes the request by `@CurrentPage()`, calls a facade, or the service that the REST controller
 *   calls, and returns a `FramedPage` or a `Redirect`.
 * - There is no SQL here and no rule: what a page needs belongs into the service, and so REST has it too.
 * - A form posts to an address of its own below its page, with the token that a `FramedPage` hands out. The guard has checked its
 *   values. The handler changes, then leads to the page, whose query names what was done; the page turns that word into a message
 *   (`notice`). `respondToForm` shows a rejected form again with what was typed.
 * - Names of tenants are values of `html`. Addresses begin with the way to the root: a rejected form has another than its page. Pages
 *   leave out what a person is not allowed to do.
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

/** The pages of the console. */
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
