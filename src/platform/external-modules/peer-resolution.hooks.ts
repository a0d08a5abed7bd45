import type { InitializeHook, ResolveHook } from 'node:module';

/** The folders of the modules, as URLs with a slash at the end, and a file of ours. */
export interface PeerResolution {
  folders: string[];
  ours: string;
}

let resolution: PeerResolution = { folders: [], ours: '' };

export const initialize: InitializeHook<PeerResolution> = (data) => {
  resolution = data;
};

/**
 * Resolves packages that a module outside our tree does not bring, such as `slipway` and `@nestjs/common`, from our own
 * folder. Node calls it for every import, in a thread of its own.
 */
export const resolve: ResolveHook = async (specifier, context, nextResolve) => {
  try {
    return await nextResolve(specifier, context);
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND';
    if (!isMissing || !resolution.folders.some((folder) => context.parentURL?.startsWith(folder))) throw error;
    // Without a copy of ours either, the error names the module's file.
    return Promise.resolve(nextResolve(specifier, { ...context, parentURL: resolution.ours })).catch(() => {
      throw error;
    });
  }
};
