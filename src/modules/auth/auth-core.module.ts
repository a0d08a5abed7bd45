import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessService } from './access.service.js';
import { Account, ApiKey } from './account.entity.js';
import { ApiKeysRepository } from './api-keys.repository.js';
import { ApiKeysService } from './api-keys.service.js';

/** API keys and access decisions, for the API and the jobs of this module. Has no controllers. */
@Module({
  imports: [TypeOrmModule.forFeature([Account, ApiKey])],
  providers: [ApiKeysRepository, ApiKeysService, AccessService],
  exports: [TypeOrmModule, ApiKeysService, AccessService],
})
export class AuthCoreModule {}
