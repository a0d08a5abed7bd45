import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { AccessGuard } from './access.guard.js';
import { AccountsController } from './accounts.controller.js';
import { AccountsService } from './accounts.service.js';
import { AuthCoreModule } from './auth-core.module.js';

/** Accounts, API keys, and the guard in front of every route. */
@Module({
  imports: [AuthCoreModule],
  controllers: [AccountsController],
  providers: [AccountsService, { provide: APP_GUARD, useClass: AccessGuard }],
  exports: [AuthCoreModule],
})
export class AuthModule {}
