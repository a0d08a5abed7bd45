import { internalRoutes } from '../egress/internal-routes.js';
import type { ModuleMetadata } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { InternalHostingController } from '../cluster/internal-hosting.controller.js';
import { Engines } from '../engine.js';
import { LocalHosting, ProgramOwners } from '../hosting.js';
import { Sandbox } from '../sandbox/sandbox.js';
import { WorkerdEngine } from '../worker/workerd-engine.js';
import { Runtime } from './runtime.js';
import { RuntimeMetrics } from './runtime.metrics.js';

const engines = {
  provide: Engines,
  inject: [Env, Sandbox],
  useFactory: async (env: Env, sandbox: Sandbox) => {
    const worker = new WorkerdEngine(sandbox, env.egressProxy, internalRoutes(env));
    if (env.runtimeBundles === 'off') return new Engines([worker]);
    const { BundleEngine } = await import('../bundle/bundle-engine.js');
    return new Engines([worker, new BundleEngine(env, sandbox)]);
  },
};

const runtime = {
  provide: Runtime,
  inject: [Env, ProgramOwners, Engines],
  useFactory: (env: Env, owners: ProgramOwners, available: Engines) => Runtime.create(env, owners, available),
};

/** The part of the hosting module for the role `host`. */
export const host: ModuleMetadata = {
  controllers: [InternalHostingController],
  providers: [runtime, RuntimeMetrics, engines, { provide: LocalHosting, useExisting: Runtime }],
};
