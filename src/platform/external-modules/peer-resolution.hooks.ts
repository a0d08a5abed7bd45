import type { InitializeHook, ResolveHook } from 'node:module';

/** Locations of packages as URLs; those of directories end with a slash. */
export interface PeerResolution {
  modules: { folder: string; peers: string[] }[];
  ours: string;
  /** The file that `@slipway/module` is at run time, whatever is installed. */
  entryPoint: string;
}

let resolution: PeerResolution = { modules: [], ours: '', entryPoint: '' };

export const initialize: InitializeHook<PeerResolution> = (data) => {
  resolution = data;
};

/**
 * Resolves an import: `@slipway/module` is the entry point, peers come from Slipway even if the module has a copy to compile with, as do
 * packages that it lacks. Node calls this for every import, in a separate thread.
 */
export const resolve: ResolveHook = async (specifier, context, nextResolve) => {
  const module = resolution.modules.find(({ folder }) => context.parentURL?.startsWith(folder));
  if (!module) return nextResolve(specifier, context);
  if (specifier === '@slipway/module') return nextResolve(resolution.entryPoint, context);
  const fromModule = async () => nextResolve(specifier, context);
  const fromSlipway = async () => nextResolve(specifier, { ...context, parentURL: resolution.ours });
  const isPeer = module.peers.some((name) => specifier === name || specifier.startsWith(`${name}/`));
  try {
    return await (isPeer ? fromSlipway() : fromModule());
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    if (isPeer) return fromModule();
    // Without a copy in Slipway either, the error names the module's file.
    return fromSlipway().catch(() => {
      throw error;
    });
  }
};
