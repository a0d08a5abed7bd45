import { Global, Module } from '@nestjs/common';
import { roleModule } from '../../config/role-module.js';
import { AuthModule } from '../auth/auth.module.js';
import { LogsModule } from '../logs/logs.module.js';
import { ServersModule } from '../servers/servers.module.js';
import { FacadeTargets } from './facade-targets.js';
import { Logs, ServiceLogs } from './logs.facade.js';

/** Provides the facades of the core, each under its abstract class, to every module without an import. */
@Global()
@Module({})
export class ExtensionApiModule {
  static readonly forRoles = roleModule((env) => ({
    module: ExtensionApiModule,
    api: {
      imports: [AuthModule, LogsModule, ServersModule].map((module) => module.forRoles(env)),
      providers: [FacadeTargets, { provide: Logs, useClass: ServiceLogs }],
      exports: [Logs],
    },
  }));
}
