import type { Env } from './config/env.js';
import { type ExternalModule, loadExternalModules } from './platform/external-modules/load-external-modules.js';

/** Loads the modules with settings of their own: those of the tree whose settings are in use, and those of `SLIPWAY_MODULES`. */
export async function loadModules(env: Env): Promise<ExternalModule[]> {
  const external = await loadExternalModules(env);
  if (!Object.keys(env.source).some((name) => name.startsWith('OIDC_'))) return external;
  const { signInOidc } = await import('./extensions/sign-in-oidc/sign-in-oidc.module.js');
  return [signInOidc, ...external];
}
