import { Module } from '@nestjs/common';
import { ConnectionLogCoreModule } from './log/connection-log-core.module.js';
import { SourceCompilerModule } from './source/source-compiler.module.js';
import { SourcePrograms } from './source/source-programs.js';

/** Provides the modules of connections to the runtime, in processes with the role `host`. */
@Module({ imports: [ConnectionLogCoreModule, SourceCompilerModule], providers: [SourcePrograms] })
export class ConnectionsHostModule {}
