import { internalRoutes } from '../egress/internal-routes.js';
import type { ModuleMetadata } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { InternalHostingController } from '../cluster/internal-hosting.controller.js';
import { LocalHosting } from '../hosting.js';
import { Sandbox } from '../sandbox/sandbox.js';
import { WorkerdEngine } from '../worker/workerd-engine.js';
import { ENGINES, Runtime } from './runtime.js';
import { RuntimeMetrics } from './runtime.metrics.js';

const engines = {
  provide: ENGINES,
  inject: [Env, Sandbox],
  useFactory: async (env: Env, sandbox: Sandbox) => {
    const worker = new WorkerdEngine(sandbox, env.egressProxy, internalRoutes(env));
    if (env.runtimeBundles === 'off') return [worker];
    const { BundleEngine } = await import('../bundle/bundle-engine.js');
    return [worker, new BundleEngine(env, sandbox)];
  },
};

/** The part of the hosting module for the role `host`. */
export const host: ModuleMetadata = {
  controllers: [InternalHostingController],
  providers: [Runtime, RuntimeMetrics, engines, { provide: LocalHosting, useExisting: Runtime }],
};
