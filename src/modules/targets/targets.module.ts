import { Module } from '@nestjs/common';
import { TargetsRepository } from './targets.repository.js';
import { TargetsService } from './targets.service.js';

/** Servers, connections and namespaces as targets of searches, calls and grants. */
@Module({ providers: [TargetsRepository, TargetsService], exports: [TargetsService] })
export class TargetsModule {}
