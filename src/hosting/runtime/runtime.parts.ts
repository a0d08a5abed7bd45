import { internalRoutes } from '../egress/internal-routes.js';
import type { ModuleMetadata } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { Tuning } from '../../config/tuning.js';
import { InternalHostingController } from '../cluster/internal-hosting.controller.js';
import { Engines } from '../engine.js';
import { LocalHosting, ProgramOwners } from '../hosting.js';
import { Sandbox } from '../sandbox/sandbox.js';
import { WorkerdEngine } from '../worker/workerd-engine.js';
import { Runtime } from './runtime.js';
import { RuntimeMetrics } from './runtime.metrics.js';
import { deletionTime } from '../../platform/database/deletion-time.js';
import { DataSource } from 'typeorm';

const engines = {
  provide: Engines,
  inject: [Env, Tuning, Sandbox],
  useFactory: async (env: Env, tuning: Tuning, sandbox: Sandbox) => {
    const worker = new WorkerdEngine(sandbox, env.egressProxy, internalRoutes(env));
    if (env.runtimeBundles === 'off') return new Engines([worker]);
    const { BundleEngine } = await import('../bundle/bundle-engine.js');
    return new Engines([worker, new BundleEngine(env, tuning, sandbox)]);
  },
};

const runtime = {
  provide: Runtime,
  inject: [Env, Tuning, ProgramOwners, Engines, DataSource],
  useFactory: (env: Env, tuning: Tuning, owners: ProgramOwners, available: Engines, database: DataSource) =>
    Runtime.create({ env, tuning, owners, engines: available, deletionTime: () => deletionTime(database) }),
};

export const host: ModuleMetadata = {
  controllers: [InternalHostingController],
  providers: [ProgramOwners, runtime, RuntimeMetrics, engines, { provide: LocalHosting, useExisting: Runtime }],
};
