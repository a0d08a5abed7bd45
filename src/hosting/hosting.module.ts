import { Module, type DynamicModule } from '@nestjs/common';
import { Env } from '../config/env.js';
import { HostingAbsent } from './hosting-absent.js';
import { Hosting } from './hosting.js';
import { Programs } from './programs.js';
import { ENGINES, Runtime } from './runtime/runtime.js';
import { Sandbox } from './sandbox/sandbox.js';
import { WorkerdEngine } from './worker/workerd-engine.js';

const sandbox = { provide: Sandbox, inject: [Env], useFactory: (env: Env) => new Sandbox(env) };

const engines = {
  provide: ENGINES,
  inject: [Sandbox],
  useFactory: (walls: Sandbox) => [new WorkerdEngine(walls)],
};

/** Running code that was uploaded: in processes with the role `host`. */
@Module({})
export class HostingModule {
  static forRoot(env: Env): DynamicModule {
    const here = [Runtime, sandbox, engines, { provide: Hosting, useExisting: Runtime }];
    const elsewhere = [{ provide: Hosting, useClass: HostingAbsent }];
    return {
      module: HostingModule,
      global: true,
      providers: [Programs, ...(env.roles.includes('host') ? here : elsewhere)],
      exports: [Programs, Hosting],
    };
  }
}
