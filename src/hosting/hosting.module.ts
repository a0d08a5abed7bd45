import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Env } from '../config/env.js';
import { roleModule } from '../config/role-module.js';
import { BundleEngine } from './bundle/bundle-engine.js';
import { DataFolder, Placements } from './cluster/placements.js';
import { HostClient } from './cluster/host-client.js';
import { HostSelector } from './cluster/host-selector.js';
import { HostDirectory } from './cluster/host-directory.js';
import { HostingPlacement } from './cluster/hosting-placement.entity.js';
import { InternalHostingController } from './cluster/internal-hosting.controller.js';
import { HostingRouter } from './cluster/hosting-router.js';
import { PlacementsRepository } from './cluster/placements.repository.js';
import { Hosting, LocalHosting, Programs } from './hosting.js';
import { RuntimeMetrics } from './runtime/runtime.metrics.js';
import { ENGINES, Runtime } from './runtime/runtime.js';
import { Sandbox } from './sandbox/sandbox.js';
import { WorkerdEngine } from './worker/workerd-engine.js';

const sandbox = { provide: Sandbox, inject: [Env], useFactory: (env: Env) => new Sandbox(env) };

const engines = {
  provide: ENGINES,
  inject: [Env, Sandbox],
  useFactory: (env: Env, sandbox: Sandbox) => [
    new WorkerdEngine(sandbox),
    ...(env.runtimeBundles === 'off' ? [] : [new BundleEngine(env, sandbox)]),
  ],
};

/** Access to hosted programs from every process, and the runtime in processes with the role `host`. */
@Global()
@Module({})
export class HostingModule {
  static readonly forRoles = roleModule(() => ({
    module: HostingModule,
    always: {
      imports: [TypeOrmModule.forFeature([HostingPlacement])],
      providers: [
        Programs,
        sandbox,
        DataFolder,
        HostDirectory,
        PlacementsRepository,
        Placements,
        HostSelector,
        HostClient,
        HostingRouter,
        { provide: Hosting, useExisting: HostingRouter },
      ],
      exports: [Programs, Hosting, Sandbox],
    },
    host: {
      controllers: [InternalHostingController],
      providers: [Runtime, RuntimeMetrics, engines, { provide: LocalHosting, useExisting: Runtime }],
    },
  }));
}
