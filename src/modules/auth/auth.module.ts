import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessGuard } from './access.guard.js';
import { AccessService } from './access.service.js';
import { Account } from './account.entity.js';
import { AccountsController } from './accounts.controller.js';
import { AccountsService } from './accounts.service.js';
import { ApiKey } from './api-key.entity.js';
import { ApiKeysService } from './api-keys.service.js';

/** Accounts, API keys, and the guard in front of every route. */
@Module({
  imports: [TypeOrmModule.forFeature([Account, ApiKey])],
  controllers: [AccountsController],
  providers: [AccountsService, ApiKeysService, AccessService, { provide: APP_GUARD, useClass: AccessGuard }],
  exports: [AccessService, ApiKeysService],
})
export class AuthModule {}
