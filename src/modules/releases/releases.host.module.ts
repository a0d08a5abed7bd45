import { Module } from '@nestjs/common';
import { LogsCoreModule } from '../logs/logs-core.module.js';
import { ReleasePrograms, ScanTraces } from './programs/release-programs.js';
import { ReleasesCoreModule } from './releases-core.module.js';

/** Hands the code of hosted releases to what runs it; loaded by processes with the `host` role. */
@Module({ imports: [ReleasesCoreModule, LogsCoreModule], providers: [ReleasePrograms, ScanTraces] })
export class ReleasesHostModule {}
