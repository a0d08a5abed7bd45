import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../config/role-module.js';
import { GrantSource } from '../auth/access.types.js';
import { AuthModule } from '../auth/auth.module.js';
import { ConnectionCoreModule } from '../connections/core/connection-core.module.js';
import { LogsModule } from '../logs/logs.module.js';
import { HOUR_MS, scheduledDeletion } from '../../platform/schedule/schedule.js';
import { AccessCheckController } from './access-check.controller.js';
import { AccessCheckService } from './access-check.service.js';
import { AccessRequest } from './access-request.entity.js';
import { AccessRequestsController } from './access-requests.controller.js';
import { AccessRequestsRepository } from './access-requests.repository.js';
import { AccessRequestsService } from './access-requests.service.js';
import { ExpiredGrants } from './expired-grants.js';
import { GrantCache } from './grant-cache.js';
import { Grant } from './grant.entity.js';
import { grantsControllers } from './grants.controller.js';
import { GrantsRepository } from './grants.repository.js';
import { GrantsService } from './grants.service.js';
import { LastUse } from './usable/last-use.entity.js';
import { LastUses } from './usable/last-uses.js';
import { LastUsesRepository } from './usable/last-uses.repository.js';
import { ReceivedGrantsController } from './received-grants.controller.js';
import { UsableController } from './usable/usable.controller.js';
import { UsableRepository } from './usable/usable.repository.js';
import { UsableService } from './usable/usable.service.js';

@Module({})
export class GrantsModule {
  static readonly forRoles = roleModule((env) => ({
    module: GrantsModule,
    always: {
      imports: [TypeOrmModule.forFeature([Grant, AccessRequest, LastUse])],
      providers: [AccessRequestsRepository, GrantsRepository],
    },
    api: {
      imports: [AuthModule, ConnectionCoreModule, LogsModule].map((module) => module.forRoles(env)),
      controllers: [
        ...grantsControllers,
        ReceivedGrantsController,
        AccessRequestsController,
        AccessCheckController,
        UsableController,
      ],
      providers: [
        GrantsService,
        AccessRequestsService,
        AccessCheckService,
        LastUses,
        LastUsesRepository,
        UsableRepository,
        UsableService,
        GrantCache,
        { provide: GrantSource, useExisting: GrantCache },
      ],
      exports: [AccessRequestsService, GrantsService, UsableService],
    },
    worker: {
      providers: [
        ExpiredGrants,
        scheduledDeletion('deletion of expired grants', 30_000, ExpiredGrants, (grants, now) => grants.delete(now)),
        scheduledDeletion('deletion of old requests for access', 24 * HOUR_MS, AccessRequestsRepository, (rows, now) =>
          rows.deleteOld(now),
        ),
      ],
    },
  }));
}
