import { Module } from '@nestjs/common';
import { ConsoleModule, roleModule } from '../../extension.js';
import { AddController } from './add/add.controller.js';
import { AddStepsController } from './add/add-steps.controller.js';
import { AddressesController } from './addresses.controller.js';
import { CatalogueController } from './catalogue.controller.js';
import { ConnectService } from './clients/connect.service.js';
import { ConnectionPageController } from './connection/connection.controller.js';
import { NamespaceController } from './namespace/namespace.controller.js';
import { NamespaceRepository } from './namespace/namespace.repository.js';
import { ServerViewsService } from './server-views.service.js';
import { TargetAccessController } from './target-access.controller.js';

@Module({})
export class ConsolePagesModule {
  static readonly forRoles = roleModule((env) => ({
    module: ConsolePagesModule,
    api: {
      imports: [ConsoleModule.forRoles(env)],
      controllers: [
        CatalogueController,
        AddController,
        AddStepsController,
        AddressesController,
        NamespaceController,
        ConnectionPageController,
        TargetAccessController,
      ],
      providers: [ConnectService, NamespaceRepository, ServerViewsService],
    },
  }));
}
