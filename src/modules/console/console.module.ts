/**
 * The console: the pages below `/ui/`, on which a person does without a program what REST does for programs.
 *
 * A page is a controller (`home.controller.ts`) and a file of its HTML (`home.page.ts`), 300 lines at most each, with its line in
 * the list below, in `LINKS` of `platform/pages/frame.ts` if it has a place in the head, and in `test/e2e/console/access.ts`.
 *
 * - The controller declares each page with `@Page(scope, rule)` and each form with `@Form(scope, rule)`, as REST does with `@Access`
 *   and with its rules. A handler takes the request by `@CurrentPage()`, calls the exported service that the REST controller calls,
 *   and returns a `FramedPage` or a `Redirect`.
 * - There is no SQL here and no rule: what a page needs belongs into the service, and so REST has it too.
 * - A form posts to an address of its own below its page, with the token that a `FramedPage` hands out. The guard has checked its
 *   values. The handler changes, then leads to the page, whose query names what was done; the page turns that word into a sentence
 *   (`notice`). `respondToForm` shows a rejected form again with what was typed.
 * - Names of tenants are values of `html`. Addresses begin with the way to the root: a rejected form has another than its page. Pages
 *   leave out what a person is not allowed to do.
 */
import { Module } from '@nestjs/common';
import { roleModule } from '../../config/role-module.js';
import { AuthModule } from '../auth/auth.module.js';
import { ConnectionsModule } from '../connections/connections.module.js';
import { GrantsModule } from '../grants/grants.module.js';
import { NamespacesModule } from '../namespaces/namespaces.module.js';
import { PeopleModule } from '../people/people.module.js';
import { ServersModule } from '../servers/servers.module.js';
import { AddController } from './add/add.controller.js';
import { AddStepsController } from './add/add-steps.controller.js';
import { AddressesController } from './addresses.controller.js';
import { ConnectionPageController } from './connection/connection.controller.js';
import { CatalogueController } from './catalogue.controller.js';
import { ConnectService } from './clients/connect.service.js';
import { ConsoleFilesController } from './console-files.controller.js';
import { HomeController } from './home.controller.js';
import { OwnNamespacesService } from './own-namespaces.service.js';
import { ServerViewsService } from './server-views.service.js';
import { TargetAccessController } from './target-access.controller.js';

/** The pages of the console. */
@Module({})
export class ConsoleModule {
  static readonly forRoles = roleModule((env) => ({
    module: ConsoleModule,
    api: {
      imports: [AuthModule, NamespacesModule, ServersModule, ConnectionsModule, GrantsModule, PeopleModule].map(
        (module) => module.forRoles(env),
      ),
      controllers: [
        ConsoleFilesController,
        HomeController,
        CatalogueController,
        AddController,
        AddStepsController,
        AddressesController,
        ConnectionPageController,
        TargetAccessController,
      ],
      providers: [ConnectService, OwnNamespacesService, ServerViewsService],
      exports: [OwnNamespacesService],
    },
  }));
}
