import { Module } from '@nestjs/common';
import { ConsoleModule, roleModule } from '../../extension.js';
import { AuthorPagesRepository } from './author-pages.repository.js';
import { AuthorSlots } from './author-slots.js';
import { OwnServersService } from './own-servers.service.js';
import { PublishPageController } from './publish.controller.js';
import { ReleasePagesController } from './releases.controller.js';
import { ServerLogsPageController } from './server-logs.controller.js';
import { ServerSettingsPageController } from './server-settings.controller.js';

@Module({})
export class AuthorPagesModule {
  static readonly forRoles = roleModule((env) => ({
    module: AuthorPagesModule,
    api: {
      imports: [ConsoleModule.forRoles(env)],
      controllers: [
        PublishPageController,
        ReleasePagesController,
        ServerLogsPageController,
        ServerSettingsPageController,
      ],
      providers: [AuthorPagesRepository, AuthorSlots, OwnServersService],
    },
  }));
}
