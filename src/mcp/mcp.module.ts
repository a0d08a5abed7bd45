import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { HttpChannels } from './client/http/http-channels.js';
import { EraMemory } from './eras/era-memory.js';
import { EraStore } from './eras/era-store.js';
import { UpstreamEra } from './eras/upstream-era.entity.js';

/** The way to MCP servers. */
@Global()
@Module({
  imports: [TypeOrmModule.forFeature([UpstreamEra])],
  providers: [
    EraStore,
    { provide: EraMemory, inject: [EraStore], useFactory: (store: EraStore) => new EraMemory(store) },
    HttpChannels,
  ],
  exports: [HttpChannels],
})
export class McpModule {}
