import { Module } from '@nestjs/common';
import { roleModule } from '../../../config/role-module.js';
import { ConnectionCoreModule } from '../core/connection-core.module.js';
import { ConnectionCheck } from './connection-check.js';
import { ConnectionRechecker, ConnectionRefresher } from './connection-rechecker.js';
import { RecheckRepository } from './recheck.repository.js';

/** Checks of upstreams: after a change, and by itself for connections that nobody calls. */
@Module({})
export class RecheckModule {
  static readonly forRoles = roleModule((env) => ({
    module: RecheckModule,
    api: {
      imports: [ConnectionCoreModule.forRoles(env)],
      providers: [ConnectionCheck, ConnectionRechecker, ConnectionRefresher, RecheckRepository],
      exports: [ConnectionCheck, ConnectionRechecker],
    },
  }));
}
