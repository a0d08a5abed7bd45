import { Module } from '@nestjs/common';
import { ReleasesCoreModule } from '../../releases/releases-core.module.js';
import { ConnectionCoreModule } from '../core/connection-core.module.js';
import { SourceCompilerModule } from './source-compiler.module.js';
import { SourceTransport } from './source-transport.js';

/** Connections to server modules: compiles them and calls them. */
@Module({
  imports: [ReleasesCoreModule, ConnectionCoreModule, SourceCompilerModule],
  providers: [SourceTransport],
  exports: [SourceCompilerModule],
})
export class SourceModule {}
