import { Module } from '@nestjs/common';
import { roleModule } from '../../../config/role-module.js';
import { ConnectionCoreModule } from '../core/connection-core.module.js';
import { RecheckModule } from '../recheck/recheck.module.js';
import { ConnectionSetupService } from './connection-setup.service.js';

/** The setup page of connections. */
@Module({})
export class ConnectionSetupModule {
  static readonly forRoles = roleModule((env) => ({
    module: ConnectionSetupModule,
    api: {
      imports: [ConnectionCoreModule.forRoles(env), RecheckModule.forRoles(env)],
      providers: [ConnectionSetupService],
    },
  }));
}
