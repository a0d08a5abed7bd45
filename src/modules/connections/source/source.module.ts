import { Module } from '@nestjs/common';
import { programOwners } from '../../../hosting/hosting.js';
import { roleModule } from '../../../config/role-module.js';
import { AuthModule } from '../../auth/auth.module.js';
import { LogsModule } from '../../logs/logs.module.js';
import { ReleasesModule } from '../../releases/releases.module.js';
import { ConnectionCoreModule } from '../core/connection-core.module.js';
import { transports } from '../core/connection-transports.js';
import { SourceCompiler } from './source-compiler.service.js';
import { SourcePrograms } from './source-programs.js';
import { SourceTransport } from './source-transport.js';

/** Modules of connections: the API compiles and calls them, and hosts load them. */
@Module({})
export class SourceModule {
  static readonly forRoles = roleModule((env) => ({
    module: SourceModule,
    'api or host': {
      imports: [ConnectionCoreModule.forRoles(env)],
      providers: [SourceCompiler],
      exports: [SourceCompiler],
    },
    api: {
      imports: [ReleasesModule.forRoles(env)],
      providers: [SourceTransport, { provide: transports.source, useExisting: SourceTransport }],
    },
    host: {
      imports: [AuthModule.forRoles(env), LogsModule.forRoles(env)],
      providers: [SourcePrograms, { provide: programOwners.source, useExisting: SourcePrograms }],
    },
  }));
}
