import { Module } from '@nestjs/common';
import { APP_GUARD, DiscoveryModule } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { RateCounter } from '../../platform/limits/rate-counter.js';
import { roleModule } from '../../config/role-module.js';
import { KnownQueryGuard } from '../../platform/http/known-query.guard.js';
import { HOUR_MS, scheduledDeletion } from '../../platform/schedule/schedule.js';
import { TargetsModule } from '../targets/targets.module.js';
import { AccessGuard } from './access.guard.js';
import { AccessService } from './access.service.js';
import { Account, ApiKey, Membership } from './account.entity.js';
import { AccountLimitsRepository } from './account-limits.repository.js';
import { AccountLimitsService } from './account-limits.service.js';
import { Admission } from './admission.service.js';
import { AccountsController } from './accounts.controller.js';
import { AccountsRepository } from './accounts.repository.js';
import { AccountsService } from './accounts.service.js';
import { ApiKeysRepository } from './api-keys.repository.js';
import { OpenRights } from './open-rights.service.js';
import { MemberInvitationsController } from './member-invitations.controller.js';
import { MembersController } from './members.controller.js';
import { MembersRepository } from './members.repository.js';
import { MembersService } from './members.service.js';
import { RequestLimits } from './request-limits.service.js';
import { ApiKeysService } from './api-keys.service.js';

@Module({})
export class AuthModule {
  static readonly forRoles = roleModule(() => ({
    module: AuthModule,
    always: {
      imports: [DiscoveryModule, TypeOrmModule.forFeature([Account, ApiKey, Membership]), TargetsModule],
      providers: [ApiKeysRepository, ApiKeysService, AccountLimitsRepository, AccountLimitsService],
      exports: [AccountLimitsService, ApiKeysService, TargetsModule],
    },
    api: {
      controllers: [AccountsController, MembersController, MemberInvitationsController],
      exports: [AccessService, AccountsService, Admission, MembersService, RateCounter, RequestLimits],
      providers: [
        RateCounter,
        RequestLimits,
        AccessService,
        Admission,
        OpenRights,
        AccountsRepository,
        AccountsService,
        MembersRepository,
        MembersService,
        // These run in this order, before those of modules that are imported after this one.
        { provide: APP_GUARD, useClass: AccessGuard },
        { provide: APP_GUARD, useClass: KnownQueryGuard },
      ],
    },
    worker: {
      providers: [
        scheduledDeletion('deletion of keys that expired long ago', 24 * HOUR_MS, ApiKeysService, (keys, now) =>
          keys.purgeExpired(now),
        ),
      ],
    },
  }));
}
