import { Module } from '@nestjs/common';
import { ConnectionLogCoreModule } from './log/connection-log-core.module.js';
import { SourceCompilerModule } from './source/source-compiler.module.js';
import { SourcePrograms } from './source/source-programs.js';

/** Hands the modules of connections to what runs them; loaded by processes with the `host` role. */
@Module({ imports: [ConnectionLogCoreModule, SourceCompilerModule], providers: [SourcePrograms] })
export class ConnectionsHostModule {}
