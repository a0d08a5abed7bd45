import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { CallHooks } from './client/tools/call-hooks.js';
import { HttpChannels } from './client/http/http-channel.js';
import { EraMemory } from './eras/era-memory.js';
import { ErasRepository } from './eras/era.repository.js';
import { UpstreamEra } from './eras/upstream-era.entity.js';

@Global()
@Module({
  imports: [TypeOrmModule.forFeature([UpstreamEra])],
  providers: [ErasRepository, EraMemory, HttpChannels, CallHooks],
  exports: [HttpChannels, CallHooks],
})
export class McpModule {}
