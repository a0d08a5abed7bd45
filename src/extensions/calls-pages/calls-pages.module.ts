import { Module } from '@nestjs/common';
import { roleModule } from '../../extension.js';
import { CallListController } from './call-list.controller.js';
import { CallsPageController } from './calls.controller.js';
import { CallsRepository } from './calls.repository.js';

@Module({})
export class CallsPagesModule {
  static readonly forRoles = roleModule(() => ({
    module: CallsPagesModule,
    api: { controllers: [CallsPageController, CallListController], providers: [CallsRepository] },
  }));
}
