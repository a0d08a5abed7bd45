import { Module } from '@nestjs/common';
import { roleModule } from '../../extension.js';
import { TriggersController } from './triggers.controller.js';
import { TriggersService } from './triggers.service.js';

@Module({})
export class TriggersModule {
  static readonly forRoles = roleModule(() => ({
    module: TriggersModule,
    api: { controllers: [TriggersController], providers: [TriggersService] },
  }));
}
