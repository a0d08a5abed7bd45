import { Module } from '@nestjs/common';
import { ConnectionCoreModule } from '../core/connection-core.module.js';
import { RecheckModule } from '../recheck/recheck.module.js';
import { ConnectionSetupService } from './connection-setup.service.js';

/** The setup page of connections. */
@Module({
  imports: [ConnectionCoreModule, RecheckModule],
  providers: [ConnectionSetupService],
})
export class ConnectionSetupModule {}
