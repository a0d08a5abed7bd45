import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessService } from './access.service.js';
import { Account } from './account.entity.js';
import { ApiKey } from './api-key.entity.js';
import { ApiKeysService } from './api-keys.service.js';

/** What the API and the jobs of this module share: keys, and the decision who may do what. Serves nothing. */
@Module({
  imports: [TypeOrmModule.forFeature([Account, ApiKey])],
  providers: [ApiKeysService, AccessService],
  exports: [TypeOrmModule, ApiKeysService, AccessService],
})
export class AuthCoreModule {}
