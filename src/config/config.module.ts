import { Global, Module, type DynamicModule } from '@nestjs/common';
import { Env } from './env.js';

/** Makes the process' settings injectable by type. */
@Global()
@Module({})
export class ConfigModule {
  static forRoot(env: Env): DynamicModule {
    return { module: ConfigModule, providers: [{ provide: Env, useValue: env }], exports: [Env] };
  }
}
