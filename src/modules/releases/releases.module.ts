import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { ServersModule } from '../servers/servers.module.js';
import { InvocationObserver, NoInvocations } from './invocation.types.js';
import { RunController } from './run.controller.js';
import { RunService } from './run.service.js';

/** Releases of servers, and the address under which the current one runs. */
@Module({
  imports: [AuthModule, ServersModule],
  controllers: [RunController],
  providers: [RunService, { provide: InvocationObserver, useClass: NoInvocations }],
  exports: [RunService],
})
export class ReleasesModule {}
