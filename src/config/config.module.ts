import { Global, Module, type DynamicModule } from '@nestjs/common';
import { Env } from './env.js';
import { Tuning } from './tuning.js';

@Global()
@Module({})
export class ConfigModule {
  static forRoot(env: Env, tuning: Tuning): DynamicModule {
    const providers = [
      { provide: Env, useValue: env },
      { provide: Tuning, useValue: tuning },
    ];
    return { module: ConfigModule, providers, exports: [Env, Tuning] };
  }
}
