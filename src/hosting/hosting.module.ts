import { Module, type DynamicModule } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Env } from '../config/env.js';
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
  useFactory: (env: Env, sandbox: Sandbox) => [new WorkerdEngine(sandbox), new BundleEngine(env, sandbox)],
};

/** Access to hosted programs from every process, and the runtime in processes with the role `host`. */
@Module({})
export class HostingModule {
  static forRoot(env: Env): DynamicModule {
    const isHost = env.roles.includes('host');
    const placing = [
      DataFolder,
      HostDirectory,
      PlacementsRepository,
      Placements,
      HostSelector,
      HostClient,
      HostingRouter,
    ];
    const running = [Runtime, RuntimeMetrics, sandbox, engines, { provide: LocalHosting, useExisting: Runtime }];
    return {
      module: HostingModule,
      global: true,
      imports: [TypeOrmModule.forFeature([HostingPlacement])],
      controllers: isHost ? [InternalHostingController] : [],
      providers: [Programs, ...placing, { provide: Hosting, useExisting: HostingRouter }, ...(isHost ? running : [])],
      exports: [Programs, Hosting],
    };
  }
}
