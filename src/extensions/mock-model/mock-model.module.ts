import { Module } from '@nestjs/common';
import { MockModule, roleModule } from '../../extension.js';
import { MockModel } from './mock-model.js';

/** Loaded only with `SIMULATOR_URL`. */
@Module({})
export class MockModelModule {
  static readonly forRoles = roleModule((env) => ({
    module: MockModelModule,
    ...(env.simulatorUrl !== null && { api: { imports: [MockModule.forRoles(env)], providers: [MockModel] } }),
  }));
}
