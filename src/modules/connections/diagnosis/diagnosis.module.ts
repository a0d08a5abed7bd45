import { Module } from '@nestjs/common';
import { ConnectionCoreModule } from '../core/connection-core.module.js';
import { DiagnosisController } from './diagnosis.controller.js';
import { DiagnosisService } from './diagnosis.service.js';

/** Diagnoses of connections, from DNS to the list of tools. */
@Module({ imports: [ConnectionCoreModule], controllers: [DiagnosisController], providers: [DiagnosisService] })
export class DiagnosisModule {}
