import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Env } from '../config/env.js';
import { lazyPart, roleModule } from '../config/role-module.js';
import { DataFolder, Placements } from './cluster/placements.js';
import { HostClient } from './cluster/host-client.js';
import { HostSelector } from './cluster/host-selector.js';
import { HostDirectory } from './cluster/host-directory.js';
import { HostingPlacement } from './cluster/hosting-placement.entity.js';
import { HostingRouter } from './cluster/hosting-router.js';
import { PlacementsRepository } from './cluster/placements.repository.js';
import { Hosting } from './hosting.js';
import { Sandbox } from './sandbox/sandbox.js';

const sandbox = { provide: Sandbox, inject: [Env], useFactory: (env: Env) => new Sandbox(env) };

const host = lazyPart('host', async () => (await import('./runtime/runtime.parts.js')).host);

@Global()
@Module({})
export class HostingModule {
  static readonly forRoles = roleModule(() => ({
    module: HostingModule,
    always: {
      imports: [TypeOrmModule.forFeature([HostingPlacement])],
      providers: [
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
      exports: [Hosting, Sandbox],
    },
    host,
  }));
}
