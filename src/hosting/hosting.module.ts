import { Module, type DynamicModule } from '@nestjs/common';
import { Env } from '../config/env.js';
import { BundleEngine } from './bundle/bundle-engine.js';
import { HostingAbsent } from './hosting-absent.js';
import { Hosting } from './hosting.js';
import { Programs } from './programs.js';
import { ENGINES, Runtime } from './runtime/runtime.js';
import { Sandbox } from './sandbox/sandbox.js';
import { WorkerdEngine } from './worker/workerd-engine.js';

const engines = {
  provide: ENGINES,
  inject: [Env, Sandbox],
  useFactory: (env: Env, sandbox: Sandbox) => [new WorkerdEngine(sandbox), new BundleEngine(env, sandbox)],
};

/** Running code that was uploaded: in processes with the role `host`. */
@Module({})
export class HostingModule {
  static forRoot(env: Env): DynamicModule {
    const here = [Runtime, Sandbox, engines, { provide: Hosting, useExisting: Runtime }];
    const elsewhere = [{ provide: Hosting, useClass: HostingAbsent }];
    return {
      module: HostingModule,
      global: true,
      providers: [Programs, ...(env.roles.includes('host') ? here : elsewhere)],
      exports: [Programs, Hosting],
    };
  }
}
