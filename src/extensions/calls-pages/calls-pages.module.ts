import { Module } from '@nestjs/common';
import { roleModule } from '../../extension.js';
import { CallsPageController } from './calls.controller.js';
import { CallsRepository } from './calls.repository.js';

/** The page of the recorded calls of everything that a person can see. */
@Module({})
export class CallsPagesModule {
  static readonly forRoles = roleModule(() => ({
    module: CallsPagesModule,
    api: { controllers: [CallsPageController], providers: [CallsRepository] },
  }));
}
