import type { Env } from './config/env.js';
import { type ExternalModule, loadExternalModules } from './platform/external-modules/load-external-modules.js';

/** Returns the modules of the tree that are in use, and those of `SLIPWAY_MODULES`. */
export async function loadModules(env: Env): Promise<ExternalModule[]> {
  const external = await loadExternalModules(env);
  const included: ExternalModule[] = [];
  if (Object.keys(env.source).some((name) => name.startsWith('OIDC_'))) {
    included.push((await import('./extensions/sign-in-oidc/sign-in-oidc.module.js')).signInOidc);
  }
  if (env.source.OFFICIAL_REGISTRY_URL?.trim() !== 'off') {
    included.push((await import('./extensions/official-registry/official-registry.module.js')).officialRegistry);
  }
  return [...included, ...external];
}
