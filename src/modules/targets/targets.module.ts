import { Module } from '@nestjs/common';
import { TargetsRepository } from './targets.repository.js';
import { TargetsService } from './targets.service.js';

@Module({ providers: [TargetsRepository, TargetsService], exports: [TargetsService] })
export class TargetsModule {}
