import { Module } from '@nestjs/common';
import { roleModule } from '../../../config/role-module.js';
import { ConnectionCoreModule } from '../core/connection-core.module.js';
import { DiagnosisController } from './diagnosis.controller.js';
import { DiagnosisService } from './diagnosis.service.js';

/** Diagnoses of connections, from DNS to the list of tools. */
@Module({})
export class DiagnosisModule {
  static readonly forRoles = roleModule((env) => ({
    module: DiagnosisModule,
    api: {
      imports: [ConnectionCoreModule.forRoles(env)],
      controllers: [DiagnosisController],
      providers: [DiagnosisService],
    },
  }));
}
