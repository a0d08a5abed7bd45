import { Module } from '@nestjs/common';
import { roleModule, ServersModule } from '../../extension.js';
import { OtlpController } from './otlp.controller.js';
import { OtlpService } from './otlp.service.js';

@Module({})
export class OtlpModule {
  static readonly forRoles = roleModule((env) => ({
    module: OtlpModule,
    api: { imports: [ServersModule.forRoles(env)], controllers: [OtlpController], providers: [OtlpService] },
  }));
}
