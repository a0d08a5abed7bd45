import { fileURLToPath } from 'node:url';

/** The path of a file below `dist`, which global-setup.mjs has built from the sources at hand. */
export function builtFile(path: string): string {
  return fileURLToPath(new URL(`../../dist/${path}`, import.meta.url));
}
