import { Module } from '@nestjs/common';
import { roleModule } from '../../extension.js';
import { CallHooksService } from './call-hooks.service.js';

@Module({})
export class HooksModule {
  static readonly forRoles = roleModule(() => ({ module: HooksModule, api: { providers: [CallHooksService] } }));
}
